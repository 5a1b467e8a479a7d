"""Mutants of the owner's turns and of the keeper: when an attempt may begin, and who may say how it ended."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

DOING: Final = (
    Mutant(
        "admission-not-read-back",
        "engine/turns.py",
        "        if claim is None or message is None or verdict is not Verdict.ADMITTED:\n",
        "        if claim is None or message is None:\n",
        "an attempt whose message was cancelled at a lower position would start (I3)",
        ("engine/test_turns.py::test_a_verdict_other_than_admitted_never_starts_anything_whatever_stands_beside_it",),
    ),
    Mutant(
        "started-before-its-admission",
        "engine/turns.py",
        "        self._claims[attempt_id] = Claim(command, work, failure)\n",
        "        self._claims[attempt_id] = Claim(command, work, failure)\n"
        "        early = Attempt(attempt_id, message.attempts + 1, message.generation, 0, reading.latest, 0, 0)\n"
        "        self._destination.start([Start(message, early, command, work)])\n",
        "a child would run while its admission is not durable yet (I3)",
        (
            "engine/test_turns.py::test_only_what_is_read_back_as_admitted_starts",
            "engine/test_turns.py::test_an_admission_says_what_is_attempted_and_by_which_reading",
        ),
    ),
    Mutant(
        "clock-step-gates-nothing",
        "engine/turns.py",
        "        if self.admitting and not gated:\n",
        "        if self.admitting:\n",
        "right behind a step of the clock messages would be delivered early or expire (I2)",
        ("engine/test_turns.py::test_while_the_clock_is_gated_or_no_more_is_admitted_outcomes_are_still_written",),
    ),
    Mutant(
        "clock-step-not-felt",
        "clock.py",
        "        self._steady_from = now.monotonic_ns\n",
        "",
        "the gate would never close behind a step (I2)",
        ("organs/test_clock.py::test_a_step_gates_until_a_second_of_steadiness",),
    ),
    Mutant(
        "concurrency-without-a-limit",
        "engine/turns.py",
        "        free = self._concurrency - len(self._running) - len(self._claims)\n",
        "        free = self._concurrency\n",
        "a backlog would be started all at once (I15)",
        (
            "engine/test_turns.py::test_when_a_turn_may_have_something_to_do",
            "engine/test_turns.py::test_outcomes_come_before_what_is_due",
        ),
    ),
    Mutant(
        "window-without-a-limit",
        "engine/timeline.py",
        "            if len(self._heap) > 2 * self._limit:\n",
        "            if len(self._heap) < 0:\n",
        "memory would grow with what is pending (I16)",
        ("engine/test_timeline.py::test_memory_is_bounded_by_the_window",),
    ),
    Mutant(
        "refused-outcome-forgotten",
        "engine/turns.py",
        "                self._outcomes.append(record)\n",
        "                continue\n",
        "an outcome that a full disk refused would be lost, its attempt open for ever (I8)",
        (
            "engine/test_turns.py::test_when_the_log_takes_nothing_everything_is_there_again",
            "engine/test_turns.py::test_everything_is_attempted_once_due_and_never_before",
        ),
    ),
    Mutant(
        "kill-forgotten-by-a-new-owner",
        "engine/turns.py",
        "            if start.attempt.kill:\n",
        "            if False:\n",
        "a stop --kill would be lost with the daemon that should have carried it out (I9)",
        ("engine/test_turns.py::test_an_end_that_was_asked_for_while_nobody_owned_it_is_seen_to",),
    ),
    Mutant(
        "owner-lock-not-taken",
        "lease.py",
        "            self._lock.acquire(timeout=seconds)\n",
        "            pass\n",
        "two daemons would own one store (I11)",
        ("organs/test_lease.py::test_an_unreadable_pid_is_left_out_of_the_message",),
    ),
    Mutant(
        "owner-goes-on-in-another-epoch",
        "daemon.py",
        "        if (head.epoch, head.owner_position) != (mine.epoch, mine.position):\n",
        "        if False:\n",
        "an owner that was succeeded would go on dispatching (I11)",
        ("e2e/test_owner.py::test_an_owner_with_nothing_to_write_ends_too_when_it_meets_another",),
    ),
    Mutant(
        "door-not-closed-by-recovery",
        "destinations/keeper_store.py",
        "    try:\n        _link(store, directory, target, door)\n    except",
        "    try:\n        os.lstat(store)\n    except",
        "an attempt called NOT_SENT could still be started by a keeper that was slow (I7)",
        (
            "keeper/test_decide.py::test_no_door_though_it_was_taken",
            "keeper/test_decide.py::test_no_door_and_a_keeper_older_than_the_admission",
        ),
    ),
    Mutant(
        "door-that-stands-taken-for-closed",
        "destinations/keeper_store.py",
        "        return os.readlink(door, dir_fd=store) if stat.S_ISLNK(mode) else None\n",
        "        return target\n",
        "an attempt that was started would be called NOT_SENT and run again (I7)",
        (
            "keeper/test_decide.py::test_no_door_and_no_evidence_from_before[nothing]",
            "keeper/test_decide.py::test_no_door_and_no_evidence_from_before[a keeper begun later]",
        ),
    ),
    Mutant(
        "door-opened-late",
        "keeper/service.py",
        "            door = try_door(self.place.store, start.directory, start.attempt_id)\n",
        "            door = Door.OPENED\n",
        "a child would run before anybody can see that its attempt began (I7)",
        (
            "keeper/test_faults.py::test_daemon_killed_while_the_keeper_stands_still[taken-1]",
            "keeper/test_faults.py::test_daemon_killed_while_the_keeper_stands_still[received-1]",
        ),
        also=(
            (
                "        else:\n            self.launch(start)\n",
                (
                    "        else:\n            self.launch(start)\n"
                    "            try_door(self.place.store, start.directory, start.attempt_id)\n"
                ),
            ),
        ),
    ),
    Mutant(
        "door-not-exclusive",
        "keeper/door.py",
        "os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND",
        "os.O_WRONLY | os.O_CREAT | os.O_APPEND",
        "an attempt would be started twice, or though its door was closed (I7)",
        ("keeper/test_faults.py::test_the_same_start_twice_runs_once",),
    ),
    Mutant(
        "closed-door-not-respected",
        "keeper/service.py",
        "        if door is Door.CLOSED:\n",
        "        if door is None:\n",
        "the daemon would never hear that an attempt was not begun (I7)",
        (
            "keeper/test_faults.py::test_daemon_killed_while_the_keeper_stands_still[received-1]",
            "keeper/test_faults.py::test_daemon_killed_while_the_keeper_stands_still[taken-1]",
        ),
    ),
    Mutant(
        "keeper-lock-not-taken",
        "keeper/place.py",
        "                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "                pass\n",
        "two keepers would serve one store, and liveness could not be told (I7)",
        ("keeper/test_parts.py::test_a_second_keeper_finds_the_place_taken",),
    ),
    Mutant(
        "evidence-not-locked",
        "keeper/evidence.py",
        "            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "",
        "a keeper that lives would be taken for dead, its children for lost (I8)",
        (
            "keeper/test_life.py::test_evidence_that_is_removed_is_begun_again",
            "keeper/test_life.py::test_a_copied_store_proves_nothing_of_what_was_open",
        ),
    ),
    Mutant(
        "door-tried-before-it-was-announced",
        "keeper/service.py",
        '        self.evidence.add(b"".join(line("TAKEN", start.attempt_id) for start in batch))\n',
        "",
        "a child of a keeper that died at once would leave no trace of whose it was (I8)",
        (
            "keeper/test_faults.py::test_daemon_killed_while_the_keeper_stands_still[door-1]",
            "keeper/test_faults.py::test_daemon_killed_while_the_keeper_stands_still[door-3]",
        ),
    ),
    Mutant(
        "evidence-not-read-again-behind-the-door",
        "destinations/keeper_decide.py",
        "for one in undecided}\n            evidence.refresh()\n",
        "for one in undecided}\n",
        "an end written between evidence and door would be called UNKNOWN (I8)",
        (
            "keeper/test_decide.py::test_the_keeper_says_its_mount_and_both_sides_see_the_same",
            "keeper/test_decide.py::test_what_is_said_while_the_door_is_looked_at_is_heard",
        ),
    ),
    Mutant(
        "copied-evidence-believed",
        "destinations/keeper_decide.py",
        ".own else COPIED\n",
        ".own or True else COPIED\n",
        "in a copied store, attempts that run elsewhere would be called NOT_SENT (I7)",
        ("keeper/test_decide.py::test_no_door_and_the_evidence_is_a_copy",),
    ),
    Mutant(
        "evidence-of-another-boot-believed",
        "destinations/keeper_decide.py",
        "        if attempt.boot_id != self._boot_id:\n            return OTHER_BOOT\n        here",
        "        here",
        "what a power cut took from the evidence would count as never begun (I7)",
        ("keeper/test_decide.py::test_no_door_and_the_machine_was_started_anew",),
    ),
    Mutant(
        "evidence-that-began-later-believed",
        "destinations/keeper_decide.py",
        " and head.boot_ns <= attempt.admitted_boot_ns]",
        "]",
        "evidence that was deleted and begun anew would prove that nothing ran (I7)",
        ("keeper/test_decide.py::test_no_door_and_no_evidence_from_before[a keeper begun later]",),
    ),
    Mutant(
        "damaged-evidence-believed",
        "destinations/keeper_facts.py",
        '        if body and raw[:_CHECK_BYTES] == b"%08x " % crc32(body):\n',
        "        if body:\n",
        "a line cut by a full disk would be read as another fact (I8)",
        ("keeper/test_decide.py::test_no_door_and_no_evidence_from_before[a broken head]",),
    ),
    Mutant(
        "timeout-not-said",
        "keeper/service.py",
        "                attempt.timed_out = True\n",
        "",
        "a command that exits well in its grace would count as done in time (I8)",
        (
            "keeper/test_ladder.py::test_a_timeout_ends_everything[a group]",
            "keeper/test_ladder.py::test_a_timeout_ends_everything[deaf to TERM]",
        ),
    ),
    Mutant(
        "reaped-leader-signalled",
        "keeper/ladder.py",
        "        if attempt.exit is not None:\n            return\n        for number",
        "        for number",
        "a process group that reuses the number would be killed (I15)",
        (
            "keeper/test_parts.py::test_the_group_of_a_leader_that_was_reaped_is_signalled_no_more[False]",
            "keeper/test_parts.py::test_the_group_of_a_leader_that_was_reaped_is_signalled_no_more[True]",
        ),
    ),
    Mutant(
        "output-without-a-cap",
        "keeper/output.py",
        "            self._keep(data[: self._room])\n",
        "            self._keep(data)\n",
        "a command that prints without end would fill the disk (I15)",
        (
            "keeper/test_output.py::test_the_bound_is_exact_and_the_total_is_told[11-10]",
            "keeper/test_output.py::test_five_megabytes_of_noise_on_both_streams",
        ),
    ),
    Mutant(
        "stdin-without-a-cap",
        "keeper/wire.py",
        "    if start.stdin is not None and len(start.stdin) > STDIN_BYTES_MAX:\n",
        "    if False:\n",
        "the keeper would hold what nobody of ours sends (I16)",
        ("keeper/test_wire.py::test_standard_input_is_taken_up_to_its_bound_and_no_further",),
    ),
    Mutant(
        "keeper-frame-without-a-cap",
        "keeper/wire.py",
        "        if length > FRAME_BYTES_MAX:\n",
        "        if False:\n",
        "noise on its socket would make the keeper wait and grow without end (I16)",
        ("keeper/test_wire.py::test_a_frame_without_end_is_refused_at_its_length",),
    ),
)
