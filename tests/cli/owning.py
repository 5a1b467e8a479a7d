"""An owner without a daemon: the test appends its records, so that any state is one line away."""

from __future__ import annotations

import time
from pathlib import Path

from nereus_cli.codec import encode_mutation
from nereus_cli.domain.identity import generated_attempt_id
from nereus_cli.domain.outcome import Basis, Code, Disposition, SideEffect
from nereus_cli.domain.records import Admission, Expire, Mutation, Outcome, OwnerAcquired, Usage
from nereus_cli.ports import OwnerHead
from nereus_cli.store import open_store

PUBLISHED = (SideEffect.PUBLISHED, None, Disposition.NONE, Code.EXIT_0)
DEAD = (SideEffect.NOT_PUBLISHED, Basis.REFUSED, Disposition.PERMANENT, Code.EXIT_NONZERO)
UNKNOWN = (SideEffect.UNKNOWN, None, Disposition.UNCERTAIN, Code.SIGNALED)
Ending = tuple[SideEffect, Basis | None, Disposition, Code]


class Owning:
    """Each call acquires a new epoch and appends behind it."""

    def __init__(self, store: Path) -> None:
        self._store = str(store)

    def append(self, *mutations: Mutation) -> None:
        with open_store(self._store) as store:
            head = store.view().head()
            acquired = encode_mutation(OwnerAcquired("here", 1, 1, "0"))
            writer = store.log.claim(OwnerHead(head.owner_position, head.epoch), acquired)
            writer.append([encode_mutation(one) for one in mutations])

    def admit(self, message_id: str) -> str:
        """An attempt in progress; its id."""
        with open_store(self._store) as store:
            message = store.view().messages([message_id])[message_id]
        attempt_id = generated_attempt_id(time.time_ns() // 1_000_000, bytes(10))
        now = max(time.time_ns(), message.deliver_at)
        self.append(
            Admission(message_id, message.generation, attempt_id, message.descriptor_hash, earliest=now, latest=now)
        )
        return attempt_id

    def end(self, message_id: str, attempt_id: str, how: Ending, usage: Usage | None = None) -> None:
        """The attempt has ended so."""
        effect, basis, disposition, code = how
        signal = 9 if code is Code.SIGNALED else None
        exit_code = {Code.EXIT_0: 0, Code.EXIT_NONZERO: 3}.get(code)
        self.append(Outcome(message_id, attempt_id, effect, code, disposition, basis, exit_code, signal, usage=usage))

    def expire(self, message_id: str, instant_ns: int) -> None:
        self.append(Expire(message_id, 0, instant_ns))
