"""WHERE IT IS ALL PUT TOGETHER: the one place that names concrete parts.

A store is a directory of mode 0700:

    store.json     what it is and in which format, written once
    log/           the segments, their marks and locks: the truth
    projection/    what the log adds up to; may be deleted at any time
    owner/         the owner's lock, socket and beat
    keeper/        the keeper's lock, socket and evidence
    attempts/      one output file an attempt: its door
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Self

import msgspec

from nereus_cli import founding, trust
from nereus_cli.answers import Answer, conflict, differing
from nereus_cli.clock import HostClock
from nereus_cli.codec import UndecodableError, decode_command
from nereus_cli.disk import SystemDisk, is_directory, stands
from nereus_cli.domain.facts import Descriptor
from nereus_cli.domain.limits import PRODUCTION, Limits
from nereus_cli.domain.message import Message
from nereus_cli.domain.outcome import Reason
from nereus_cli.domain.records import Command
from nereus_cli.fold import Applied, Fold, Nothing, batches, decode_record, named_message
from nereus_cli.log.files import FileLog
from nereus_cli.ports import Appended, CorruptLogError, ProjectionStalledError, Views
from nereus_cli.prepare.wishes import Prepared
from nereus_cli.presence import Presence, probe, read_beat

if TYPE_CHECKING:
    from nereus_cli.destinations.shell import ShellDestination
    from nereus_cli.lease import FileLease
    from nereus_cli.projection.sqlite import SqliteProjection


class NoStoreError(Exception):
    """Nothing was ever scheduled there, and this verb does not create a store."""


class Store:
    """One opened store. Close it; nothing it acknowledged depends on that."""

    def __init__(self, path: str, log: FileLog, clock: HostClock, limits: Limits) -> None:
        """``open_store`` is how to get one."""
        self.path = path
        self.log = log
        self.clock = clock
        self.limits = limits
        self._readers: list[SqliteProjection] = []
        self._kept: tuple[SqliteProjection | None, Fold] | None = None

    def close(self) -> None:
        """Gives back descriptors."""
        for reader in self._readers:
            reader.close()
        self.log.close()

    def __enter__(self) -> Self:
        """For ``with``."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes."""
        self.close()

    # ------------------------------------------------------------------------------------------ asking, answering

    def append(self, prepared: Sequence[Prepared]) -> Sequence[Appended]:
        """QUEUED: durable on return. Raises what CommandLog.append raises."""
        return self.log.append([one.payload for one in prepared])

    def refuse_unreadable(self) -> None:
        """Raises CorruptLogError or NewerRecordError when an owner would stop at what stands in the log already, so
        that nothing is queued behind it. A living owner has read it all; else what the last one left is read."""
        self.log.bounds()
        presence = self.presence()
        if presence.state == "alive":
            return
        beat = presence.beat or read_beat(f"{self.path}/owner")
        for record in self.log.read(beat.applied if beat else 0):
            decode_record(record)

    def answer(self, prepared: Sequence[Prepared], appended: Sequence[Appended]) -> list[Answer]:
        """APPLIED or REJECTED, by folding the log through the last of these positions: no lock, no write."""
        view = self._view_again(max(one.position for one in appended))
        results = view.results([one.command.command_id for one in prepared])
        answers = []
        for one, place in zip(prepared, appended, strict=True):
            name = getattr(one.command.stated, "message_id", "")
            message = view.messages([name]).get(name) if name else None
            result = results.get(one.command.command_id)
            if result is None:
                answers.append(Answer(prepared=one, appended=place, message=message))
            elif result.command_hash != one.command.command_hash:
                answers.append(self._compared(conflict(one, place, result, message), result.position))
            else:
                answer = Answer(prepared=one, appended=place, result=result, message=message)
                clash = result.reason is Reason.MESSAGE_CONFLICT and message is not None
                answers.append(self._compared(answer, message.created_position) if clash and message else answer)
        return answers

    def command_at(self, position: int) -> Command | None:
        """The client command at a position, while the log still holds it."""
        record = self.log.record_at(position)
        if record is None or record.link is not None:
            return None
        with contextlib.suppress(UndecodableError):
            return decode_command(record.payload)
        return None

    def _compared(self, answer: Answer, position: int) -> Answer:
        """With the names of what differs from the command at ``position``, and when that one is due."""
        original = self.command_at(position)
        if original is None:
            return answer
        names = differing(answer.prepared.command.stated, original.stated)
        due = answer.message.deliver_at if answer.message else None
        return msgspec.structs.replace(answer, differing=names, original=original, original_deliver_at=due)

    # --------------------------------------------------------------------------------------------------- looking

    def view(self, through: int | None = None) -> Views:
        """The state as of the durable end, or of ``through``: stored rows and the tail of the log over them."""
        from nereus_cli.projection.overlay import Overlay

        base, fold = self._folded(through)
        return Overlay(base, fold.batch, self._descriptor_at)

    def _view_again(self, through: int) -> Views:
        """As ``view``, going on from the last time while that fits in memory: a batch asks behind each of its parts,
        and must not fold the whole tail for every one. Earlier views from here move along."""
        from nereus_cli.projection.overlay import Overlay

        if self._kept is not None:
            base, fold = self._kept
            done = base.head().applied if base else 0
            if fold.head.applied <= through <= done + self.limits.fold_records_max:
                self._fold(fold, through)
                return Overlay(base, fold.batch, self._descriptor_at)
        self._kept = base, fold = self._folded(through)
        return Overlay(base, fold.batch, self._descriptor_at)

    def _folded(self, through: int | None) -> tuple[SqliteProjection | None, Fold]:
        base = self._reader()
        applied = base.head().applied if base else 0
        end = self.log.bounds().durable if through is None else through
        # A mark may be old, after a medium was pulled and put back; what stands behind it is there all the same.
        if base and applied > max(end, self.log.bounds().last):
            raise self._leading(applied)
        if end - applied > self.limits.fold_records_max and self._catch_up():
            base = self._reader()
        fold = Fold(base or Nothing(), self.limits)
        self._fold(fold, end)
        return base, fold

    def forget_views(self) -> None:
        """Gives back the snapshots of earlier views, for those who look again and again."""
        self._kept = None
        while self._readers:
            self._readers.pop().close()

    def presence(self) -> Presence:
        """Whether an owner lives and makes progress."""
        now = self.clock.read()
        return probe(f"{self.path}/owner", now.monotonic_ns, now.boot_id)

    def replayed(self, directory: str, through: int) -> SqliteProjection:
        """The state folded from the log alone into a fresh file below ``directory``."""
        from pathlib import Path

        from nereus_cli.projection.sqlite import SqliteProjection

        fresh = SqliteProjection(Path(directory) / "replay.db", self.log.store_id, write=True)
        for batch in batches(self.log.read(0, through=through), self.limits.apply_batch_max):
            fold = Fold(fresh, self.limits)
            fold.apply(batch)
            fresh.commit(fold.settle())
        return fresh

    def stored(self) -> SqliteProjection | None:
        """The stored rows as they are, or None when there are none that can be used."""
        return self._reader()

    def _fold(self, fold: Fold, through: int) -> None:
        if fold.head.applied < through:
            for batch in batches(self.log.read(fold.head.applied, through=through), self.limits.apply_batch_max):
                fold.apply(batch)
                # Contents stay in the log: a reader fetches the few it shows.
                fold.batch.descriptors.clear()

    def _descriptor_at(self, position: int) -> Descriptor | None:
        command = self.command_at(position)
        return None if command is None else Descriptor(position, named_message(command), command)

    def _reader(self) -> SqliteProjection | None:
        reader = _rows_of(self.path, self.log.store_id)
        if reader is not None:
            self._readers.append(reader)
        return reader

    def _catch_up(self) -> bool:
        """A tail too long for memory goes to the projection, if nobody else is writing it."""
        from nereus_cli.ports import BusyError

        lease = self.projection_lease()
        try:
            lease.acquire()
        except BusyError:
            return False
        try:
            projection = self.open_projection()
            try:
                for _ in self.pull(projection, None):
                    pass
            finally:
                projection.close()
        finally:
            lease.release()
        return True

    # ---------------------------------------------------------------------------------------------- for the owner

    def pull(self, projection: SqliteProjection, through: int | None) -> Iterator[list[Applied]]:
        """Applies what is durable to the stored rows, batch by batch; yields what each record did."""
        records = self.log.read(projection.head().applied, through=through)
        for batch in batches(records, self.limits.apply_batch_max):
            fold = Fold(projection, self.limits)
            applied = fold.apply(batch)
            projection.commit(fold.settle())
            yield applied

    def open_projection(self) -> SqliteProjection:
        """For the holder of the projection lock. Rows of another layout are folded anew; rows that are ahead of
        the log prove a lost tail and are never rebuilt in silence."""
        from pathlib import Path

        from nereus_cli.projection.sqlite import ProjectionError, SqliteProjection

        path = Path(self.path) / "projection" / "state.db"
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        try:
            projection = SqliteProjection(path, self.log.store_id, write=True)
        except ProjectionError:
            for name in (path, path.with_name("state.db-wal"), path.with_name("state.db-shm")):
                name.unlink(missing_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            projection = SqliteProjection(path, self.log.store_id, write=True)
        try:
            self._refuse_leading(projection.head().applied)
        except BaseException:
            projection.close()
            raise
        return projection

    def another_log(self) -> FileLog:
        """The same log once more, for a thread of its own."""
        return _log_of(self.path, self.clock, self.limits, create=False)

    def owner_lease(self) -> FileLease:
        """The lock of the one owner."""
        from nereus_cli.lease import FileLease

        return FileLease(f"{self.path}/owner/lock", "this store")

    def projection_lease(self) -> FileLease:
        """The lock of whoever writes the projection."""
        from nereus_cli.lease import FileLease

        return FileLease(f"{self.path}/projection/lock", "the projection")

    def destination(self) -> ShellDestination:
        """Where effects happen."""
        from nereus_cli.destinations.shell import ShellDestination

        return ShellDestination(self.path, self.limits, self.clock.read().boot_id)

    def _refuse_leading(self, applied: int) -> None:
        """The barrier brings an old mark up to date before anything is said to be lost."""
        if applied > self.log.bounds().durable and applied > self.log.barrier():
            raise self._leading(applied)

    def _leading(self, applied: int) -> CorruptLogError:
        return CorruptLogError(
            f"the projection has applied position {applied}, but the log ends before it: its tail is lost. "
            "If this store is a copy, delete the copy's projection directory",
            file=f"{self.path}/log",
            position=self.log.bounds().durable + 1,
        )


def open_store(path: str, *, create: bool = False, limits: Limits = PRODUCTION) -> Store:
    """Opens the store at ``path``; with ``create`` makes a missing one. Touches nothing that a newer version wrote.

    Raises NoStoreError, trust.UnsafeError, trust.ForeignError, NewerFormatError, CorruptLogError, OSError."""
    path = os.path.abspath(path)
    new = create and not founding.is_store(path)
    if new:
        trust.judge_place(path)
    changed = founding.make_directory(path) if new else ()
    if not is_directory(path):
        there = stands(path)
        msg = f"{path} is not a directory" if there else f"there is no store at {path}: nereus init makes one"
        raise NoStoreError(msg)
    trust.judge(path)
    if new:
        founding.furnish(path, SystemDisk(), changed)
    if not founding.is_store(path):
        msg = f"{path} is not a store: it has no {founding.DESCRIPTION}"
        raise NoStoreError(msg)
    founding.check_format(path)
    if not is_directory(f"{path}/log"):
        # Its folder is made before the description: without one the log was lost, and a new one would hide that.
        msg = f"the store {path} has lost its log"
        raise CorruptLogError(msg, file=f"{path}/log", position=1)
    clock = HostClock()
    # Rows were folded from a log: one that has lost its segments since then must not begin anew.
    log = _log_of(path, clock, limits, create=create and not stands(f"{path}/projection/state.db"))
    return Store(path, log, clock, limits)


def _log_of(path: str, clock: HostClock, limits: Limits, *, create: bool) -> FileLog:
    applied = partial(_applied, path)
    return FileLog(f"{path}/log", disk=SystemDisk(), clock=clock, limits=limits, create=create, applied=applied)


def _applied(path: str, store_id: bytes) -> int:
    """How far the stored rows have applied the log of this store; 0 where there are none that can be used.

    Raises ProjectionStalledError when they cannot be asked now: what they prove must not be overlooked. Where nothing
    may be written, nothing can be written behind a lost tail either."""
    try:
        rows = _opened_rows(path, store_id)
    except ProjectionStalledError:
        if os.access(f"{path}/projection", os.W_OK):
            raise
        return 0
    if rows is None:
        return 0
    try:
        return rows.head().applied
    finally:
        rows.close()


def _rows_of(path: str, store_id: bytes) -> SqliteProjection | None:
    """The stored rows, or None: then the log is folded from its beginning."""
    try:
        return _opened_rows(path, store_id)
    except ProjectionStalledError:
        return None


def _opened_rows(path: str, store_id: bytes) -> SqliteProjection | None:
    file = f"{path}/projection/state.db"
    if not stands(file):
        return None
    from pathlib import Path

    from nereus_cli.projection.sqlite import ProjectionError, SqliteProjection

    try:
        return SqliteProjection(Path(file), store_id, write=False)
    except ProjectionError:
        return None


def message_of(view: Views, message_id: str) -> Message | None:
    """One message, or None."""
    return view.messages([message_id]).get(message_id)
