"""The fuzzing harness notices what is wrong with a decoder, and its samples and corpus hold."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.fuzz import argv, frames, records
from tests.fuzz.goals import ROOT, fuzzed
from tests.fuzz.guided import available, guided
from tests.fuzz.mutator import Mutator
from tests.fuzz.target import Seen, Target

TARGETS = (*frames.TARGETS, *records.TARGETS)
BY_NAME = {target.name: target for target in (*TARGETS, *argv.TARGETS)}
CORPUS = [
    line.split(" ", 2)
    for line in (Path(__file__).parent / "corpus.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("RAISES", "KeyError"),
        ("DIFFERS", "not as it was read"),
        ("RECURSES", "RecursionError"),
        ("SWELLS", "bytes of memory"),
        ("LOADS", "pickle.find_class"),
    ],
)
def test_a_wrong_decoder_is_noticed(name: str, said: str) -> None:
    row = fuzzed(f"tests.fuzz.planted:{name}", 2_000, "1")
    assert row.violations
    assert [finding for finding in row.findings if said in finding and "seed 1.0" in finding], row.findings


def test_a_right_decoder_is_left_in_peace() -> None:
    row = fuzzed("tests.fuzz.planted:SOUND", 2_000, "1")
    assert (row.points, row.hits, row.violations) == (2_000, 2_000, 0)


def test_a_process_that_dies_is_a_violation() -> None:
    row = fuzzed("tests.fuzz.planted:NOTHING", 2_000, "1")
    assert (row.violations, row.points) == (1, 0)
    assert "NOTHING" in row.findings[0]


def test_the_smallest_input_that_is_as_wrong_is_shown() -> None:
    (finding,) = fuzzed("tests.fuzz.planted:RAISES", 2_000, "1").findings
    assert finding.endswith(": ff")


@pytest.mark.skipif(not available(), reason="there is no atheris for this Python here")
def test_being_led_finds_what_is_wrong_and_nothing_else() -> None:
    assert guided("tests.fuzz.planted:SOUND", "sound", 500, 1, ROOT) == Seen(executions=500)
    for name, said in (("raises", "KeyError"), ("loads", "a decoder did"), ("differs", "not as it was read")):
        seen = guided(f"tests.fuzz.planted:{name.upper()}", name, 20_000, 1, ROOT)
        assert seen.violations == 1
        assert said in seen.findings[0]


def made(target: Target, seed: int, count: int = 300) -> list[bytes]:
    mutator = Mutator(random.Random(seed), target.samples, target.tokens, target.seal)
    return [mutator.made() for _ in range(count)]


@pytest.mark.parametrize("target", BY_NAME.values(), ids=list(BY_NAME))
def test_the_same_seed_gives_the_same_inputs_and_another_seed_others(target: Target) -> None:
    assert made(target, 1) == made(target, 1)
    assert made(target, 1) != made(target, 2)


def taken(target: Target, inputs: Sequence[bytes]) -> int:
    count = 0
    for data in inputs:
        try:
            assert target.run(data) == ""
        except target.allowed:
            continue
        count += 1
    return count


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_valid_samples_are_taken_and_some_damaged_ones_too(target: Target) -> None:
    """Behind true checksums the inner layers are reached: else damage would be all that is ever tried."""
    assert taken(target, target.samples) >= len(target.samples) // 2
    assert taken(target, made(target, 3)) > 3


@pytest.mark.parametrize("target", [one for one in TARGETS if one.seal], ids=lambda target: target.name)
def test_what_is_true_already_stays_as_it_is_under_its_seal(target: Target) -> None:
    assert target.seal is not None
    for sample in target.samples:
        data = bytearray(sample)
        target.seal(data)
        assert data == sample


@pytest.mark.parametrize(("name", "digits", "why"), CORPUS, ids=[f"{name}: {why}" for name, _, why in CORPUS])
def test_what_was_worth_keeping_is_still_answered(name: str, digits: str, why: str) -> None:
    assert taken(BY_NAME[name], [bytes.fromhex(digits)]) in {0, 1}, why
