"""Signals: handlers, never ignored and never masked, because exec hands those two on to the children."""

import os
import signal

# Python itself ignores some of these at its start; a child would find them so.
_HANDLED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGPIPE", "SIGXFSZ", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGUSR1", "SIGUSR2")


class Bell:
    """A descriptor that becomes readable when a child ended or a signal came. TERM asks for draining."""

    def __init__(self) -> None:
        self.asked_to_end = False
        self.fd, writing = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(writing, False)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number in signal.valid_signals():
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        for name in _HANDLED:
            signal.signal(getattr(signal, name), _heard)
        signal.signal(signal.SIGCHLD, _heard)
        signal.signal(signal.SIGTERM, self._end)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def hush(self) -> None:
        """Empty it."""
        try:
            while os.read(self.fd, 4096):
                continue
        except BlockingIOError:
            return

    def _end(self, *_: object) -> None:
        self.asked_to_end = True


def _heard(*_: object) -> None:
    """Nothing to do here: the wake-up descriptor has rung."""
