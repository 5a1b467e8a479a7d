"""Golden bytes: what the first format wrote is written the same for ever, and read back the same.

A line of ``golden.txt`` is a kind, its hash if it has one, and its payload. A line is only ever added."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from nereus_cli import codec
from nereus_cli.domain.records import Mutation, Stated
from tests.codec.samples import MUTATIONS, STATED, sample

GOLDEN = Path(__file__).with_name("golden.txt")
LINES = {name: (digest, bytes.fromhex(payload)) for name, digest, payload in
         (line.split("|") for line in GOLDEN.read_text(encoding="ascii").splitlines())}  # fmt: skip


def test_there_is_a_line_for_every_kind() -> None:
    assert LINES.keys() == {*STATED, *MUTATIONS}
    assert {type(stated) for stated in STATED.values()} == set(get_args(Stated))
    assert {type(mutation) for mutation in MUTATIONS.values()} == set(get_args(Mutation))


@pytest.mark.parametrize("name", STATED)
def test_a_command_is_written_read_and_hashed_as_ever(name: str) -> None:
    digest, payload = LINES[name]
    command = sample(STATED[name])
    assert codec.encode_command(command) == payload
    assert codec.decode_command(payload) == command
    assert codec.hash_stated(STATED[name]).hex() == digest


@pytest.mark.parametrize("name", MUTATIONS)
def test_an_owner_record_is_written_and_read_as_ever(name: str) -> None:
    digest, payload = LINES[name]
    assert codec.encode_mutation(MUTATIONS[name]) == payload
    assert codec.decode_mutation(payload) == MUTATIONS[name]
    assert digest == ""
