"""What every child is told of itself."""

from __future__ import annotations

from nereus_cli.domain.outcome import Risk
from nereus_cli.ports import Start
from nereus_cli.wish.show import rfc3339


def attempt_environment(start: Start) -> dict[bytes, bytes]:
    """What every child is told of itself."""
    message, attempt = start.message, start.attempt
    deadline = ""
    if attempt.timeout_ns is not None:
        deadline = rfc3339(attempt.admitted_at + attempt.timeout_ns)
    others = any(a.side_effect is not None for a in message.open_attempts)
    risk = Risk.POSSIBLE if others and message.risk is Risk.NONE else message.risk
    values = {
        "NEREUS_MESSAGE_ID": message.message_id,
        "NEREUS_GENERATION": str(attempt.generation),
        "NEREUS_ATTEMPT": str(attempt.number),
        "NEREUS_ATTEMPT_ID": attempt.attempt_id,
        "NEREUS_IDEMPOTENCY_KEY": f"{message.message_id}:{message.key_generation}",
        "NEREUS_DELIVER_AT": rfc3339(message.deliver_at),
        "NEREUS_DUPLICATE_RISK": risk.value,
        "NEREUS_DEADLINE": deadline,
    }
    return {name.encode(): value.encode() for name, value in values.items()}
