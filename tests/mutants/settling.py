"""What a person's verdict may and may not do, taken out piece by piece."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_TESTS: Final = "domain/test_resolving.py::"

SETTLING: Final = (
    Mutant(
        "verdict-over-a-recorded-outcome",
        "domain/resolving.py",
        "    if attempt is None or before == GIVE_UP:\n        raise Refused(Reason.ALREADY_SETTLED)\n",
        "    if attempt is None:\n        return None\n",
        "what its own outcome or another person settled would be called already so (I8)",
        (f"{_TESTS}test_an_attempt_that_its_own_outcome_settled_is_settled",),
    ),
    Mutant(
        "running-attempt-judged",
        "domain/resolving.py",
        "    if attempt is not None and attempt.side_effect is None:\n",
        "    if False:\n",
        "somebody's word would settle an attempt whose end nobody knows yet (I8)",
        (f"{_TESTS}test_what_is_in_progress_is_not_judged",),
    ),
    Mutant(
        "retry-beside-a-running-attempt",
        "domain/resolving.py",
        "    if any(a.side_effect is None for a in message.open_attempts):\n",
        "    if False:\n",
        "two attempts of one message would run at once (I7)",
        (f"{_TESTS}test_a_retry_is_not_asked_for_while_another_is_in_progress",),
    ),
    Mutant(
        "retry-of-what-was-stopped",
        "domain/resolving.py",
        "    if isinstance(message.condition, Uncertain) and message.condition.closing:\n",
        "    if False:\n",
        "what was to have no further admission would get one (I9)",
        (f"{_TESTS}test_what_was_to_have_no_further_admission_gets_none",),
    ),
    Mutant(
        "absence-counts-beside-an-unknown",
        "domain/resolving.py",
        "    if not all(a.given_up for a in unknown):\n        return was\n",
        "",
        "a message would be tried again while another attempt may have had its effect (I7)",
        (f"{_TESTS}test_none_may_be_unknown_before_absence_counts",),
    ),
    Mutant(
        "verdict-moves-another-generation",
        "domain/resolving.py",
        "    if attempt.generation == message.generation and message.state is State.UNCERTAIN:\n",
        "    if True:\n",
        "an attempt of an earlier generation, or of a message that ended, would move it (I6)",
        (f"{_TESTS}test_of_what_has_ended_only_risk_and_lists_change",),
    ),
    Mutant(
        "given-up-effect-forgotten",
        "domain/resolving.py",
        "if a.attempt_id != attempt.attempt_id or judged.side_effect is SideEffect.UNKNOWN\n",
        "if a.attempt_id != attempt.attempt_id\n",
        "an effect that may have happened would no longer count as a possible duplicate (I7)",
        (f"{_TESTS}test_giving_up_one_leaves_the_other_and_giving_up_all_ends_it",),
    ),
    Mutant(
        "duplicate-by-replay-not-asked-about",
        "domain/commands.py",
        "    if unsure and not stated.accept_duplicate:\n",
        "    if False:\n",
        "a replay would deliver twice without anybody having said so (I7)",
        (f"{_TESTS}test_a_possible_duplicate_has_to_be_accepted",),
    ),
    Mutant(
        "key-changed-by-a-replay",
        "domain/commands.py",
        "    if change.message is None or stated.new_key:\n",
        "    if True:\n",
        "a receiver that knows the old key could not tell the replay from another message (I7)",
        (f"{_TESTS}test_a_replay_is_a_new_generation_with_a_fresh_budget_and_the_old_key",),
    ),
    Mutant(
        "verdict-without-evidence",
        "domain/checks.py",
        '    return None if stated.evidence.strip() else "evidence"\n',
        "    return None\n",
        "an effect would be settled on no ground at all (I8)",
        (f"{_TESTS}test_what_cannot_be_a_verdict_is_outside_the_limits",),
    ),
    Mutant(
        "duplicate-never-confirmed",
        "domain/settlement.py",
        "    if published > 1:\n        return Risk.CONFIRMED\n",
        "",
        "two proven effects would still be called a possibility (I7)",
        (f"{_TESTS}test_a_retry_that_published_leaves_a_possible_duplicate_which_proof_moves",),
    ),
)
