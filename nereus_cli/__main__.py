"""Where the program begins: `nereus` and `python -m nereus_cli` are the same.

Loading takes longer than most commands, so that is when people interrupt; it must end as any other interrupt does.
"""

import sys

_INTERRUPTED = 130
_SAID = "interrupted before anything was written"


def run() -> int:
    """Run the command line and return its exit status."""
    try:
        from nereus_cli.cli.main import main
    except KeyboardInterrupt:
        return _interrupted()
    return main()


def _interrupted() -> int:
    """The answer of `classify` to an interrupt, by hand: what prints it may not be there yet."""
    import os

    if "--json" in sys.argv:
        said = f'{{"schema":"nereus.error/1","error":"INTERRUPTED","message":"{_SAID}","exit":130,"details":{{}}}}\n'
        os.write(1, said.encode())
    else:
        os.write(2, f"nereus: {_SAID}\n".encode())
    return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(run())
