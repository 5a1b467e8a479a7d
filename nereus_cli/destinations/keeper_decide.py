"""What became of attempts whose daemon is gone: locks, evidence, doors, evidence again, in this order.

A lock that is free means that everything its keeper had to say is in its file by now; so locks are asked first.
A door that is missing is closed, so that its attempt cannot start later. That it did not start earlier is proven
only if the evidence would have shown it: if the newest file begun before the Admission is of this boot and is the one
its keeper wrote. A reboot, a copied store, a file system mounted anew, or evidence that was deleted leave it unknown.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

import msgspec

from nereus_cli.destinations.keeper_evidence import Evidence, Head, Trace
from nereus_cli.destinations.keeper_facts import Closed, Ended, NotStarted
from nereus_cli.destinations.keeper_store import UNPROVEN, Store, live_evidence, open_keeper, open_store, shut_door

NO_KEEPER_BEFORE: Final = "no evidence reaches back to its Admission"
OTHER_BOOT: Final = "the machine was started anew since its Admission"
COPIED: Final = "the evidence is a copy, or its file system was mounted anew: what the keeper wrote may be lost"
KEEPER_DIED: Final = "its keeper died before it could report the end"
KEEPER_ERRED: Final = "its keeper failed while it started it"
NO_TRACE: Final = "its door was opened, the evidence that tells by whom is gone"
DOUBTED: Final = "an owner before closed its door without proof that it had not run"


class OpenAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt without Outcome, as its Admission has it: where its door is, and the boot id (16 bytes) and the
    clock that counts suspend of the frame that holds it."""

    attempt_id: str
    directory: int
    boot_id: bytes
    admitted_boot_ns: int


class DoorClosed(msgspec.Struct, frozen=True, kw_only=True):
    """It never started and never will: an owner or a keeper closed its door first."""

    attempt_id: str


class StillOpen(msgspec.Struct, frozen=True, kw_only=True):
    """Its keeper lives and will report it. ``pid`` is None between its door and the report of its start."""

    attempt_id: str
    pid: int | None
    started_at_ns: int | None


class NoEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody can tell any more, and nobody will. It may still run under ``pid``; nothing signals it."""

    attempt_id: str
    reason: str
    pid: int | None
    started_at_ns: int | None
    timed_out: bool
    stopped: bool


Verdict = Ended | NotStarted | DoorClosed | StillOpen | NoEvidence


def decide(store: Store, attempt: OpenAttempt, boot_id: bytes) -> Verdict:
    """As ``decide_all``, for one."""
    return decide_all(store, (attempt,), boot_id)[attempt.attempt_id]


def decide_all(store: Store, attempts: Iterable[OpenAttempt], boot_id: bytes) -> dict[str, Verdict]:
    """Decide what can be decided, in one pass; ``boot_id`` names the present boot. Only StillOpen may change later.

    Raises OSError if the store cannot be read or a door cannot be closed (full disk): then nothing is known yet."""
    opened = open_store(store)
    try:
        return _Decision(opened, attempts, boot_id).verdicts()
    finally:
        os.close(opened)


class _Decision:
    """One pass over one store."""

    def __init__(self, store: int, attempts: Iterable[OpenAttempt], boot_id: bytes) -> None:
        self._store = store
        self._attempts = {attempt.attempt_id: attempt for attempt in attempts}
        self._boot_id = boot_id

    def verdicts(self) -> dict[str, Verdict]:
        live = self._locks()
        evidence = Evidence(self._store, self._attempts.keys())
        try:
            evidence.refresh()
            heads = evidence.heads()
            undecided = [one for one in self._attempts.values() if _final(evidence.trace(one.attempt_id)) is None]
            doors = {one.attempt_id: self._door(one, heads) for one in undecided}
            evidence.refresh()
            return {
                attempt_id: _final(evidence.trace(attempt_id))
                or self._open(one, evidence.trace(attempt_id), doors[attempt_id], live, heads)
                for attempt_id, one in self._attempts.items()
            }
        finally:
            evidence.close()

    def _locks(self) -> dict[str, bool]:
        directory = open_keeper(self._store)
        try:
            return live_evidence(directory)
        finally:
            os.close(directory)

    def _door(self, attempt: OpenAttempt, heads: list[Head]) -> str | None:
        proven = self._doubt(attempt, heads) is None
        return shut_door(self._store, attempt.directory, attempt.attempt_id, proven=proven)

    def _doubt(self, attempt: OpenAttempt, heads: list[Head]) -> str | None:
        """Why a missing door would prove nothing."""
        if attempt.boot_id != self._boot_id:
            return OTHER_BOOT
        here = self._boot_id.hex()
        before = [head for head in heads if head.boot_id == here and head.boot_ns <= attempt.admitted_boot_ns]
        if not before:
            return NO_KEEPER_BEFORE
        return None if max(before, key=lambda head: head.boot_ns).own else COPIED

    def _open(
        self, attempt: OpenAttempt, trace: Trace | None, door: str | None, live: dict[str, bool], heads: list[Head]
    ) -> Verdict:
        """What has a door and no end."""
        if door is not None and door != UNPROVEN:
            return DoorClosed(attempt_id=attempt.attempt_id)
        if door == UNPROVEN:
            return _unknown(attempt, trace, self._doubt(attempt, heads) or DOUBTED)
        if trace is None or not trace.files:
            return _unknown(attempt, trace, OTHER_BOOT if attempt.boot_id != self._boot_id else NO_TRACE)
        # A file that is not in the list was begun after the locks were asked: its keeper is taken to live.
        if not trace.lost and any(live.get(name, True) for name in trace.files):
            started = trace.started
            return StillOpen(
                attempt_id=attempt.attempt_id,
                pid=started.pid if started else None,
                started_at_ns=started.at_ns if started else None,
            )
        if attempt.boot_id != self._boot_id:
            return _unknown(attempt, trace, OTHER_BOOT)
        return _unknown(attempt, trace, KEEPER_ERRED if trace.lost else KEEPER_DIED)


def _final(trace: Trace | None) -> Ended | NotStarted | DoorClosed | None:
    if trace is None:
        return None
    if isinstance(trace.end, Closed):
        return DoorClosed(attempt_id=trace.end.attempt_id)
    return trace.end


def _unknown(attempt: OpenAttempt, trace: Trace | None, reason: str) -> NoEvidence:
    started = trace.started if trace else None
    return NoEvidence(
        attempt_id=attempt.attempt_id,
        reason=reason,
        pid=started.pid if started else None,
        started_at_ns=started.at_ns if started else None,
        timed_out=bool(trace and trace.timed_out),
        stopped=bool(trace and trace.stopped),
    )
