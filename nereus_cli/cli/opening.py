"""Opening the store that a call names."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from nereus_cli import founding
from nereus_cli.cli.exits import CANNOT_CREATE, DAMAGED, Failure, of_system
from nereus_cli.store import NoStoreError, open_store

if TYPE_CHECKING:
    from nereus_cli.cli.call import Call
    from nereus_cli.store import Store


def for_reading(call: Call) -> Store:
    """An existing store; raises what open_store raises."""
    path = call.store_path()
    try:
        return open_store(path)
    except NoStoreError:
        # Says that we may not look, where that is why we see none.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.stat(path)
        raise
    except FileNotFoundError as error:
        raise _without_log(path, error) from None


def for_writing(call: Call, *, create: bool) -> Store:
    """The store, made if ``create`` says that this verb may."""
    path = call.store_path()
    if not create:
        return for_reading(call)
    existed = founding.is_store(path)
    try:
        return open_store(path, create=True)
    except NoStoreError as error:
        raise Failure("CANNOT_CREATE", f"cannot create the store: {error}", CANNOT_CREATE) from None
    except FileNotFoundError as error:
        raise (_without_log(path, error) if existed else of_system(error, creating=True)) from None
    except OSError as error:
        raise of_system(error, creating=not existed) from None


def _without_log(path: str, error: OSError) -> Failure:
    """The description is there and the log is not: that is damage, and a new log would hide it."""
    missing = os.fsdecode(error.filename or "log")
    details = {"file": missing, "position": 1}
    return Failure("DAMAGED", f"the store {path} has lost {missing}: {error.strerror}", DAMAGED, details)
