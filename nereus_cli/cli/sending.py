"""Handing commands to the log and telling what became of each: the only path by which anything is written.

QUEUED is said when ``append`` has returned, and not before; from then on nothing may make it look as if it had failed.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from nereus_cli.answers import Answer
from nereus_cli.cli import exits, output
from nereus_cli.cli.exits import Failure, classify, together
from nereus_cli.ports import Appended, EnqueueUncertainError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nereus_cli.cli.call import Call
    from nereus_cli.prepare.wishes import Prepared
    from nereus_cli.store import Store


class Item(msgspec.Struct, frozen=True):
    """One command to send, or why there is none; ``line`` is where it was read, ``name`` the id it was to have."""

    prepared: Prepared | None = None
    failure: Failure | None = None
    line: int | None = None
    name: str | None = None


class Told(msgspec.Struct, frozen=True):
    """What became of an item: an answer with its status, or a failure."""

    item: Item
    status: int
    answer: Answer | None = None
    failure: Failure | None = None


class Sender:
    """Sends chunks of items to one store, opened when the first command is ready to go."""

    def __init__(self, call: Call, open_store: Callable[[], Store], *, wait: bool, single: bool) -> None:
        """``wait``: answer APPLIED or REJECTED. ``single``: one command, so that a failure is the whole answer."""
        self._call = call
        self._open = open_store
        self._wait = wait
        self._single = single
        self._store: Store | None = None
        self._broken: Failure | None = None
        self._hinted = False
        self._statuses: set[int] = set()
        self.acknowledged = False
        self.interrupted = False

    def send(self, items: Sequence[Item]) -> None:
        """One durable commit for all of them, then one receipt for each, in order."""
        ready = [item for item in items if item.prepared is not None]
        answers = iter(self._delivered([item.prepared for item in ready if item.prepared]))
        for item in items:
            told = next(answers) if item.prepared is not None else Told(item, 0, failure=item.failure)
            self._tell(msgspec.structs.replace(told, item=item))

    def finish(self) -> int:
        """The exit status of everything that was sent."""
        if self._store is not None:
            # What was acknowledged does not depend on how its files are closed.
            with contextlib.suppress(OSError):
                self._store.close()
        return together(self._statuses)

    # ------------------------------------------------------------------------------------------------- appending

    def _delivered(self, commands: list[Prepared]) -> list[Told]:
        if not commands:
            return []
        nothing = Item()
        if self._broken is not None:
            return [Told(nothing, self._broken.status, failure=self._broken) for _ in commands]
        try:
            store = self._opened()
            appended = self._appended(store, commands)
        except EnqueueUncertainError as error:
            output.note(f"uncertain: {error}; send the same bytes again")
            self._broken = Failure("TRY_LATER", "not tried, because what went before is uncertain", exits.LATER)
            self.interrupted = bool(error.signal)
            self._repeat_line(commands)
            return [Told(nothing, exits.UNCERTAIN, Answer(prepared=one)) for one in commands]
        except Exception as error:
            self._broken = classify(error)
            if self._single:
                raise self._broken from error
            return [Told(nothing, self._broken.status, failure=self._broken) for _ in commands]
        self.acknowledged = True
        if self._single:
            # What is left is short, and must end with the status of what is on disk.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return [Told(nothing, self._status(one), one) for one in self._answers(store, commands, appended)]

    def _opened(self) -> Store:
        if self._store is None:
            self._store = self._open()
            self._store.refuse_unreadable()
        return self._store

    def _appended(self, store: Store, commands: list[Prepared]) -> Sequence[Appended]:
        try:
            return store.append(commands)
        except KeyboardInterrupt:
            found = _found_again(store, commands)
            if found is None:
                raise
            return found

    def _answers(self, store: Store, commands: list[Prepared], appended: Sequence[Appended]) -> list[Answer]:
        queued = [Answer(prepared=one, appended=place) for one, place in zip(commands, appended, strict=True)]
        if not self._wait:
            return queued
        try:
            return store.answer(commands, appended)
        except Exception as error:  # noqa: BLE001 -- it is on disk: whatever keeps us from answering, it is queued
            output.note(f"queued, but not answered: {classify(error).message}")
            return queued

    def _status(self, answer: Answer) -> int:
        if answer.why is not None:
            return exits.REASONS[answer.why]
        return exits.PENDING if self._wait and answer.result is None else exits.DONE

    def _repeat_line(self, commands: list[Prepared]) -> None:
        """The exact line that sends the same command again."""
        if not self._single or self._call.verb.name == "submit":
            return
        from nereus_cli.render.text import shell_line

        words = [*map(_fs, self._call.argv)]
        if not {"id", "command-id"} & self._call.given() or "argument" in self._call.given():
            place = 0
            for part in self._call.verb.name.split():
                place = words.index(_fs(part), place) + 1
            if "command-id" not in self._call.given():
                words[place:place] = [b"--command-id", commands[0].command.command_id.encode()]
        output.note(f"the same command again: {shell_line([b'nereus', *words])}")

    # --------------------------------------------------------------------------------------------------- telling

    def _tell(self, told: Told) -> None:
        if told.failure is not None:
            self._tell_failure(told, told.failure)
            return
        if told.answer is None:
            return
        self._statuses.add(told.status)
        if self._single:
            self._call.status = told.status
        try:
            self._print(told.answer, told.status, None if self._single else told.item.line)
        except output.ReaderGone:
            raise
        except Exception as error:  # noqa: BLE001 -- it is on disk: whatever keeps us from saying so, the status says it
            with contextlib.suppress(Exception):
                output.note(f"the receipt could not be printed ({error}), it says: {_summary(told.answer)}")

    def _tell_failure(self, told: Told, failure: Failure) -> None:
        if self._single:
            raise failure
        self._statuses.add(failure.status)
        name = told.item.name
        if told.item.prepared is not None:
            name = getattr(told.item.prepared.command.stated, "message_id", name)
        where = f"line {told.item.line}: " if told.item.line else f"{name}: " if name else ""
        if self._call.json:
            from nereus_cli.render.machine import not_queued

            document = not_queued(failure.code, failure.message, failure.status, name, told.item.line)
            try:
                output.document(document)
                return
            except output.Unprintable as error:
                output.note(str(error))
        output.note(f"not queued: {where}{failure.message}")

    def _print(self, answer: Answer, status: int, line: int | None) -> None:
        from nereus_cli.render import machine

        if self._call.json:
            daemon = self._store.presence().state if self._store else "none"
            durability = self._store.log.durability.value if self._store else "none"
            document = machine.receipt(answer, daemon=daemon, durability=durability)
            output.document(document if line is None else document | {"line": line})
            return
        from nereus_cli.render.human import receipt_line

        if status not in (exits.DONE, exits.PENDING):
            output.note(receipt_line(answer))
        elif self._call.flag("quiet"):
            output.line(getattr(answer.prepared.command.stated, "message_id", ""))
        else:
            output.line(receipt_line(answer))
            self._hint(answer)

    def _hint(self, answer: Answer) -> None:
        """Nothing happens without a daemon: said once, to people."""
        from nereus_cli.render.machine import deliver_at, verb_of

        waits = answer.message is not None and answer.message.waits is not None
        moves = waits if verb_of(answer.prepared.command) == "resolve" else deliver_at(answer) is not None
        if self._hinted or self._store is None or not moves:
            return
        self._hinted = True
        state = self._store.presence().state
        if state == "none":
            output.note("no daemon: start `nereus run`")
        elif state == "stale":
            output.note("the daemon does not answer: see `nereus status`")


def send_all(sender: Sender, chunks: Iterable[Sequence[Item]]) -> int:
    """Every chunk; an interrupt after something was acknowledged must not say that nothing was written."""
    try:
        for chunk in chunks:
            sender.send(chunk)
            if sender.interrupted:
                break
    except KeyboardInterrupt:
        if not sender.acknowledged:
            raise
        output.note("interrupted: run the same line again, what is on disk is recognised")
        sender.finish()
        return exits.UNCERTAIN
    return sender.finish()


def _found_again(store: Store, commands: list[Prepared]) -> list[Appended] | None:
    """After an interrupt: where the commands stand if they are durable, None if nothing was written.

    Raises EnqueueUncertainError when that cannot be told."""
    bounds = store.log.bounds()
    first = max(bounds.first - 1, bounds.durable - 10 * len(commands) - 10_000)
    places: dict[bytes, Appended] = {}
    for record in store.log.read(first):
        places[record.payload] = Appended(record.position, record.persisted_at)
    found = [places[one.payload] for one in commands if one.payload in places]
    if len(found) == len(commands):
        return found
    if found or store.log.bounds().last > bounds.durable:
        raise EnqueueUncertainError("interrupted while it was being written", signal=signal.SIGINT)
    return None


def _summary(answer: Answer) -> str:
    from nereus_cli.render.human import receipt_line

    return receipt_line(answer)


def _fs(word: str) -> bytes:
    import os

    return os.fsencode(word)
