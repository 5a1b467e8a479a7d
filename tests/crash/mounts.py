"""File systems in files, mounted where nobody else sees them, and the plug to pull.

All of this happens in a mount and process namespace of its own (``apart``): when its first process ends, however it
does, every process in it is killed, every mount is undone and every loop device is given back.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Final

from tests.crash.warm import environment

# EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN are the same; 2: not even the journal is written out.
_GOING_DOWN: Final = 0x8004587D
_NOTHING_MORE: Final = 2
_BYTES: Final = {"ext4": 48 << 20, "xfs": 320 << 20}
_MAKE: Final = {
    "ext4": ("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
}


class Image:
    """One file system of a kind, and where it is mounted."""

    def __init__(self, kind: str, base: Path) -> None:
        """Makes it; ``mount`` it before use."""
        self.kind = kind
        self.file = base / f"{kind}.img"
        self.place = base / kind
        self.place.mkdir()
        with self.file.open("wb") as file:
            file.truncate(_BYTES[kind])
        subprocess.run([*_MAKE[kind], str(self.file)], check=True, capture_output=True)

    def mount(self) -> None:
        """Also replays the journal."""
        subprocess.run(
            ["mount", "-t", self.kind, "-o", "loop", str(self.file), str(self.place)], check=True, capture_output=True
        )

    def cut(self) -> None:
        """The power is gone: nothing that is not on the medium ever gets there."""
        shut_down(self.place)

    def unmount(self) -> None:
        """Waits for those that were killed a moment ago to be gone."""
        command = ["umount", str(self.place)]
        for _ in range(200):
            if subprocess.run(command, check=False, capture_output=True).returncode == 0:
                return
            time.sleep(0.01)
        subprocess.run(command, check=True)

    def write_back(self) -> None:
        """What the system does by itself every half a minute: everything written so far gets to the medium."""
        subprocess.run(["sync", "-f", str(self.place)], check=True, capture_output=True)


def shut_down(place: Path) -> None:
    """Ends the file system that is mounted there, in the middle of everything."""
    fd = os.open(place, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, _GOING_DOWN, struct.pack("I", _NOTHING_MORE))
    finally:
        os.close(fd)


def kinds() -> list[str]:
    """The file systems that can be made here."""
    return [kind for kind, make in _MAKE.items() if shutil.which(make[0])]


@cache
def why_not() -> str:
    """Why nothing can be mounted here; empty where it can."""
    if os.geteuid() != 0:
        return "mounting needs root"
    missing = [tool for tool in ("unshare", "mount", "umount", "losetup") if shutil.which(tool) is None]
    if missing or not kinds():
        return f"not installed: {', '.join(missing) or 'mkfs.ext4, mkfs.xfs'}"
    tried = subprocess.run([*apart(), "losetup", "-f"], check=False, capture_output=True, text=True)
    if tried.returncode:
        return f"no loop device or no namespace: {tried.stderr.strip()}"
    return ""


def why_no_disk() -> str:
    """Why nbdkit cannot play a disk here; empty where it can."""
    tried = subprocess.run(["nbdkit", "--dump-plugin", "python"], check=False, capture_output=True, text=True)
    if tried.returncode:
        return f"nbdkit has no Python: {tried.stderr.strip()}"
    return "" if os.path.exists("/dev/fuse") else "there is no /dev/fuse"


def apart() -> list[str]:
    """What a command line begins with that is to run in namespaces of its own."""
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


def module_apart(module: str, *arguments: str, seconds: float) -> bytes:
    """Runs a module in namespaces of its own and returns what it says. Raises RuntimeError with its last words.

    It is told of our end by the end of its standard input."""
    command = [*apart(), sys.executable, "-m", module, *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", env=environment()
    ) as process:
        try:
            reading, process.stdin = process.stdin, None
            out, err = process.communicate(timeout=seconds)
            if reading is not None:
                reading.close()
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise RuntimeError(err.decode(errors="replace")[-2_000:])
    return out


def end_with_parent(base: Path) -> None:
    """In the module that runs apart: when whoever started it is gone, so is everything here, the images in ``base``
    first, which are large."""
    import threading

    def watch() -> None:
        os.read(0, 1)
        listed = subprocess.run(["losetup", "-l", "-n", "-O", "NAME,BACK-FILE"], check=False, capture_output=True)
        for line in listed.stdout.decode().splitlines():
            if str(base) in line:
                # One that is mounted goes with its mount.
                subprocess.run(["losetup", "-d", line.split()[0]], check=False, capture_output=True)
        for image in base.glob("*.img"):
            image.unlink(missing_ok=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
