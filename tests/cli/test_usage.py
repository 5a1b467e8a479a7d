"""What cannot be understood: exit 2, one line, nothing written; and for machines the same as a document."""

from __future__ import annotations

import importlib
import subprocess
from pathlib import Path

import pytest

from nereus_cli.cli.exits import MEANINGS
from nereus_cli.cli.main import main
from nereus_cli.cli.options import Verb
from nereus_cli.cli.verbs import EVERY, LATER_VERBS, VERBS
from nereus_cli.domain.message import State
from tests.cli.running import COMMAND, Nereus, environment

RUN = ("--", "true")
BAD = [
    (),
    ("frobnicate",),
    ("sched",),
    ("--frob", "list"),
    ("--store",),
    ("help", "frobnicate"),
    ("list", "--frob"),
    ("schedule", "--json=1", "--in", "1h", *RUN),
    ("schedule", *RUN),
    ("schedule", "--in", "1h"),
    ("schedule", "--in", "1h", "--"),
    ("schedule", "--in", "1h", "echo", "hi"),
    ("schedule", "--in", "1h", "--shell", "true", *RUN),
    ("schedule", "--in", "1h", "--at", "2027-01-01T00:00:00Z", *RUN),
    ("schedule", "--in", "1h", "--in", "2h", *RUN),
    ("schedule", "--in", "1 month", *RUN),
    ("schedule", "--in", "-5m", *RUN),
    ("schedule", "--in", "1e30s", *RUN),
    ("schedule", "--in", "1h", "--tz", "Europe/Berlin", *RUN),
    ("schedule", "--at", "tomorrowish", *RUN),
    ("schedule", "--at", "2027-06-01T09:00", *RUN),
    ("schedule", "--at", "2027-06-01T09:00", "--tz", "Mars/Olympus", *RUN),
    ("schedule", "--at", "2027-03-28T02:30", "--tz", "Europe/Berlin", *RUN),
    ("schedule", "--at", "2027-10-31T02:30", "--tz", "Europe/Berlin", *RUN),
    ("schedule", "--in", "1h", "--id", "", *RUN),
    ("schedule", "--in", "1h", "--id", "a.b", *RUN),
    ("schedule", "--in", "1h", "--id", "a/b", *RUN),
    ("schedule", "--in", "1h", "--id", "žluť", *RUN),
    ("schedule", "--in", "1h", "--id=-x", *RUN),
    ("schedule", "--in", "1h", "--id", "x" * 129, *RUN),
    ("schedule", "--in", "1h", "--id", "nc~nope", *RUN),
    ("schedule", "--in", "1h", "--command-id", "a b", *RUN),
    ("schedule", "--in", "1h", "--key", "k", *RUN),
    ("schedule", "--in", "1h", "--url", "https://example.invalid/"),
    ("schedule", "--in", "1h", "--to", "somewhere"),
    ("schedule", "--in", "1h", "--header", "A: b", *RUN),
    ("schedule", "--in", "1h", "--allow-http", *RUN),
    ("schedule", "--in", "1h", "--tag", "novalue", *RUN),
    ("schedule", "--in", "1h", "--priority", "high", *RUN),
    ("schedule", "--in", "1h", "--max-attempts", "0", *RUN),
    ("schedule", "--in", "1h", "--max-attempts", "10001", *RUN),
    ("schedule", "--in", "1h", "--retry-base", "10y", *RUN),
    ("schedule", "--in", "1h", "--ok", "256", *RUN),
    ("schedule", "--in", "1h", "--ok", "x", *RUN),
    ("schedule", "--in", "1h", "--env", "novalue", *RUN),
    ("schedule", "--in", "1h", "--secret", "A=hush", *RUN),
    ("schedule", "--in", "1h", "--stdin", "/nonexistent", *RUN),
    ("schedule", "--in", "1h", "--on-uncertain", "pray", *RUN),
    ("schedule", "--in", "1h", "--on-uncertain", "probe", *RUN),
    ("schedule", "--in", "1h", "--if-late", "hold", *RUN),
    ("schedule", "--in", "1h", "--wait", "--no-wait", *RUN),
    ("schedule", "--in", "1h", "--wait-timeout", "soon", *RUN),
    ("schedule", "--in", "1h", "--", ""),
    ("schedule", "--in", "1h", "--", "x" * 131_072),
    ("schedule", "--in", "1h", "--", *["y" * 100_000] * 6),
    ("schedule", "--batch", "/nonexistent"),
    ("schedule", "--batch", "-", "--in", "1h"),
    ("schedule", "--batch", "-", *RUN),
    ("cancel",),
    ("cancel", "a.b"),
    ("cancel", "-", "x"),
    ("cancel", "x", "--if-version", "one"),
    ("cancel", "x", "y", "--command-id", "one"),
    ("reschedule", "x"),
    ("prepare",),
    ("prepare", "cancel"),
    ("prepare", "cancel", "x", "--wait"),
    ("prepare", "resolve", "x"),
    ("prepare", "dead"),
    ("prepare", "dead", "list"),
    ("prepare", "dead", "show", "x"),
    ("prepare", "dead", "replay"),
    ("prepare", "dead", "replay", "x", "--no-wait"),
    ("resolve",),
    ("resolve", "x"),
    ("resolve", "x", "--attempt", "1", "--evidence", "seen"),
    ("resolve", "x", "--attempt", "1", "--published"),
    ("resolve", "x", "--attempt", "1", "--published", "--evidence", ""),
    ("resolve", "x", "--attempt", "1", "--published", "--evidence", " \n\t"),
    ("resolve", "x", "--attempt", "1", "--published", "--retry", "--evidence", "seen"),
    ("resolve", "x", "--attempt", "1", "--published", "--evidence", "y" * 4_097),
    ("resolve", "x", "--attempt", "1", "--published", "--evidence", "seen", "--by", " "),
    ("resolve", "x", "--attempt", "1", "--published", "--evidence", "seen", "--by", "y" * 4_097),
    ("resolve", "x", "--attempt", "1", "--published", "--evidence", "seen", "--evidence", "twice"),
    ("resolve", "x", "--attempt", "0", "--give-up", "--evidence", "seen"),
    ("resolve", "x", "--attempt", "one", "--retry", "--evidence", "seen"),
    ("resolve", "x", "--attempt", "9" * 30, "--retry", "--evidence", "seen"),
    *(("resolve", "x", verdict, "--evidence", "seen") for verdict in ("--published", "--not-published", "--retry")),
    ("resolve", "-", "--give-up", "--evidence", "seen"),
    ("resolve", "x", "y", "--give-up", "--evidence", "seen"),
    ("resolve", "x", "--give-up", "--evidence", "seen", "--if-version", "one"),
    ("dead",),
    ("dead", "frob"),
    ("dead", "--open"),
    ("dead", "list", "x"),
    ("dead", "list", "--limit", "0"),
    ("dead", "list", "--tag", "novalue"),
    ("dead", "list", "--cursor", "???"),
    ("dead", "show"),
    ("dead", "show", "a.b"),
    ("dead", "show", "x", "y"),
    ("dead", "replay"),
    ("dead", "replay", "x", "--in", "soon"),
    ("dead", "replay", "x", "--in", "1h", "--at", "2027-01-01T00:00:00Z"),
    ("dead", "replay", "x", "--tz", "Europe/Berlin"),
    ("dead", "replay", "x", "--in", "1h", "--tz", "Europe/Berlin"),
    ("dead", "replay", "x", "--at", "2027-03-28T02:30", "--tz", "Europe/Berlin"),
    ("uncertain", "frob"),
    ("uncertain", "report", "x"),
    ("uncertain", "list", "x"),
    ("uncertain", "show"),
    ("uncertain", "show", "a.b"),
    ("uncertain", "show", "x", "--all"),
    ("uncertain", "report", "--format", "pdf"),
    ("uncertain", "report", "--format", "json", "--format", "md"),
    ("submit",),
    ("submit", "/nonexistent"),
    ("result", "a.b"),
    ("show",),
    ("show", "x", "y"),
    ("show", "a.b"),
    ("list", "--state", "GONE"),
    ("list", "--tag", "novalue"),
    ("list", "--limit", "0"),
    ("list", "--cursor", "???"),
    ("list", "--cursor", "bm9uc2Vuc2U"),
    ("list", "--due-before", "noonish"),
    ("wait", "x", "--for", "ever"),
    ("wait", "x", "--timeout", "soon"),
    ("logs", "x", "--attempt", "0"),
    ("events", "--since", "-1"),
    ("run", "--concurrency", "0"),
    ("run", "--grace", "long"),
    ("run", "--once", "--until-idle"),
    ("when",),
    ("when", "1 month"),
    ("when", "2027-03-28T02:30", "--tz", "Europe/Berlin"),
    *((verb,) for verb in sorted(LATER_VERBS)),
]


