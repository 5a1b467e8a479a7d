"""Mutants that no test noticed when others planted them: what is said of an interrupt, whom an owner waits for, and
from when on a wait counts."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

OVERLOOKED: Final = (
    Mutant(
        "what-is-in-the-log-unsynced-called-not-written",
        "cli/sending.py",
        "    if found or store.log.bounds().last > bounds.durable:\n",
        "    if found:\n",
        "130 would say that nothing was written of what the next sync makes durable",
        ("cli/test_sending.py::test_an_interrupt_behind_what_is_in_the_log_and_not_synced_is_3",),
    ),
    Mutant(
        "interrupt-behind-what-was-acknowledged-called-nothing",
        "cli/sending.py",
        "        return exits.UNCERTAIN\n",
        "        return exits.INTERRUPTED\n",
        "130 would say that nothing was written, behind lines that were acknowledged",
        ("cli/test_sending.py::test_an_interrupt_behind_what_was_acknowledged_is_3",),
    ),
    Mutant(
        "queued-behind-what-no-owner-can-read",
        "cli/sending.py",
        "            self._store.refuse_unreadable()\n",
        "",
        "commands would be acknowledged that stand behind a record which no owner passes (I13)",
        ("cases/test_f_log.py::test_b061_nothing_is_queued_behind_damage",),
    ),
    Mutant(
        "projection-written-without-its-lock",
        "daemon.py",
        "        rows.acquire(seconds=5)\n",
        "        pass\n",
        "an owner and a reader that catches up would write the same rows (I4)",
        ("organs/test_lease.py::test_an_owner_does_nothing_while_somebody_else_writes_the_projection",),
    ),
    Mutant(
        "what-a-dead-writer-left-never-synced",
        "daemon.py",
        "            self._log.barrier()\n            self._behind = None\n",
        "            self._behind = None\n",
        "what stands in the log would not take effect until somebody else writes",
        ("e2e/test_owner.py::test_what_a_writer_left_unsynced_when_it_died_is_delivered_by_a_running_daemon",),
    ),
    Mutant(
        "keeper-that-has-just-begun-called-dead",
        "destinations/keeper_decide.py",
        "live.get(name, True)",
        "live.get(name, False)",
        "an attempt that runs would be settled without its end (I8)",
        ("keeper/test_decide.py::test_a_keeper_that_began_behind_the_look_at_the_locks_is_alive",),
    ),
    Mutant(
        "wait-counted-from-what-the-command-says",
        "domain/settlement.py",
        "RetryWait(place.persisted_at,",
        "RetryWait(outcome.ended_at or place.persisted_at,",
        "an end found late, or by a wrong clock, would shorten the agreed wait or draw it out (I14)",
        ("domain/test_settlement.py::test_a_wait_begins_with_the_record_of_the_failure_whatever_the_command_says",),
    ),
)
