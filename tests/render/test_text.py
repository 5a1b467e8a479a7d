"""What comes from outside: shown without harm, and read back as it was."""

from __future__ import annotations

import base64
import json
import random
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.render.text import ascii_json, from_bytes, looks_secret, shell_line, shell_word, visible, visible_lines

ANY = st.text(st.characters(codec=None))


@given(ANY)
def test_what_is_visible_is_one_printable_line(text: str) -> None:
    assert visible(text).isprintable()
    assert visible_lines(text).replace("\n", "").replace("\t", "").isprintable()


@given(st.text(st.characters(categories=("L", "N", "P", "S"))))
def test_what_is_printable_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31m", "a\\x1b[31m"), ("\n\r\t", "\\n\\r\\t"), ("\u202e", "\\u202e"), ("\x7f\x9b", "\\x7f\\x9b"),
        ("\udcff", "\\xff"), ("\ud800", "\\ud800"), ("\U000e0001", "\\U000e0001"), ("žluť 🐎", "žluť 🐎"),
    ],
)  # fmt: skip
def test_what_is_not_printable_is_written_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.binary())
def test_bytes_in_a_document_lose_nothing(data: bytes) -> None:
    value = from_bytes(data)
    assert (value.encode() if isinstance(value, str) else base64.b64decode(value["b64"])) == data  # type: ignore[index] # the other form is a dict


@given(st.recursive(ANY.map(lambda text: text.encode("utf-8", "replace").decode()), st.lists))
def test_json_in_ascii_says_the_same(value: object) -> None:
    data = ascii_json(msgspec.json.encode(value))
    assert json.loads(data) == value
    assert all(0x20 <= byte < 0x7F for byte in data)


def test_a_shell_reads_back_exactly_the_bytes(tmp_path: Path) -> None:
    dice = random.Random(7)
    words = [bytes([byte]) for byte in range(1, 256)]
    words += [bytes([byte]) + b"7" for byte in range(1, 256)]
    words += [b"", b"'", b"''", b"\\", b"a'b", "žluť".encode(), b"-n", b"$(id)", b"`id`", b"!x", b"~", b"a b"]
    words += [bytes(dice.choices(range(1, 256), k=dice.randrange(1, 40))) for _ in range(300)]
    line = shell_line(words)
    assert line.isprintable()
    script = tmp_path / "script"
    script.write_text(f"printf '%s\\0' {line}\n", encoding="utf-8")
    assert subprocess.run(["bash", script], capture_output=True, check=True).stdout.split(b"\0")[:-1] == words


@given(st.binary(min_size=1))
def test_a_word_is_one_printable_word(data: bytes) -> None:
    assert shell_word(data).isprintable()


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        (b"API_TOKEN", True), (b"db_password", True), (b"AWS_SECRET_ACCESS_KEY", True), (b"PGPASSWORD", True),
        (b"CREDENTIALS", True), (b"\xffTOKEN", True), (b"PATH", False), (b"HOME", False), (b"LANG", False),
    ],
)  # fmt: skip
def test_names_that_look_secret(name: bytes, secret: bool) -> None:
    assert looks_secret(name) is secret