@pytest.mark.parametrize("line", BAD, ids=lambda line: " ".join(line)[:60] or "nothing")
def test_bad_usage_is_one_line_and_exit_2(nereus: Nereus, line: tuple[str, ...]) -> None:
    ran = nereus(*line)
    assert (ran.status, ran.out, len(ran.notes)) == (2, b"", 1), ran
    assert ran.notes[0].startswith("nereus: ")
    assert "Traceback" not in ran.notes[0]
    assert len(ran.notes[0]) < 600
    machine = nereus("--json", *line)
    assert (machine.status, machine.err) == (2, b"")
    assert (machine.document["error"], machine.document["exit"]) == ("USAGE", 2)
    assert not nereus.store.exists()


def test_options_may_stand_on_either_side_of_the_verb(nereus: Nereus) -> None:
    nereus("schedule", "--in", "1h", "--id", "x", "--", "--json", "--store", "elsewhere")
    _, shown = nereus.json("show", "x")
    assert shown["destination"]["argv"] == ["--json", "--store", "elsewhere"]
    for line in (("show", "x", "--json"), ("--json", "show", "x")):
        assert nereus(*line).document["message_id"] == "x"
    for line in (("show", "x", f"--store={nereus.store}"), (f"--store={nereus.store}", "show", "x")):
        assert main(line) == 0


