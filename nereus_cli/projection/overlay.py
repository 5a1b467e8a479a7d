"""State as a reader sees it: the stored rows with what the durable tail of the log changed on top, in memory.

Nothing is locked and nothing is written: applying is not owning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from heapq import merge

from nereus_cli.domain.facts import Descriptor, Head, History, Result
from nereus_cli.domain.message import TERMINAL, Attempt, Message, State
from nereus_cli.ports import Batch, Selection, Views
from nereus_cli.projection import rows


class Overlay:
    """``batch`` on top of ``base`` (None: the very beginning). Both must belong to one prefix of the log. ``fetch``
    gives the descriptors that the batch does not hold: contents can be large, and a reader wants few of them."""

    def __init__(
        self, base: Views | None, batch: Batch, fetch: Callable[[int], Descriptor | None] | None = None
    ) -> None:
        """Looks; never changes any of them."""
        self._fetch = fetch
        self._base = base
        self._batch = batch

    def head(self) -> Head:
        """As of the last record folded."""
        return self._batch.head

    def results(self, command_ids: Collection[str]) -> Mapping[str, Result]:
        """The results of those commands that are known."""
        mine = {name: self._batch.results[name] for name in command_ids if name in self._batch.results}
        return {**(self._base.results(command_ids) if self._base else {}), **mine}

    def messages(self, message_ids: Collection[str]) -> Mapping[str, Message]:
        """Those messages that are known."""
        mine = {name: self._batch.messages[name] for name in message_ids if name in self._batch.messages}
        return {**(self._base.messages(message_ids) if self._base else {}), **mine}

    def attempts_of(self, message_id: str) -> Sequence[Attempt]:
        """All attempts of a message by number."""
        below = {a.number: a for a in self._base.attempts_of(message_id)} if self._base else {}
        mine = {number: a for (name, number), a in self._batch.attempts.items() if name == message_id}
        return [attempt for _, attempt in sorted({**below, **mine}.items())]

    def history_of(self, message_id: str) -> Sequence[History]:
        """All that happened to a message, in log order."""
        below = list(self._base.history_of(message_id)) if self._base else []
        return below + [line for line in self._batch.history if line.message_id == message_id]

    def descriptor(self, position: int) -> Descriptor | None:
        """What the record at that position said to deliver."""
        found = self._batch.descriptors.get(position)
        if found is None and self._base is not None:
            found = self._base.descriptor(position)
        return found if found is not None or self._fetch is None else self._fetch(position)

    def select(self, selection: Selection) -> Iterator[Message]:
        """The chosen messages, in the order of (deliver_at, message_id)."""
        left = selection.limit
        changed = self._batch.messages
        mine = sorted((m for m in changed.values() if _chosen(m, selection)), key=_place)
        unlimited = _without_limit(selection)
        below = (m for m in self._base.select(unlimited) if m.message_id not in changed) if self._base else iter(())
        for message in merge(below, mine, key=_place):
            if left is not None and left <= 0:
                return
            yield message
            left = None if left is None else left - 1

    def counts(self) -> Mapping[State, int]:
        """How many messages are in each state."""
        totals = dict(self._base.counts()) if self._base else {}
        before = self._base.messages(self._batch.messages.keys()) if self._base else {}
        for message in before.values():
            totals[message.state] -= 1
        for message in self._batch.messages.values():
            totals[message.state] = totals.get(message.state, 0) + 1
        return {state: count for state, count in totals.items() if count}

    def due(self, through: int, limit: int) -> Sequence[tuple[int, str]]:
        """(timer, message_id) of the earliest messages whose timer is not above ``through``."""
        changed = self._batch.messages
        below = self._base.due(through, limit + len(changed)) if self._base else ()
        mine = ((m.timer, m.message_id) for m in changed.values() if m.timer is not None and m.timer <= through)
        return sorted([*(row for row in below if row[1] not in changed), *mine])[:limit]

    def open_messages(self) -> Sequence[Message]:
        """Messages that have an attempt in progress or of unknown effect."""
        changed = self._batch.messages
        below = self._base.open_messages() if self._base else ()
        kept = [m for m in below if m.message_id not in changed]
        mine = [m for m in changed.values() if m.open_attempts]
        return sorted([*kept, *mine], key=lambda message: message.message_id)

    def digest(self) -> str:
        """Over every row in key order; only for a fold from the very beginning."""
        if self._base is not None:
            msg = "a digest is taken of the whole state, not of a tail over rows"
            raise ValueError(msg)
        batch = self._batch
        history = sorted(batch.history, key=lambda line: (line.message_id, line.position))
        return rows.digest(
            batch.head,
            (
                ((rows.encode(m),) for _, m in sorted(batch.messages.items())),
                ((rows.encode(r),) for _, r in sorted(batch.results.items())),
                ((rows.encode(a),) for _, a in sorted(batch.attempts.items())),
                ((rows.encode(line),) for line in history),
                ((rows.encode(d.command),) for _, d in sorted(batch.descriptors.items())),
            ),
        )


def _place(message: Message) -> tuple[int, str]:
    return message.deliver_at, message.message_id


def _without_limit(selection: Selection) -> Selection:
    return Selection(
        states=selection.states,
        tags=selection.tags,
        lane=selection.lane,
        key=selection.key,
        due_before=selection.due_before,
        after=selection.after,
    )


def _chosen(message: Message, selection: Selection) -> bool:
    state = message.state
    return (
        (state in selection.states if selection.states else state not in TERMINAL)
        and set(selection.tags) <= set(message.tags)
        and selection.lane in (None, message.lane)
        and selection.key in (None, message.key)
        and (selection.due_before is None or message.deliver_at < selection.due_before)
        and (selection.after is None or _place(message) > selection.after)
    )
