"""Folding the log: records in, changes out, over any source of facts.

Facts are fetched for a whole batch before the first record is judged, so that apply never reads. What changed
is kept in a batch on top of the source: the owner writes it to the projection, a reader just looks through it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from nereus_cli.codec import UndecodableError, decode_command, decode_mutation
from nereus_cli.domain.apply import Chain, apply_command, apply_mutation, skip
from nereus_cli.domain.facts import Change, Facts, Head, Place, Result
from nereus_cli.domain.limits import Limits
from nereus_cli.domain.message import Message
from nereus_cli.domain.records import Command, Record
from nereus_cli.ports import Batch, FactsSource, LogRecord

_RUN_BYTES: Final = 8 << 20


class Applied(msgspec.Struct, frozen=True):
    """One record with what it meant and did; ``record`` is None when it was quarantined."""

    position: int
    record: Record | None
    change: Change


class Fold:
    """A source of facts and what has been applied on top of it."""

    def __init__(self, source: FactsSource, limits: Limits) -> None:
        """``source`` must not move while the fold is used, except by ``settle``."""
        self._source = source
        self._limits = limits
        self.batch = empty_batch(source.head())

    @property
    def head(self) -> Head:
        """The head after the last record applied."""
        return self.batch.head

    def apply(self, records: Sequence[LogRecord]) -> list[Applied]:
        """Applies consecutive records; raises NewerRecordError before changing anything."""
        decoded = [(record, decode_record(record)) for record in records]
        messages, results = self._facts(item for _, item in decoded)
        return [self._one(record, item, messages, results) for record, item in decoded]

    def settle(self) -> Batch:
        """Hands over what was gathered, for the source to store, and starts anew on top of it."""
        batch, self.batch = self.batch, empty_batch(self.batch.head)
        return batch

    def _facts(self, items: Iterable[Record | None]) -> tuple[dict[str, Message], dict[str, Result]]:
        message_ids, command_ids = set(), set()
        for item in items:
            if isinstance(item, Command):
                command_ids.add(item.command_id)
            named = named_message(item)
            if named:
                message_ids.add(named)
        wanted = message_ids - self.batch.messages.keys()
        asked = command_ids - self.batch.results.keys()
        messages = dict(self._source.messages(wanted)) if wanted else {}
        results = dict(self._source.results(asked)) if asked else {}
        return messages, results

    def _one(
        self, record: LogRecord, item: Record | None, messages: Mapping[str, Message], results: Mapping[str, Result]
    ) -> Applied:
        batch = self.batch
        place = Place(record.position, record.persisted_at, record.boot_id, record.monotonic_ns)
        name = named_message(item)
        message = batch.messages.get(name) or messages.get(name) if name else None
        if item is None:
            change = skip(Facts(batch.head), place)
        elif isinstance(item, Command):
            known = batch.results.get(item.command_id) or results.get(item.command_id)
            change = apply_command(Facts(batch.head, known, message), item, place, self._limits)
        else:
            link = record.link
            chain = Chain(-1, -1) if link is None else Chain(link.epoch, link.prev)
            change = apply_mutation(Facts(batch.head, None, message), item, chain, place, self._limits)
        _gather(batch, change)
        return Applied(record.position, item, change)


class Nothing:
    """The source of a fold from the very beginning."""

    def head(self) -> Head:
        """Before the first record."""
        return Head()

    def results(self, command_ids: Collection[str]) -> Mapping[str, Result]:  # noqa: ARG002 -- the port's shape
        """None are known."""
        return {}

    def messages(self, message_ids: Collection[str]) -> Mapping[str, Message]:  # noqa: ARG002 -- the port's shape
        """None are known."""
        return {}


def empty_batch(head: Head) -> Batch:
    """Nothing has changed since ``head``."""
    return Batch(head, {}, {}, {}, {}, [])


def named_message(item: Record | None) -> str:
    """The message a record names, or the empty string."""
    if isinstance(item, Command):
        return getattr(item.stated, "message_id", "")
    return getattr(item, "message_id", "")


def batches(records: Iterator[LogRecord], size: int) -> Iterator[list[LogRecord]]:
    """Runs of at most ``size`` records, and of little more than eight megabytes: memory is bounded by the run (I16)."""
    batch: list[LogRecord] = []
    held = 0
    for record in records:
        batch.append(record)
        held += len(record.payload)
        if len(batch) >= size or held >= _RUN_BYTES:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def decode_record(record: LogRecord) -> Record | None:
    """What a record says, or None if it has to be quarantined; raises NewerRecordError."""
    try:
        return decode_command(record.payload) if record.link is None else decode_mutation(record.payload)
    except UndecodableError:
        return None


def _gather(batch: Batch, change: Change) -> None:
    batch.head = change.head
    if change.message is not None:
        batch.messages[change.message.message_id] = change.message
        for attempt in change.attempts:
            batch.attempts[change.message.message_id, attempt.number] = attempt
    if change.result is not None:
        batch.results[change.result.command_id] = change.result
    if change.history is not None:
        batch.history.append(change.history)
    if change.descriptor is not None:
        batch.descriptors[change.descriptor.position] = change.descriptor
