"""Mutants of the locks, the mark, the note, and of what signals may do meanwhile."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

LOCKING: Final = (
    Mutant(
        "append-lock-not-taken",
        "log/commit.py",
        "        handle.room.append_lock.take(handle.append_wait_s, guard)\n",
        "",
        "two writers would give out one position (I1)",
        (
            "log/test_locks.py::test_every_call_is_made_under_the_locks_it_needs[rotating]",
            "log/test_locks.py::test_every_call_is_made_under_the_locks_it_needs[appending]",
        ),
    ),
    Mutant(
        "append-lock-dropped-early",
        "log/commit.py",
        "                return _put(handle, batch, mark)\n",
        "                handle.room.append_lock.drop()\n                return _put(handle, batch, mark)\n",
        "another writer could begin at the same offset (I1)",
        (
            "log/test_locks.py::test_every_call_is_made_under_the_locks_it_needs[appending]",
            "log/test_locks.py::test_every_call_is_made_under_the_locks_it_needs[rotating]",
        ),
    ),
    Mutant(
        "sync-lock-not-taken",
        "log/commit.py",
        "            if room.sync_lock.try_take():\n",
        "            if room.sync_lock is not None:\n",
        "two syncs in flight: the failure of one hides behind the success of the other (I1)",
        (
            "log/test_locks.py::test_every_call_is_made_under_the_locks_it_needs[appending]",
            "log/test_locks.py::test_every_call_is_made_under_the_locks_it_needs[rotating]",
        ),
    ),
    Mutant(
        "sync-lock-dropped-early",
        "log/commit.py",
        "                try:\n                    round_of_sync(handle)\n",
        "                try:\n                    room.sync_lock.drop()\n                    round_of_sync(handle)\n",
        "two syncs in flight, two repairs at once (I1)",
        (
            "log/test_locks.py::test_every_call_is_made_under_the_locks_it_needs[appending]",
            "log/test_locks.py::test_every_call_is_made_under_the_locks_it_needs[rotating]",
        ),
    ),
    Mutant(
        "locks-in-the-other-order",
        "log/commit.py",
        """    room.sync_lock.take(handle.sync_wait_s, guard)
    try:
        room.append_lock.take(handle.append_wait_s)
        try:
            action(handle)
        finally:
            room.append_lock.drop()
    finally:
        room.sync_lock.drop()
""",
        """    room.append_lock.take(handle.append_wait_s, guard)
    try:
        room.sync_lock.take(handle.sync_wait_s)
        try:
            action(handle)
        finally:
            room.sync_lock.drop()
    finally:
        room.append_lock.drop()
