"""What is said when the log does not answer: uncertain is never success, and never failure."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from nereus_cli.cli.main import main
from nereus_cli.ports import Appended, CorruptLogError, EnqueueUncertainError, NotQueuedError
from nereus_cli.prepare.wishes import Prepared
from nereus_cli.store import Store
from tests.cli.dying import die_before_the_sync
from tests.cli.owning import Owning
from tests.cli.running import Nereus
from tests.cli.unsettled_states import Make, dead, uncertain

APPEND = Store.append
BATCH = '{"id":"a","in":"1h","argv":["true"]}\n{"id":"b","in":"1h","argv":["true"]}\n'


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException, *, write: bool) -> None:
    """``append`` raises, after or instead of writing."""

    def append(store: Store, prepared: Sequence[Prepared]) -> Sequence[Appended]:
        if write:
            APPEND(store, prepared)
        raise error

    monkeypatch.setattr(Store, "append", append)


@pytest.mark.parametrize("flags", [(), ("--id", "x")])
def test_uncertain_is_3_and_prints_the_line_that_repeats_it(
    nereus: Nereus, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    with monkeypatch.context() as patch:
        failing(patch, EnqueueUncertainError("the sync lock is held by process 7", holder=7), write=True)
        ran = nereus("schedule", "--json", *flags, "--in", "1h", "--", "echo", "a b", "--json")
    receipt = ran.document
    assert (ran.status, receipt["outcome"], receipt["position"], receipt["persisted_at"]) == (
        3,
        "UNCERTAIN",
        None,
        None,
    )
    assert receipt["command_id"]
    (line,) = [note for note in ran.notes if "the same command again" in note]
    words = shlex.split(line.partition("again: ")[2])
    assert words[0] == "nereus"
    assert main(words[1:]) == 0
    assert nereus.json("result", receipt["command_id"])[1]["duplicate"] is False
    assert nereus.json("status")[1]["counts"] == {"SCHEDULED": 1}


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (uncertain, ("resolve", "x", "--attempt", "1", "--published", "--evidence", 'it\'s "there"\n$HOME')),
        (uncertain, ("resolve", "--retry", "--attempt=1", "--evidence=resolve", "x")),
        (dead, ("dead", "replay", "x", "--in", "1h")),
        (dead, ("dead", "--json", "replay", "--new-key", "x")),
    ],
    ids=["verdict", "verdict with a verb in it", "replay", "replay with an option in between"],
)
def test_a_verdict_or_replay_that_may_be_in_the_log_is_repeated_as_the_same_command(
    nereus: Nereus, owning: Owning, monkeypatch: pytest.MonkeyPatch, make: Make, line: tuple[str, ...]
) -> None:
    make(nereus, owning)
    with monkeypatch.context() as patch:
        failing(patch, EnqueueUncertainError("the sync lock is held"), write=True)
        ran = nereus(*line)
    assert ran.status == 3
    (told,) = [note for note in ran.notes if "the same command again" in note]
    words = _shell_words(told.partition("again: ")[2])
    assert words[0] == "nereus"
    assert main(words[1:]) == 0
    events = [one for one in nereus("events", "--json").documents if one["event"] in ("resolve", "replay")]
    assert len({one["command_id"] for one in events}) == 1
    assert [one["event"] for one in nereus.json("show", "x")[1]["history"]].count(events[0]["event"].title()) == 1


def _shell_words(line: str) -> list[str]:
    ran = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True)
    return [os.fsdecode(word) for word in ran.stdout.split(b"\0")[:-1]]


def test_not_queued_is_an_error_document(nereus: Nereus, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, NotQueuedError("the append lock is held by process 7", holder=7), write=False)
    status, error = nereus.json("schedule", "--in", "1h", "--id", "x", "--", "true")
    assert (status, error["error"], error["details"]["holder"]) == (75, "TRY_LATER", 7)
    human = nereus("schedule", "--in", "1h", "--id", "x", "--", "true")
    assert human.notes == ["nereus: the append lock is held by process 7"]


def test_a_batch_stops_trying_after_the_log_refused(
    nereus: Nereus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "batch"
    file.write_text(BATCH)
    monkeypatch.setattr("nereus_cli.cli.lines.LINES_MAX", 1)
    for error, outcomes, status in (
        (NotQueuedError("full", errno=28), ["NOT_QUEUED", "NOT_QUEUED"], 75),
        (EnqueueUncertainError("maybe"), ["UNCERTAIN", "NOT_QUEUED"], 3),
        (EnqueueUncertainError("maybe", signal=signal.SIGINT), ["UNCERTAIN"], 3),
    ):
        with monkeypatch.context() as patch:
            failing(patch, error, write=False)
            ran = nereus("schedule", "--json", "--batch", str(file))
        assert (ran.status, [one["outcome"] for one in ran.documents]) == (status, outcomes)


def test_an_interrupt_is_130_only_if_nothing_was_written(nereus: Nereus, monkeypatch: pytest.MonkeyPatch) -> None:
    line = ("schedule", "--json", "--in", "1h", "--id", "x", "--", "true")
    for write, status in ((False, 130), (True, 0)):
        with monkeypatch.context() as patch:
            failing(patch, KeyboardInterrupt(), write=write)
            ran = nereus(*line)
        assert ran.status == status
        assert nereus("show", "x").status == (0 if write else 13)
        assert ran.documents[0].get("outcome") == ("APPLIED" if write else None)


def test_an_interrupt_behind_what_is_in_the_log_and_not_synced_is_3(
    nereus: Nereus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can say yet whether it is there to stay: "nothing was written" would be a lie."""
    nereus("init")

    def append(store: Store, prepared: Sequence[Prepared]) -> NoReturn:
        die_before_the_sync(Path(store.path), [one.payload for one in prepared])
        raise KeyboardInterrupt

    line = ("schedule", "--json", "--in", "1h", "--id", "x", "--", "true")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", append)
        ran = nereus(*line)
    assert (ran.status, ran.document["outcome"]) == (3, "UNCERTAIN")
    again = nereus(*line)
    assert (again.status, again.document["outcome"], again.document["duplicate"]) == (0, "APPLIED", True)


