"""Back-off: bounded, full jitter from the attempt's identity, and no number of failures too large."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.domain import retry
from nereus_cli.domain.instant import MILLISECOND, SECOND
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.domain.records import Policy

lengths = st.none() | st.integers(1, PRODUCTION.horizon_ns)


@given(lengths, lengths, st.integers(0, 5_000) | st.integers(0, 1 << 200), st.text(max_size=40))
def test_a_delay_stays_within_its_bounds(base: int | None, most: int | None, failures: int, attempt_id: str) -> None:
    delay = retry.delay_ns(Policy(retry_base_ns=base, retry_max_ns=most), failures, attempt_id)
    base, most = base or SECOND, most or 3600 * SECOND
    doubled = base << min(max(failures - 1, 0), 200)
    assert MILLISECOND <= delay <= max(min(doubled, most), MILLISECOND)


def test_five_thousand_failures_are_a_delay_like_any_other() -> None:
    assert {retry.delay_ns(Policy(), failures, "a") for failures in range(13, 5_001)} == {
        retry.delay_ns(Policy(), 5_000, "a")
    }
    assert retry.delay_ns(Policy(retry_base_ns=1, retry_max_ns=PRODUCTION.horizon_ns), 5_000, "a") < 1 << 63


def test_the_bound_doubles_from_the_base() -> None:
    delays = [retry.delay_ns(Policy(retry_base_ns=1 << 40, retry_max_ns=1 << 50), n, "a") for n in range(1, 15)]
    factors = [round(later / earlier) for earlier, later in pairwise(delays)]
    assert factors == [2] * 10 + [1] * 3


def test_the_jitter_is_full_and_fixed_by_the_attempt() -> None:
    delays = [retry.delay_ns(Policy(), 12, f"a{n}") / (2048 * SECOND) for n in range(1_000)]
    assert [sum(tenth <= 10 * delay < tenth + 1 for delay in delays) > 60 for tenth in range(10)] == [True] * 10
    assert retry.delay_ns(Policy(), 1, "na~attempt") == 608_293_209


@pytest.mark.parametrize(
    ("policy", "key", "wanted"),
    [
        (Policy(), None, False),
        (Policy(max_attempts=1), None, False),
        (Policy(max_attempts=2), None, True),
        (Policy(max_attempts=2), "k", False),
        (Policy(max_attempts=2, on_uncertain="wait"), None, False),
        (Policy(max_attempts=1, on_uncertain="retry"), None, True),
        (Policy(max_attempts=2, on_uncertain="probe"), None, False),
    ],
)
def test_the_default_for_unknown_effects(policy: Policy, key: str | None, wanted: bool) -> None:
    assert retry.despite_uncertainty(policy, key) is wanted


def test_the_shell_has_one_attempt_unless_told_otherwise() -> None:
    assert retry.max_attempts(Policy()) == 1
    assert retry.max_attempts(Policy(max_attempts=7)) == 7
