"""All that changes state: ``apply(facts, record) -> Change``. Pure; the same log prefix gives the same state (I4).

Two halves: what a client command does (``commands``) and what an owner record does (``mutations``). This module
keeps the owner chain: a record that does not continue it, or is not of the current epoch, is void (I11).
"""

from __future__ import annotations

import msgspec

from nereus_cli.domain import commands, mutations
from nereus_cli.domain.facts import Change, Facts, OwnerFact, Place, Verdict
from nereus_cli.domain.limits import Limits
from nereus_cli.domain.records import Command, Mutation, OwnerAcquired


class Chain(msgspec.Struct, frozen=True):
    """The link of an owner record as the fold needs it."""

    epoch: int
    prev: int


def apply_command(facts: Facts, command: Command, place: Place, limits: Limits) -> Change:
    """What a client command does at its position. A repeat of a known command does nothing at all (I5)."""
    facts = msgspec.structs.replace(facts, head=msgspec.structs.replace(facts.head, applied=place.position))
    if facts.result is not None:
        return Change(facts.head)
    return commands.decide(facts, command, place, limits)


def apply_mutation(facts: Facts, mutation: Mutation, chain: Chain, place: Place, limits: Limits) -> Change:
    """What an owner record does at its position: void unless it continues the one chain."""
    head = msgspec.structs.replace(facts.head, applied=place.position)
    expected = head.epoch + 1 if isinstance(mutation, OwnerAcquired) else head.epoch
    if chain.prev != head.owner_position or chain.epoch != expected:
        return Change(head, verdict=Verdict.VOID)
    head = msgspec.structs.replace(head, owner_position=place.position)
    if isinstance(mutation, OwnerAcquired):
        owner = OwnerFact(
            place.position, chain.epoch, place.persisted_at, mutation.host, mutation.pid, mutation.inode, place.boot_id
        )
        return Change(msgspec.structs.replace(head, epoch=chain.epoch, owner=owner), verdict=Verdict.TAKEN)
    return mutations.decide(msgspec.structs.replace(facts, head=head), mutation, place, limits)


def skip(facts: Facts, place: Place) -> Change:
    """A record that cannot be decoded is counted and stepped over, never in silence (I13)."""
    head = facts.head
    first = place.position if head.quarantined_first is None else head.quarantined_first
    return Change(
        msgspec.structs.replace(head, applied=place.position, quarantined=head.quarantined + 1, quarantined_first=first)
    )
