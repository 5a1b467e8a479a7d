# Everything a person or a machine does with the project. Needed beforehand: python3 (3.11 or newer),
# make, and a package index that pip can reach. PYTHON=python3.12 make chooses the interpreter.

ifdef PYTHON
SETUP := $(PYTHON) .ci/setup.py --pinned
else
SETUP := python3 .ci/setup.py
endif

BIN := .venv/bin
WORKERS ?= 2
SEED ?= 1
YEARS ?= 1
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: setup quickstart test test-fast test-wheel reliability simulate mutant lint types imports fmt wheel lock clean help

setup: ## make .venv, or bring it up to date; costs nothing when it is
	@$(SETUP)

quickstart: setup ## schedule, cancel, reschedule and repeat on a fresh store, with a real daemon
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh sample_commands/quickstart.sh

# The coverage gate is judged inside pytest, so that pytest's closing line is the last one.
test: lint types imports ## everything that must pass: lint, types, imports, tests, coverage gate
	@$(PYTEST) --cov --cov-report=term

test-fast: setup ## the tests alone, without coverage; ARGS='tests/log -x' narrows them
	@$(PYTEST) $(ARGS)

test-wheel: setup ## build the wheel and run the suite against it, with the source out of the way
	@$(BIN)/python .ci/test_wheel.py $(WORKERS)

reliability: setup ## the ledger: every goal, into docs/reliability.md; LONG=1, GOAL='a b', SEED=N
	@$(BIN)/python -m tests.reliability $(GOAL) --seed $(SEED) --write

simulate: setup ## years of a simulated machine by one seed: SEED=N YEARS=Y, OFF=features,to,leave,out
	@$(BIN)/python -m tests.sim --seed $(SEED) --years $(YEARS) --off "$(OFF)"

mutant: setup ## take one line of defence out of a copy and see that it is missed: NAME=…, without it a list
	@$(BIN)/python -m tests.mutants $(or $(NAME),--list)

lint: setup ## style, by ruff
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo "lint: not formatted; 'make fmt' does it"; exit 1; }

types: setup ## types, by mypy, on Linux and on macOS
	@$(BIN)/mypy --no-error-summary --platform linux
	@$(BIN)/mypy --no-error-summary --platform darwin --cache-dir .mypy_cache/darwin

imports: setup ## who may import whom, by import-linter
	@$(BIN)/lint-imports > .venv/imports.txt 2>&1 || { cat .venv/imports.txt; exit 1; }

fmt: setup ## format, and repair what ruff can repair
	@$(BIN)/ruff format --quiet
	@$(BIN)/ruff check --fix --quiet

wheel: setup ## build dist/*.whl and dist/*.tar.gz
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist > .venv/build.txt 2>&1 || { cat .venv/build.txt; exit 1; }
	@ls dist/*

lock: setup ## write .ci/locks/*.lock anew; ARGS=--upgrade moves the pins too
	@$(BIN)/python .ci/lock.py $(ARGS)

clean: ## remove what was made, .venv too
	rm -rf .venv .venv.lock dist build htmlcov .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r name text; do printf '%-12s %s\n' "$$name" "$$text"; done
