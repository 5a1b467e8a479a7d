"""Write .ci/locks/*.lock anew: every dependency pinned, with the hashes of all its files.

The resolver is not among the dependencies: it comes from the package index into an environment of its
own. The locks hold for every supported Python and system at once, and name no index.

    .venv/bin/python .ci/lock.py [--upgrade]      (make lock)
"""

import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUNTIME = ".ci/locks/runtime.lock"
DEVELOPMENT = ".ci/locks/dev.lock"
RESOLVE = ("-m", "uv", "pip", "compile", "pyproject.toml", "--quiet", "--universal", "--python-version", "3.11") + (
    "--generate-hashes",
    "--no-annotate",
    "--no-emit-index-url",
    "--no-emit-find-links",
)


def main():
    """Resolve the runtime first; the development lock then agrees with it."""
    options = tuple(sys.argv[1:])
    environment = dict(os.environ, UV_CUSTOM_COMPILE_COMMAND="make lock")
    with tempfile.TemporaryDirectory() as directory:
        subprocess.check_call([sys.executable, "-m", "venv", directory])
        python = os.path.join(directory, "bin", "python")
        subprocess.check_call([python, "-m", "pip", "install", "--quiet", "uv>=0.7"])
        for more in (
            ("--output-file", RUNTIME),
            ("--group", "dev", "--constraints", RUNTIME, "--output-file", DEVELOPMENT),
        ):
            subprocess.check_call([python, *RESOLVE, *more, *options], cwd=ROOT, env=environment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
