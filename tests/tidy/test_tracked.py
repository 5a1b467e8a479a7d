"""What may never be committed: traces of one machine, addresses of package indexes, built or binary files."""

import re

from tests.tidy.source import ROOT, tracked

# Written so that this file does not contain what it looks for.
MACHINE = re.compile(rb"(?<![\w.~:/-])/(?:%s|%s|%s)/[\w.]" % (b"work", b"root", b"opt/py" + b"pi"))
ADDRESSES = (b"py" + b"pi\\.org", b"python" + b"hosted", b"npm" + b"js\\.", b"(?<!no-emit-)index" + b"-url[ =]")
INDEX = re.compile(b"(?i)" + b"|".join(ADDRESSES))
BUILT_SUFFIXES = {".db", ".gz", ".pyc", ".so", ".sqlite", ".whl", ".zip"}


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    assert [_name(path) for path in tracked() if MACHINE.search(path.read_bytes())] == []


def test_no_file_names_a_package_index() -> None:
    assert [_name(path) for path in tracked() if INDEX.search(path.read_bytes())] == []


def test_nothing_built_is_tracked() -> None:
    assert [_name(path) for path in tracked() if path.suffix in BUILT_SUFFIXES] == []


def _name(path: object) -> str:
    return str(path).removeprefix(f"{ROOT}/")
