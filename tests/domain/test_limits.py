"""The maxima and how they relate."""

from __future__ import annotations

import msgspec
import pytest

from nereus_cli.codec import encode_command
from nereus_cli.domain.checks import exceeds
from nereus_cli.domain.limits import PRODUCTION, TINY, Limits
from nereus_cli.domain.records import At, Shell
from tests.domain.story import command, schedule


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"record_bytes_max": 1 << 19}, "must fit one record together"),
        ({"segment_bytes_max": PRODUCTION.record_bytes_max}, "at least one record of the largest size"),
        ({"argument_bytes_max": PRODUCTION.arguments_bytes_max + 1}, "cannot be larger than all of them"),
    ],
)
def test_limits_that_contradict_each_other_are_refused(changed: dict[str, int], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Limits(**changed)


@pytest.mark.parametrize("limits", [PRODUCTION, TINY], ids=["PRODUCTION", "TINY"])
def test_the_largest_input_arguments_and_environment_fit_one_record(limits: Limits) -> None:
    size = limits.argument_bytes_max
    words = [b"x" * (size - 1)] * (limits.arguments_bytes_max // size)
    entry = (b"N", b"v" * (min(limits.environment_bytes_max, size) - 3))
    text = "t" * limits.text_bytes_max
    shell = Shell(tuple(words), environment=(entry,), stdin=b"i" * limits.inline_bytes_max)
    stated = schedule("m" * 128, target=shell, when=At(text, "Z"))
    largest = command(
        stated, "c" * 128, requested_by=text, host=text, reason=text, correlation=text, traceparent=text, instant=1
    )
    assert exceeds(largest, limits) is None
    assert len(encode_command(largest)) <= limits.record_bytes_max


def test_limits_cannot_be_changed_in_passing() -> None:
    with pytest.raises(AttributeError):
        PRODUCTION.tags_max = 1  # type: ignore[misc] # that is what is tried
    assert msgspec.structs.replace(PRODUCTION, tags_max=1).tags_max == 1
