"""How long to wait before the next attempt, and whether there is one."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.outcome import Code
from nereus_cli.domain.records import Policy

SHELL_ATTEMPTS: Final = 1
BASE_NS: Final = SECOND
CEILING_NS: Final = 3_600 * SECOND
NOT_BEGUN: Final = frozenset({Code.DOOR_CLOSED, Code.NO_RESOURCES})
_SCALE: Final = 1 << 64


def max_attempts(policy: Policy) -> int:
    """Admissions a generation may have."""
    return SHELL_ATTEMPTS if policy.max_attempts is None else policy.max_attempts


def delay_ns(policy: Policy, failures: int, attempt_id: str) -> int:
    """Exponential back-off with full jitter drawn from the attempt's identity, at least a millisecond.

    The exponent is capped before the power is computed, so that no number of failures can overflow."""
    base = BASE_NS if policy.retry_base_ns is None else policy.retry_base_ns
    ceiling = CEILING_NS if policy.retry_max_ns is None else policy.retry_max_ns
    doublings = min(failures - 1, max(ceiling // max(base, 1), 1).bit_length())
    bound = min(base << doublings, ceiling)
    draw = int.from_bytes(sha256(f"nereus.jitter/1\0{attempt_id}".encode()).digest()[:8], "big")
    return max(bound * draw // _SCALE, SECOND // 1_000)
