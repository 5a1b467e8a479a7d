"""How long to wait before the next attempt, and whether there is one."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from nereus_cli.domain.instant import DAY, SECOND
from nereus_cli.domain.outcome import Code
from nereus_cli.domain.records import Policy

SHELL_ATTEMPTS: Final = 1
BASE_NS: Final = SECOND
CEILING_NS: Final = 3_600 * SECOND
RETRY_AFTER_MAX_NS: Final = DAY
NOT_BEGUN: Final = frozenset({Code.DOOR_CLOSED, Code.NO_RESOURCES})
_SCALE: Final = 1 << 64


def max_attempts(policy: Policy) -> int:
    """Admissions a generation may have."""
    return SHELL_ATTEMPTS if policy.max_attempts is None else policy.max_attempts


def despite_uncertainty(policy: Policy, key: str | None) -> bool:
    """Whether an attempt of unknown effect is followed by another, which may deliver twice. A key stands for an
    order, and more than one attempt for the wish to see it done; what was stated goes before both."""
    if policy.on_uncertain is None:
        return key is None and max_attempts(policy) > 1
    return policy.on_uncertain == "retry"


def delay_ns(policy: Policy, failures: int, attempt_id: str) -> int:
    """Exponential back-off with full jitter drawn from the attempt's identity, at least a millisecond.

    The exponent is capped before the power is computed, so that no number of failures can overflow."""
    base = BASE_NS if policy.retry_base_ns is None else policy.retry_base_ns
    ceiling = CEILING_NS if policy.retry_max_ns is None else policy.retry_max_ns
    doublings = min(max(failures - 1, 0), max(ceiling // max(base, 1), 1).bit_length())
    bound = min(base << doublings, ceiling)
    draw = int.from_bytes(sha256(f"nereus.jitter/1\0{attempt_id}".encode()).digest()[:8], "big")
    return max(bound * draw // _SCALE, SECOND // 1_000)
