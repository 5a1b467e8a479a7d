"""What is given by reference is read when it is needed, and never quoted: a refusal stands in the log for ever."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nereus_cli.destinations import references
from nereus_cli.destinations.references import read_environment_file, read_reference
from nereus_cli.ports import CannotStartError

SECRET = b"s3cr3t-canary"
BYTES_MAX = 64 << 10


def test_a_secret_comes_from_a_file_a_variable_or_a_credential(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_bytes(SECRET + b"\n")
    monkeypatch.setenv("TOKEN", SECRET.decode())
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    for reference in (f"file:{tmp_path}/token", "env:TOKEN", "credential:token", "credential:../elsewhere/token"):
        assert read_reference(reference) == SECRET, reference


def test_an_environment_file_is_lines_of_names_and_values(tmp_path: Path) -> None:
    (tmp_path / "vars").write_bytes(b"# why\n\nA=1\nB=x=y\nC=\n  # more\nD=\xff\n")
    assert read_environment_file(os.fsencode(tmp_path / "vars")) == (
        (b"A", b"1"),
        (b"B", b"x=y"),
        (b"C", b""),
        (b"D", b"\xff"),
    )


BAD: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(missing_ok=True),
    "a directory": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "too large": lambda path: path.write_bytes(SECRET * (BYTES_MAX // len(SECRET) + 1)),
    "a NUL": lambda path: path.write_bytes(SECRET + b"\0"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_refusal_names_the_reference_and_quotes_nothing(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "token"
    BAD[kind](path)
    with pytest.raises(CannotStartError, match=f"^the secret file:{path} cannot be read$") as refused:
        read_reference(f"file:{path}")
    assert refused.value.__cause__ is None
    with pytest.raises(CannotStartError, match=r"^the file of --env-from-file cannot be read$"):
        read_environment_file(os.fsencode(path))


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOMEM, errno.EIO])
def test_want_of_resources_is_no_fault_of_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    (tmp_path / "token").write_bytes(SECRET)
    monkeypatch.setattr(references, "_read", refused)
    with pytest.raises(CannotStartError) as caught:
        read_reference(f"file:{tmp_path}/token")
    assert (caught.value.permanent, caught.value.errno) == (False, number)
    with pytest.raises(CannotStartError) as caught:
        read_environment_file(os.fsencode(tmp_path / "token"))
    assert (caught.value.permanent, caught.value.errno) == (False, number)


@pytest.mark.parametrize("line", [b"", b"=", b"A="], ids=["no sign", "no name", "a NUL"])
def test_a_malformed_line_of_an_environment_file_is_not_quoted(tmp_path: Path, line: bytes) -> None:
    nul = b"\0" if line == b"A=" else b""
    (tmp_path / "vars").write_bytes(b"A=1\n" + line + nul + SECRET + b"\n")
    with pytest.raises(CannotStartError) as refused:
        read_environment_file(os.fsencode(tmp_path / "vars"))
    assert SECRET.decode() not in str(refused.value)
    assert "--env-from-file" in str(refused.value)
