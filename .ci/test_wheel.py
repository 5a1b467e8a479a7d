"""Build the wheel, install it into a fresh environment, and run the suite against it, the source out of the way.

What this finds and the other run cannot: a module or data file missing from the wheel, a test that works
only beside the source, a runtime dependency that only the development lock brings.

    .venv/bin/python .ci/test_wheel.py [WORKERS]      (make test-wheel)
"""

import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QUIET_PIP = ("-m", "pip", "--quiet", "--quiet", "--disable-pip-version-check", "--no-input", "install")


def main():
    """Return pytest's exit status; its closing line is the last one printed."""
    workers = sys.argv[1] if len(sys.argv) > 1 else "2"
    with tempfile.TemporaryDirectory(prefix="nereus-wheel-") as directory:
        wheel = build(os.path.join(directory, "dist"))
        python = install(wheel, os.path.join(directory, "env"))
        project = copy_all_but_the_source(os.path.join(directory, "project"))
        where = subprocess.check_output([python, "-c", "import nereus_cli; print(nereus_cli.__file__)"], cwd=project)
        if not where.decode().startswith(directory):
            sys.exit("test-wheel: the suite would not run against the wheel but against " + where.decode().strip())
        command = [python, "-m", "pytest", "-p", "no:cacheprovider", "-n", workers, "--dist", "worksteal"]
        return subprocess.call(command, cwd=project, env=dict(os.environ, PATH=path_with(python)))


def build(directory):
    """Build through the source distribution, as a release is, and return the wheel's path."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, ROOT]
    finished = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if finished.returncode:
        sys.exit(finished.stdout.decode())
    (wheel,) = [name for name in os.listdir(directory) if name.endswith(".whl")]
    return os.path.join(directory, wheel)


def install(wheel, directory):
    """Install the wheel with its own dependencies, see that it starts, and only then bring the test tools."""
    subprocess.check_call([sys.executable, "-m", "venv", directory])
    python = os.path.join(directory, "bin", "python")
    for arguments in (("--require-hashes", "-r", lock("runtime")), ("--no-deps", wheel)):
        subprocess.check_call([python, *QUIET_PIP, *arguments])
    subprocess.check_call([python, "-m", "pip", "--disable-pip-version-check", "check"], stdout=subprocess.DEVNULL)
    subprocess.check_call([os.path.join(directory, "bin", "nereus"), "--version"])
    subprocess.check_call([python, *QUIET_PIP, "--require-hashes", "-r", lock("dev")])
    return python


def copy_all_but_the_source(directory):
    """Copy what git has or would take, without the package."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(command, cwd=ROOT).decode().split("\0"):
        source = os.path.join(ROOT, name)
        if name and not name.startswith("nereus_cli/") and os.path.isfile(source):
            target = os.path.join(directory, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(source, target)
    return directory


def path_with(python):
    """Put the environment's own programs first."""
    return os.path.dirname(python) + os.pathsep + os.environ.get("PATH", "")


def lock(name):
    """Return the path of a lock file."""
    return os.path.join(ROOT, ".ci", "locks", name + ".lock")


if __name__ == "__main__":
    sys.exit(main())
