"""From the command line to a keeper on its own: fork, own session, nothing inherited, then a word to the parent."""

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from nereus_cli.keeper.clock import MILLISECOND
from nereus_cli.keeper.log import note, open_log
from nereus_cli.keeper.place import Place
from nereus_cli.keeper.service import Keeper

# What the parent exits with: it serves, another one does, it cannot.
SERVES = 0
ANOTHER_SERVES = 75
CANNOT = 74

STDERR = 2

Maker = Callable[[Place, int, str], Keeper]


def main(argv: list[str], make: Maker = Keeper) -> int:
    """``STORE_FD IDLE_MS BOOT_ID``: leave a keeper behind and return once it listens.

    Otherwise says on standard error why none does."""
    store, idle_ns, boot_id = int(argv[1]), int(argv[2]) * MILLISECOND, argv[3]
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        _keep(lambda: _prepared(store, idle_ns, boot_id, make), writing)
    os.close(writing)
    with open(reading, "rb") as answer:
        said = answer.read().decode("utf-8", "replace")
    if said == "serves":
        return SERVES
    sys.stderr.write((said or "the keeper ended while it started") + "\n")
    return ANOTHER_SERVES if said.startswith("another") else CANNOT


def _keep(prepare: Callable[[], Keeper], writing: int) -> NoReturn:
    status = 1
    try:
        keeper = prepare()
        os.write(writing, b"serves")
        os.close(writing)
        keeper.run()
        status = 0
    except BlockingIOError:
        os.write(writing, b"another keeper serves this store")
    except Exception as failed:  # noqa: BLE001 - the parent is told whatever it was
        note(failed)
        os.write(writing, f"{type(failed).__name__}: {failed}".encode("utf-8", "backslashreplace"))
    finally:
        os._exit(status)


def _prepared(store: int, idle_ns: int, boot_id: str, make: Maker) -> Keeper:
    os.setsid()
    os.chdir("/")
    os.umask(0o077)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(null, STDERR)
    place = Place(store)
    log = open_log(place.keeper)
    os.dup2(log, STDERR)
    for fd in (null, log):
        if fd > STDERR:
            os.close(fd)
    return make(place, idle_ns, boot_id)
