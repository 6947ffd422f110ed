"""Ending in order when a signal says so: the lab's processes and directory go before the lab does.

The handler only leaves a note where the main thread waits anyway. An exception raised from a handler would strike at any
instruction: between making a thread and starting it, or in the middle of the very clean-up that it is there for.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from bcd.core.exits import ExitStatus

_STATUS = {
    signal.SIGINT: ExitStatus.INTERRUPTED,
    signal.SIGTERM: ExitStatus.TERMINATED,
    signal.SIGHUP: ExitStatus.HANGUP,
}


class Ended(Exception):
    """A signal asked to end, and whoever waited passes it on.

    Attributes:
        status: the exit status that says so.
    """

    def __init__(self, status: ExitStatus) -> None:
        super().__init__(status)
        self.status = status


@contextmanager
def ending_by_signal(tell: Callable[[ExitStatus], None]) -> Iterator[None]:
    """Tell of the first SIGINT, SIGTERM or SIGHUP by its exit status; in any thread but the main one this does nothing.

    Args:
        tell: called from a signal handler, so it may take no lock: `queue.SimpleQueue.put`, for one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        # A terminal that goes away sends more than one; a person who presses Ctrl-C again means it.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, before[signal.SIGINT])
        tell(_STATUS[signal.Signals(number)])

    before = {which: signal.signal(which, end) for which in _STATUS}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
