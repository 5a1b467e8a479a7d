"""A keeper that strace holds from its first call on; run by a script that ``entry`` in kills.py writes, never imported.

``TRACER`` is the command line of strace up to the pid, ``TRACE`` its file: a keeper that finds it there is a later one,
and is left alone. ``ENTRY`` is the script of the real keeper.
"""

import os
import runpy
import shlex
import subprocess
import sys
import time

TRACER: list[str] = globals().get("TRACER", [])
TRACE: str = globals().get("TRACE", "")
ENTRY: str = globals().get("ENTRY", "")

runpy.run_path(ENTRY)["alone"]()

from nereus_cli.keeper.launch import main  # noqa: E402 - importable from here on
from nereus_cli.keeper.place import Place  # noqa: E402 - importable from here on
from nereus_cli.keeper.service import Keeper  # noqa: E402 - importable from here on


def watched(place: Place, idle_ns: int, boot_id: str) -> Keeper:
    """In the process that becomes the keeper, before it takes anything. The tracer is no child of it."""
    if not os.path.exists(TRACE):
        command = f"{shlex.join([*TRACER, str(os.getpid())])} &"
        subprocess.run(["/bin/sh", "-c", command], check=True, stdin=-3, stdout=-3, stderr=-3, start_new_session=True)
        end = time.monotonic() + 10
        with open("/proc/self/status") as status:
            while "\nTracerPid:\t0\n" in status.read() and time.monotonic() < end:
                status.seek(0)
                time.sleep(0.001)
    return Keeper(place, idle_ns, boot_id)


if __name__ == "__main__":
    sys.exit(main(sys.argv, watched))