def test_another_engine_is_a_missing_extra(nereus: Nereus) -> None:
    ran = nereus.process("--json", "list", "--store", "nats://localhost/x")
    assert ran.status == 2  # the store was named twice
    assert main(["list", "--store", "nats://localhost/x"]) == 78


@pytest.mark.parametrize("verb", EVERY, ids=lambda verb: verb.name)
def test_every_verb_has_help_with_its_example_and_every_option(nereus: Nereus, verb: Verb) -> None:
    for flag in ("--help", "-h"):
        ran = nereus(*verb.name.split(), flag)
        assert (ran.status, ran.err) == (0, b"")
        text = " ".join(ran.text.split())
        assert verb.summary in text
        assert verb.example.split(" -- ")[0] in text
        for option in verb.options:
            assert (option.spelling in text) is not bool(option.refused), option.spelling
        for one in verb.subverbs:
            assert f"{one.name}: {one.summary}" in text
    module, _, function = (verb.handler or verb.subverbs[0].handler).partition(":")
    assert callable(getattr(importlib.import_module(f"nereus_cli.cli.{module}"), function))


def test_help_is_a_verb_as_well(nereus: Nereus) -> None:
    assert nereus("help") == nereus("--help")
    assert nereus("help", "cancel") == nereus("cancel", "--help")
    assert nereus("help", "dead", "list") == nereus("dead", "list", "-h") != nereus("help", "dead")
    assert nereus("help", "dead") == nereus("dead", "--help")
    assert nereus("help", "uncertain", "report") == nereus("uncertain", "report", "--help")


def test_help_shows_where_the_command_goes(nereus: Nereus) -> None:
    for verb in ("schedule", "prepare"):
        assert f"Usage: nereus {verb} [OPTIONS] -- COMMAND [ARG]...\n" in nereus(verb, "--help").text


