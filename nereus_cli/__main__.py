"""Where the program begins: `nereus` and `python -m nereus_cli` are the same."""

import sys


def run() -> int:
    """Run the command line and return its exit status.

    Loading takes longer than most commands, so that is when people interrupt. The interrupt is kept back until there
    is somebody to answer it, and modules written in C are not left half made."""
    import signal

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    from nereus_cli.cli.main import main

    status = main(ready=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before))
    # What was said stands: an interrupt while the interpreter ends must not take the status from it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status


if __name__ == "__main__":
    sys.exit(run())
