"""Start a keeper without importing the program around it.

The interpreter runs isolated and without site, so this package is not on its path. An empty parent with the
right ``__path__`` makes its modules importable under their usual names and runs nothing else of ours.
"""

import os.path
import sys
from types import ModuleType


def alone() -> None:
    """Make ``nereus_cli.keeper`` importable, and only that."""
    parent = ModuleType("nereus_cli")
    parent.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["nereus_cli"] = parent


if __name__ == "__main__":
    alone()
    from nereus_cli.keeper.launch import main

    sys.exit(main(sys.argv))
