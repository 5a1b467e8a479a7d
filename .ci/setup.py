"""Make `.venv`: a virtual environment with what the lock files pin, and the package itself, editable.

Runs before anything is installed, hence with the standard library only, and on Pythons older than the
project needs, hence in old syntax: a person with an old `python3` deserves one clear line, not a
SyntaxError. Running it again costs one hash; it works only when the locks, the build settings or the
chosen interpreter changed. Several may run at once: they take turns.

    python3 .ci/setup.py            take this interpreter, or the newest suitable one on PATH
    python3 .ci/setup.py --pinned   take this interpreter and no other
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)
CANDIDATES = ("python3.13", "python3.12", "python3.14", "python3.11")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
VENV_PYTHON = os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, "stamp")
LOCK = ".ci/locks/dev.lock"


def main():
    """Bring `.venv` up to date, or end with one line that says what is missing."""
    pinned = "--pinned" in sys.argv[1:]
    if sys.version_info < OLDEST:
        return start_over_with_a_newer_python(pinned)
    # The lock lies beside the environment, which may be removed while it is held.
    with open(VENV + ".lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return bring_up_to_date(pinned)


def bring_up_to_date(pinned):
    """Do nothing if the stamp matches; else install, in a new environment if the interpreter changed."""
    stamp = read(STAMP).split("\n")
    interpreter = os.path.realpath(sys.executable)
    same_interpreter = bool(stamp[0]) and os.access(VENV_PYTHON, os.X_OK) and (not pinned or stamp[0] == interpreter)
    wanted = [stamp[0] if same_interpreter else interpreter, fingerprint(), ROOT]
    if same_interpreter and stamp == wanted:
        return 0
    if not same_interpreter or stamp[2:] != [ROOT]:
        if not make_environment():
            return 1
        wanted[0] = interpreter
    elif os.path.exists(STAMP):
        os.remove(STAMP)
    install()
    with open(STAMP, "w") as file:
        file.write("\n".join(wanted))
    say("ready: " + os.path.relpath(VENV) + " with Python " + version_of(VENV_PYTHON))
    return 0


def make_environment():
    """Make an empty `.venv` with pip in it; False (and a line on stderr) if this Python cannot."""
    if not can_make_environments() and not (is_bare_debian_root() and install_debian_venv()):
        say("this Python cannot make virtual environments (no 'ensurepip').")
        say("On Debian and Ubuntu: apt-get install python3-venv. Then run make again.")
        return False
    if os.path.isdir(VENV):
        shutil.rmtree(VENV)
    say("making " + os.path.relpath(VENV) + " with Python " + sys.version.split()[0])
    run(sys.executable, "-m", "venv", VENV)
    return True


def can_make_environments():
    """Debian ships `venv` without `ensurepip`, and then making one fails half-way."""
    check = subprocess.call([sys.executable, "-c", "import venv, ensurepip"], stderr=subprocess.DEVNULL)
    return check == 0


def is_bare_debian_root():
    """Whether we may install a Debian package, and this Python is Debian's."""
    return (
        os.geteuid() == 0 and bool(shutil.which("apt-get")) and os.path.realpath(sys.executable).startswith("/usr/bin/")
    )


def install_debian_venv():
    """Install Debian's half of `venv`; True if making environments works afterwards."""
    say("installing python3-venv")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for command in (["apt-get", "-qq", "update"], ["apt-get", "-qq", "install", "-y", "python3-venv"]):
        subprocess.call(command, env=environment, stdout=subprocess.DEVNULL)
    return can_make_environments()


def install():
    """Install the locked packages and the project, from the package index pip is set up for."""
    quiet = ("--quiet", "--quiet", "--disable-pip-version-check", "--no-input")
    say("installing the locked packages")
    run(
        VENV_PYTHON,
        "-m",
        "pip",
        "install",
        *(quiet + ("--require-hashes", "-r", os.path.join(ROOT, LOCK))),
    )
    run(VENV_PYTHON, "-m", "pip", "install", *(quiet + ("--no-deps", "--no-build-isolation", "--editable", ROOT)))


def start_over_with_a_newer_python(pinned):
    """Run this script with a suitable interpreter from PATH; end with a clear line if there is none."""
    found = None if pinned else next(filter(is_suitable, filter(None, map(shutil.which, CANDIDATES))), None)
    if found:
        os.execv(found, [found, os.path.abspath(__file__)])
    needed = "%d.%d" % OLDEST
    say("Python " + needed + " or newer is needed, this is " + sys.version.split()[0] + ".")
    say("Name one like this: PYTHON=python3.12 make")
    return 1


def is_suitable(python):
    """Whether what PATH names really runs, and is new enough: a version manager's shim may not."""
    check = "import sys; sys.exit(sys.version_info < (%d, %d))" % OLDEST
    return subprocess.call([python, "-c", check], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0


def fingerprint():
    """One hash over everything that decides what is installed, the settings of other tools left out."""
    import tomllib

    settings = tomllib.loads(read(os.path.join(ROOT, "pyproject.toml")))
    tables = [settings["build-system"], settings["project"], settings["tool"]["hatch"]]
    texts = [repr(tables), read(os.path.join(ROOT, LOCK)), read(os.path.abspath(__file__))]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def version_of(python):
    """Ask an interpreter for its version."""
    return subprocess.check_output(
        [python, "-c", "import platform; print(platform.python_version())"], text=True
    ).strip()


def read(path):
    """Return the text of a file, empty if there is none."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def run(*command):
    """Run a command; end with its status if it fails."""
    status = subprocess.call(command)
    if status:
        say(
            "failed (%d): %s"
            % (status, " ".join(os.path.relpath(part) if part.startswith(ROOT) else part for part in command))
        )
        sys.exit(1)


def say(line):
    """Tell the person, out of the way of what is piped."""
    sys.stderr.write("setup: " + line + "\n")


if __name__ == "__main__":
    sys.exit(main())
