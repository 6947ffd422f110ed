"""Ending in order when a signal says so: the lab's processes and directory go before the lab does."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from bcd.core.exits import ExitStatus

_STATUS = {
    signal.SIGINT: ExitStatus.INTERRUPTED,
    signal.SIGTERM: ExitStatus.TERMINATED,
    signal.SIGHUP: ExitStatus.HANGUP,
}


class Ended(BaseException):
    """A signal asks to end. No Exception, so that nothing that handles faults takes it for one.

    Attributes:
        status: the exit status that says so.
    """

    def __init__(self, status: ExitStatus) -> None:
        super().__init__(status)
        self.status = status


@contextmanager
def ending_by_signal() -> Iterator[None]:
    """Have SIGINT, SIGTERM and SIGHUP raise `Ended` in the main thread; in any other thread this does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        # Once: while everything is being ended, a second Ctrl-C would leave half of it.
        for which in _STATUS:
            signal.signal(which, signal.SIG_IGN)
        raise Ended(_STATUS[signal.Signals(number)])

    before = {which: signal.signal(which, end) for which in _STATUS}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