def test_an_interrupt_behind_what_was_acknowledged_is_3(
    nereus: Nereus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "batch"
    file.write_text(BATCH)

    def append(store: Store, prepared: Sequence[Prepared]) -> Sequence[Appended]:
        if store.log.bounds().last:
            raise KeyboardInterrupt
        return APPEND(store, prepared)

    monkeypatch.setattr("nereus_cli.cli.lines.LINES_MAX", 1)
    monkeypatch.setattr(Store, "append", append)
    ran = nereus("schedule", "--json", "--batch", str(file))
    assert (ran.status, [one["message_id"] for one in ran.documents]) == (3, ["a"])
    assert ran.notes[-1].startswith("nereus: interrupted: run the same line again")
    assert (nereus("show", "a").status, nereus("show", "b").status) == (0, 13)


def test_what_is_on_disk_but_cannot_be_answered_is_15(nereus: Nereus, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(*_: object) -> None:
        raise CorruptLogError("bad", file="f", position=1)

    monkeypatch.setattr(Store, "answer", answer)
    ran = nereus("schedule", "--json", "--in", "1h", "--id", "x", "--", "true")
    assert (ran.status, ran.document["outcome"]) == (15, "QUEUED")
    assert "queued, but not answered" in ran.notes[0]


def test_a_result_that_is_not_durable_yet_is_pending(nereus: Nereus, monkeypatch: pytest.MonkeyPatch) -> None:
    from nereus_cli.log.files import FileLog
    from nereus_cli.ports import Bounds

    nereus("schedule", "-q", "--in", "1h", "--id", "x", "--", "true")
    monkeypatch.setattr(FileLog, "bounds", lambda _: Bounds(1, 1, 2))
    monkeypatch.setattr("nereus_cli.cli.asking._SYNC_WAIT_S", 0.01)
    status, error = nereus.json("result", "somebody")
    assert (status, error["error"]) == (15, "PENDING")


def broken(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.EMFILE, "Too many open files")


@pytest.mark.parametrize("where", ["presence", "receipt", "close"])
@pytest.mark.parametrize("machine", [True, False])
def test_what_is_on_disk_is_never_said_to_have_failed(
    nereus: Nereus, monkeypatch: pytest.MonkeyPatch, where: str, *, machine: bool
) -> None:
    """Whatever goes wrong behind the append: asking for the owner, making the receipt, closing the files."""
    from nereus_cli.render import human
    from nereus_cli.render import machine as documents

    nereus("init")
    places: dict[str, list[tuple[object, str]]] = {"presence": [(Store, "presence")], "close": [(Store, "close")]}
    places["receipt"] = [(human, "receipt_line"), (documents, "receipt")]
    line = ("schedule", "--in", "1h", "--id", "x", "--", "true")
    with monkeypatch.context() as patched:
        patched.setattr(Store, "refuse_unreadable", lambda _: None)
        for owner, name in places[where]:
            patched.setattr(owner, name, broken)
        ran = nereus(*(("--json",) if machine else ()), *line)
    assert ran.status == 0, ran
    assert nereus.json("show", "x")[1]["state"] == "SCHEDULED"


def test_an_owner_that_cannot_be_asked_is_none(nereus: Nereus, monkeypatch: pytest.MonkeyPatch) -> None:
    nereus("init")
    (nereus.store / "owner" / "sock").touch()
    look = os.open

    def refused(path: Any, *rest: Any, **more: Any) -> int:  # noqa: ANN401 -- those of os.open
        if path == f"{nereus.store}/owner":
            broken()
        return look(path, *rest, **more)

    monkeypatch.setattr(os, "open", refused)
    status, receipt = nereus.json("schedule", "--in", "1h", "--id", "x", "--", "true")
    assert (status, receipt["outcome"], receipt["daemon"]) == (0, "APPLIED", "none")