def test_help_names_every_state(nereus: Nereus) -> None:
    text = " ".join(nereus("list", "--help").text.split())
    assert ", ".join(State) in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("cancle", "x"), "did you mean cancel?"),
        (("rm", "x"), "did you mean cancel?"),
        (("ls",), "did you mean list?"),
        (("at", "noon"), "did you mean schedule?"),
        (("xyzzy",), "no such verb: xyzzy; nereus --help lists them"),
        (("--store",), "--store takes a directory"),
        (("schedule", "in 5 minutes", "./x"), "a command goes behind --, as in nereus schedule --in 10m"),
        (("explain", "x"), "not in this version"),
        (("resolve", "x"), "say one verdict: --published, --not-published, --retry, --give-up"),
        (("dead",), "nereus dead takes list, show, replay"),
        (("dead", "lst"), "no such verb: dead lst"),
        (("uncertain", "repotr"), "nereus uncertain takes list, show, report"),
        (("prepare", "dead", "list"), "nothing to prepare"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_slip_is_told_what_was_probably_meant(nereus: Nereus, line: tuple[str, ...], said: str) -> None:
    assert said in nereus(*line).notes[0]


def test_where_no_file_can_be_opened_any_more_there_is_still_one_answer(nereus: Nereus) -> None:
    nereus("init")
    env = environment({"NEREUS_STORE": str(nereus.store)})
    for limit in range(9, 16):
        for machine in ((), ("--json",)):
            line = (*COMMAND, "schedule", *machine, "--id", f"n{limit}{len(machine)}", "--in", "1h", "--", "true")
            command = ("sh", "-c", f'ulimit -n {limit} && exec "$@"', "sh", *line)
            ran = subprocess.run(command, env=env, capture_output=True, check=False)
            assert b"Traceback" not in ran.stderr, (limit, ran)
            assert ran.returncode in (0, 15, 75), (limit, ran)
            assert len(ran.stdout.splitlines()) <= 1, (limit, ran)


def test_help_says_the_statuses_and_the_limits(nereus: Nereus) -> None:
    text = nereus("--help").text
    for verb in VERBS:
        assert f"  {verb.name} " in text
    for status, meaning in MEANINGS.items():
        assert f"{status}  {meaning}" in text
    assert "10 years" in nereus("schedule", "--help").text
    assert nereus("--version").text.startswith("nereus ")


def test_arguments_that_are_not_utf_8_are_refused_where_text_is_meant(nereus: Nereus) -> None:
    for flag in (b"--reason", b"--id", b"--tag", b"--correlation"):
        ran = nereus.process("schedule", "--json", "--in", "1h", flag, b"a=\xff", "--", "true")
        assert (ran.status, ran.document["error"]) == (2, "USAGE"), flag


def test_stdin_is_bounded(nereus: Nereus) -> None:
    line = ("schedule", "--json", "--in", "1h", "--id", "x", "--stdin", "-", "--", "cat")
    assert nereus.process(*line, stdin=b"x" * (256 * 1024)).status == 0
    over = nereus.process(*line, stdin=b"x" * (256 * 1024 + 1))
    assert (over.status, over.document["details"]) == (2, {"field": "stdin"})


def test_the_longest_argument_fits(nereus: Nereus) -> None:
    assert nereus("schedule", "-q", "--in", "1h", "--id", "x", "--", "echo", "y" * 131_071).status == 0


def test_a_working_directory_that_is_gone_is_said(nereus: Nereus, tmp_path: Path) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    command = ("sh", "-c", script, "sh", *COMMAND)
    env = environment({"NEREUS_STORE": str(nereus.store)})
    tail = ("schedule", "-q", "--in", "1h")
    for flags, status in (((), 2), (("--cwd", "/"), 0)):
        ran = subprocess.run(
            [*command, *tail, *flags, "--", "true"], cwd=tmp_path, env=env, capture_output=True, check=False
        )
        assert ran.returncode == status, ran
        assert (b"--cwd" in ran.stderr) is (status == 2)