""",
        "two processes could wait for each other until both give up (I1)",
        (
            "log/test_locks.py::test_sync_is_taken_before_append_where_both_are_needed[an unreadable note]",
            "log/test_locks.py::test_sync_is_taken_before_append_where_both_are_needed[a torn tail]",
        ),
    ),
    Mutant(
        "repair-without-the-append-lock",
        "log/commit.py",
        "    handle.room.append_lock.take(handle.append_wait_s)\n    try:\n        repair.settle(handle)\n",
        "    try:\n        repair.settle(handle)\n",
        "a writer could append to a segment while its end is being decided (I1)",
        (
            "log/test_locks.py::test_every_call_is_made_under_the_locks_it_needs[a sync that fails]",
            "log/test_edges.py::test_somebody_elses_record_at_my_position_is_not_mine",
        ),
    ),
    Mutant(
        "rotation-without-the-append-lock",
        "log/commit.py",
        "    handle.room.append_lock.take(handle.append_wait_s)\n    try:\n        repair.rotate(",
        "    try:\n        repair.rotate(",
        "a writer could append behind a SEAL that is being written (I1)",
        ("log/test_locks.py::test_every_call_is_made_under_the_locks_it_needs[rotating]",),
    ),
    Mutant(
        "lock-kept-when-an-exception-follows-the-grant",
        "disk.py",
        "            # The exception may have come just behind the grant.\n            self.unlock(fd)\n",
        "",
        "a lock granted just as somebody gave up would be held by nobody for ever (I1)",
        ("test_disk.py::test_an_exception_just_behind_the_grant_leaves_the_lock_free",),
    ),
    Mutant(
        "mark-of-another-boot-believed",
        "log/handle.py",
        "mark is None or mark.boot_id != self.boot_id or self",
        "mark is None or self",
        "what a mark of before the power cut calls durable may be gone (I1)",
        (
            "log/test_locks.py::test_every_call_is_made_under_the_locks_it_needs[another boot, an unreadable note]",
            "log/test_locks.py::test_every_call_is_made_under_the_locks_it_needs[another boot, a torn tail]",
        ),
    ),
    Mutant(
        "mark-of-another-file-believed",
        "log/handle.py",
        " or self.room.inode_of(mark.ordinal) != mark.inode:",
        ":",
        "a copied or replaced segment would be read from an offset that is not its own (I13)",
        (
            "log/test_crash_table.py::test_c19_a_mark_of_a_segment_that_is_gone[1-the newest is missing]",
            "log/test_reading.py::test_a_log_that_lost_all_its_segments_is_not_believed",
        ),
    ),
    Mutant(
        "outrun-mark-believed",
        "log/handle.py",
        "        return mark if self.room.inode_of(mark.ordinal + 1) is None else None\n",
        "        return mark\n",
        "records would be appended to a segment that already has a successor (I1)",
        (
            "log/test_stale.py::test_an_old_mark_of_a_segment_that_was_poisoned_is_outrun",
            "log/test_stale.py::test_a_handle_that_stays_open_follows_a_mark_that_was_replaced",
        ),
    ),
    Mutant(
        "note-not-written",
        "log/repair.py",
        "    handle.write_note(first, last)\n    try:\n",
        "    try:\n",
        "a sync whose holder died would be taken for one that never was, and tried again (I1)",
        (
            "log/test_locks.py::test_no_segment_is_synced_without_a_note_and_no_mark_raised_without_a_sync",
            "log/test_order.py::test_the_first_append_of_a_new_log",
        ),
    ),
    Mutant(
        "note-not-respected-by-a-repair",
        "log/repair.py",
        "    elif handle.open_note(mark) is not None:\n        poison(handle, mark)\n",
        "",
        "a segment whose sync may have failed would be written on (I1)",
        (
            "log/test_crash_table.py::test_c03_a_sync_whose_holder_died",
            "log/test_crash_table.py::test_c04_a_sync_that_succeeded_and_was_not_told",
        ),
    ),
    Mutant(
        "note-not-respected-by-a-sync",
        "log/commit.py",
        "    if mark is None or handle.open_note(mark) is not None:\n",
        "    if mark is None:\n",
        "the sync after a failed one succeeds and proves nothing (I1)",
        (
            "log/test_crash_table.py::test_c03_a_sync_whose_holder_died",
            "log/test_crash_table.py::test_c04_a_sync_that_succeeded_and_was_not_told",
        ),
    ),
    Mutant(
        "note-not-respected-by-an-adoption",
        "log/repair.py",
        "    note = handle.own_note()\n",
        "    note = None\n",
        "whoever adopts would sync a segment whose sync may have failed into a success (I1)",
        ("log/test_edges.py::test_a_pipe_in_the_place_of_the_mark_says_nothing_and_hides_nothing",),
    ),
    Mutant(
        "unreadable-note-ignored",
        "log/room.py",
        "        return marks.UNREADABLE if found is None and self.disk.size(self._note_fd) else found\n",
        "        return found\n",
        "a note that cannot be read may have been an open one (I1)",
        ("log/test_crash_table.py::test_c17_a_note_that_cannot_be_read",),
    ),
    Mutant(
        "poison-flag-ignored",
        "log/commit.py",
        "    if note is not None and note.poisoned:\n        return None\n",
        "",
        "records would be written behind a failed sync (I1)",
        ("log/test_crash_table.py::test_c18_a_failed_sync_that_could_not_be_repaired",),
    ),
    Mutant(
        "poison-flag-not-written",
        "log/repair.py",
        "            handle.write_note(first, last, poisoned=True)\n",
        "            pass\n",
        "writers would not learn that the sync failed, and write behind it (I1)",
        ("log/test_crash_table.py::test_c18_a_failed_sync_that_could_not_be_repaired",),
    ),
    Mutant(
        "signals-not-masked",
        "log/guard.py",
        "            self._before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)\n",
        "            self._before = signal.pthread_sigmask(signal.SIG_BLOCK, ())\n",
        "a stopped or dying holder would keep everybody waiting, and its caller without an answer (I1)",
        ("log/test_processes.py::test_a_signal_behind_the_first_written_byte_leaves_the_answer_open",),
    ),
    Mutant(
        "interrupt-ignored-while-waiting",
        "log/guard.py",
        "            if pending:\n",
        "            if pending is None:\n",
        "an interrupt would be lost (I1)",
        ("log/test_waiting.py::test_a_guard_makes_an_interrupt_part_of_the_answer",),
    ),
)
