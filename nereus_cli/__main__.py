"""`python -m nereus_cli` is the same program as `nereus`."""

import sys


def run() -> int:
    """Run the command line and return its exit status."""
    from nereus_cli.cli.main import main

    return main()


if __name__ == "__main__":
    sys.exit(run())
