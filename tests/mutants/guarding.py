"""Mutants of what keeps others out and secrets in."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

GUARDING: Final = (
    Mutant(
        "umask-believed-for-files",
        "disk.py",
        "                os.fchmod(fd, _PRIVATE_FILE)\n",
        "                pass\n",
        "a file of the store could be unreadable to its owner, or not private",
        ("test_disk.py::test_modes_are_private_whatever_the_umask[255]",),
    ),
    Mutant(
        "umask-believed-for-directories",
        "disk.py",
        "        os.chmod(name, _PRIVATE_DIRECTORY, dir_fd=below)\n",
        "",
        "a directory of the store would have whatever mode the umask leaves",
        ("test_disk.py::test_modes_are_private_whatever_the_umask[255]",),
    ),
    Mutant(
        "world-readable-files",
        "disk.py",
        "_PRIVATE_FILE = 0o600\n",
        "_PRIVATE_FILE = 0o644\n",
        "others could read what commands carry",
        (
            "test_disk.py::test_modes_are_private_whatever_the_umask[0]",
            "test_disk.py::test_modes_are_private_whatever_the_umask[23]",
        ),
    ),
    Mutant(
        "links-followed",
        "disk.py",
        "_FILE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK",
        "_FILE = os.O_CLOEXEC | os.O_NONBLOCK",
        "a planted symlink would lead our writes to another file",
        ("test_disk.py::test_what_cannot_be_trusted_is_not_opened",),
    ),
    Mutant(
        "hard-links-trusted",
        "disk.py",
        " or found.st_nlink > links:",
        ":",
        "a planted hard link would lead our writes to another file",
        ("test_disk.py::test_what_cannot_be_trusted_is_not_opened",),
    ),
    Mutant(
        "open-store-trusted",
        "trust.py",
        "    if mode & 0o077:\n",
        "    if False:\n",
        "whoever may write the store may run commands as its owner",
        (
            "organs/test_trust.py::test_a_store_open_to_others_is_refused[449]",
            "organs/test_trust.py::test_a_store_open_to_others_is_refused[456]",
        ),
    ),
    Mutant(
        "foreign-store-trusted",
        "trust.py",
        "    if found.st_uid != uid:\n",
        "    if False:\n",
        "root would run the commands that somebody else put into their own store",
        ("organs/test_trust.py::test_what_belongs_to_somebody_else_is_foreign_or_unsafe",),
    ),
    Mutant(
        "open-ancestor-trusted",
        "trust.py",
        "        if mode & _OTHERS_WRITE and not mode & stat.S_ISVTX:\n",
        "        if False:\n",
        "others could put a store of their own in this one's place",
        (
            "organs/test_trust.py::test_an_ancestor_that_others_may_write_is_refused_unless_sticky[495-False]",
            "organs/test_trust.py::test_an_ancestor_that_others_may_write_is_refused_unless_sticky[509-False]",
        ),
    ),
    Mutant(
        "keeper-works-under-the-callers-umask",
        "keeper/launch.py",
        "    os.umask(0o077)\n",
        "",
        "directories and sockets of the keeper could be open to others",
        ("keeper/test_life.py::test_it_stands_on_its_own",),
    ),
    Mutant(
        "environment-captured-whole",
        "capture.py",
        "if k in _ALLOWED or k.startswith(_ALLOWED_PREFIX)))",
        "if k))",
        "every secret in the caller's environment would be written to the log",
        ("cli/test_capture.py::test_only_the_allowed_environment_is_captured_byte_for_byte",),
    ),
    Mutant(
        "secret-written-to-the-log",
        "cli/wishes.py",
        "    path = where.removeprefix(_FILE)\n",
        "    path = where.removeprefix(_FILE)\n"
        "    if path != where and os.path.exists(path):\n"
        '        return f"{name}{separator}{_FILE}/{open(path).read().strip()}"\n',
        "a secret is given by reference so that its value stands nowhere",
        ("e2e/test_endings.py::test_a_secret_is_read_at_delivery_and_stands_nowhere",),
    ),
    Mutant(
        "secret-quoted-in-a-refusal",
        "destinations/references.py",
        '{scheme}:{rest} cannot be read"',
        "{scheme}:{rest} cannot be read{(open(rest, 'rb').read(40) if os.path.isfile(rest) else b'')!r}\"",
        "the reason of an outcome stands in the log and in every report",
        ("organs/test_references.py::test_a_refusal_names_the_reference_and_quotes_nothing",),
    ),
    Mutant(
        "environment-file-quoted-in-a-refusal",
        "destinations/references.py",
        '            msg = "the file of --env-from-file has a line that is not NAME=VALUE"\n',
        '            msg = f"the file of --env-from-file has a line that is not NAME=VALUE: {line!r}"\n',
        "a line that is malformed may still be a secret",
        ("organs/test_references.py::test_a_malformed_line_of_an_environment_file_is_not_quoted",),
    ),
    Mutant(
        "secret-looking-values-shown",
        "render/messages.py",
        "        masked = looks_secret(name) and not unmask\n",
        "        masked = False\n",
        "tokens would be on every screen that shows a message",
        ("cli/test_reading.py::test_values_that_look_secret_are_masked_until_asked_for",),
    ),
    Mutant(
        "control-characters-shown",
        "render/text.py",
        '    return text if text.isprintable() else "".join(map(_visible, text))\n',
        "    return text\n",
        "a payload could rewrite what stands on the terminal",
        (
            "render/test_text.py::test_what_is_not_printable_is_written_as_an_escape",
            "render/test_text.py::test_what_is_visible_is_one_printable_line",
        ),
    ),
)
