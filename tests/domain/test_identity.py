"""Ids: which are allowed, how one gives another, and what a generated one says."""

from __future__ import annotations

import string
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.domain import identity
from nereus_cli.domain.instant import DAY, MILLISECOND

ALLOWED = string.ascii_letters + string.digits + "_:@=+~-"
ids = st.text(ALLOWED, min_size=1, max_size=128).filter(lambda text: not text.startswith("-"))
moments = st.integers(0, (1 << 48) - 1)
entropies = st.binary(min_size=10, max_size=10)


@given(st.one_of(ids, st.text(max_size=130), st.text(ALLOWED + ".", max_size=130)))
def test_an_id_is_what_the_contract_says(text: str) -> None:
    wanted = 1 <= len(text) <= 128 and set(text) <= set(ALLOWED) and not text.startswith("-")
    assert identity.is_id(text) is wanted


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        *((allowed, True) for allowed in ("a", "a" * 128, "a-", "1:2@3=4+5~6-7_8", "~")),
        *((refused, False) for refused in ("", "a" * 129, "-a", "a.b", "\u00e9", "a b", "a\n", "a/b", "a\0")),
    ],
)
def test_the_edges_of_what_an_id_may_be(text: str, allowed: bool) -> None:
    assert identity.is_id(text) is allowed


@given(moments, entropies)
def test_a_generated_id_is_a_uuid_of_version_7_with_its_instant(unix_ms: int, entropy: bytes) -> None:
    made = uuid.UUID(identity.uuid7(unix_ms, entropy))
    assert (made.version, made.variant, made.int >> 80) == (7, uuid.RFC_4122, unix_ms)
    for name, prefix in (
        (identity.generated_command_id(unix_ms, entropy), identity.COMMAND_PREFIX),
        (identity.generated_attempt_id(unix_ms, entropy), identity.ATTEMPT_PREFIX),
    ):
        assert identity.is_id(name)
        assert identity.is_generated(name, prefix)
        assert not identity.is_misformed(name)
        assert identity.made_at(name) == unix_ms * MILLISECOND


def test_every_random_bit_is_used() -> None:
    made = {identity.uuid7(5, (1 << bit).to_bytes(10, "big")) for bit in range(80)}
    assert len(made) == 74 + 1
    with pytest.raises(ValueError, match="ten random bytes"):
        identity.uuid7(0, b"123456789")


@given(moments, moments, entropies)
def test_generated_ids_sort_by_their_instant(first: int, second: int, entropy: bytes) -> None:
    names = [identity.generated_command_id(ms, entropy) for ms in (first, second)]
    assert (names[0] < names[1]) is (first < second)


@given(moments, entropies)
def test_the_ids_of_one_generated_pair_are_the_same_uuid_and_lead_to_each_other(ms: int, entropy: bytes) -> None:
    command_id = identity.generated_command_id(ms, entropy)
    message_id = identity.message_id_for(command_id)
    assert message_id == "nm~" + command_id.removeprefix("nc~")
    assert identity.command_id_for(message_id) == command_id
    assert identity.retry_until(command_id, 7 * DAY) == ms * MILLISECOND + 7 * DAY


@given(ids.filter(lambda text: not text.startswith(("nc~", "nm~"))))
def test_a_chosen_id_gives_the_other_one_for_ever(name: str) -> None:
    derived = identity.command_id_for(name), identity.message_id_for(name)
    assert len({*derived, name}) == 3
    assert all(identity.is_id(other) and not identity.is_misformed(other) for other in derived)
    assert identity.retry_until(name, 7 * DAY) is None
    assert identity.retry_until(derived[0], 7 * DAY) is None
    assert derived == (identity.command_id_for(name), identity.message_id_for(name))


def test_derived_ids_are_fixed_for_ever() -> None:
    assert identity.command_id_for("backup") == "dc~6e169b96bfaf472bd22d1985ea47c85017cf5ed6"
    assert identity.message_id_for("backup") == "dm~a3c876071a5cc7e4f57989100b35ceceee072d52"


@given(ids, ids)
def test_two_chosen_ids_never_share_a_derived_one(one: str, other: str) -> None:
    assert (identity.command_id_for(one) == identity.command_id_for(other)) is (one == other)


GENERATED = "nc~0190163d8694739bae3d7eb8d9e2a1b4"


@pytest.mark.parametrize(
    "broken",
    [
        "nc~",
        GENERATED[:-1],
        GENERATED + "0",
        GENERATED.replace("7", "4", 1)[:15] + "4" + GENERATED[16:],
        GENERATED[:19] + "7" + GENERATED[20:],
        GENERATED.upper().replace("NC", "nc"),
        "nm~not-a-uuid",
        GENERATED[:-1] + "g",
    ],
)
def test_a_reserved_prefix_before_anything_else_is_misformed(broken: str) -> None:
    assert identity.is_misformed(broken)
    assert not identity.is_generated(broken, broken[:3])


def test_a_well_formed_reserved_id_is_not_misformed_and_knows_its_own_prefix_only() -> None:
    assert not identity.is_misformed(GENERATED)
    assert identity.is_generated(GENERATED, "nc~")
    assert not identity.is_generated(GENERATED, "nm~")
