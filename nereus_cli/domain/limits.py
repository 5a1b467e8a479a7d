"""Every maximum, in one place. Tests run with TINY so that each boundary is crossed all the time."""

from __future__ import annotations

import msgspec

from nereus_cli.domain.instant import DAY, SECOND


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes, times in nanoseconds, the rest are counts."""

    record_bytes_max: int = 1 << 20
    segment_bytes_max: int = 64 << 20
    inline_bytes_max: int = 256 << 10
    argument_bytes_max: int = 131_071
    arguments_bytes_max: int = 512 << 10
    environment_bytes_max: int = 128 << 10
    path_bytes_max: int = 4_095
    text_bytes_max: int = 4_096
    tags_max: int = 64
    tag_bytes_max: int = 256
    priority_max: int = 1_000_000
    attempts_max: int = 10_000
    uncounted_attempts_max: int = 5
    horizon_ns: int = 3_653 * DAY
    retry_window_ns: int = 7 * DAY
    id_ahead_ns: int = 3_600 * SECOND
    output_bytes_max: int = 1 << 20
    fold_records_max: int = 50_000
    window_messages_max: int = 10_000
    apply_batch_max: int = 2_000
    turn_admissions_max: int = 256
    attempt_directory_span: int = 4_096

    def __post_init__(self) -> None:
        """The relations that everything else relies on. That all of a command together fits one record is
        asked of each command when it is prepared: many small parts weigh more than what is counted here."""
        content = self.inline_bytes_max + self.arguments_bytes_max + self.environment_bytes_max
        if content + 16 * self.text_bytes_max > self.record_bytes_max:
            msg = "the largest input, arguments and environment must fit one record together"
            raise ValueError(msg)
        if self.record_bytes_max >= self.segment_bytes_max:
            msg = "a segment must hold at least one record of the largest size"
            raise ValueError(msg)
        if self.argument_bytes_max > self.arguments_bytes_max:
            msg = "one argument cannot be larger than all of them"
            raise ValueError(msg)


PRODUCTION = Limits()
TINY = Limits(
    record_bytes_max=8_192,
    segment_bytes_max=9_216,
    inline_bytes_max=2_048,
    argument_bytes_max=1_024,
    arguments_bytes_max=2_048,
    environment_bytes_max=1_024,
    text_bytes_max=128,
    fold_records_max=8,
    window_messages_max=3,
    apply_batch_max=2,
    turn_admissions_max=2,
    attempt_directory_span=4,
)
