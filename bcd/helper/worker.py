"""The one thread that works: the manager is asked by one at a time, in the order of asking.

A daemon thread: an end on SIGTERM must not wait for a hung disk. What is cut off then is what a power cut cuts off.
"""

import itertools
import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from bcd.core.background import promised

T = TypeVar("T")


class Worker:
    """Runs what it is given, one after the other."""

    def __init__(self) -> None:
        self._work: queue.PriorityQueue[tuple[bool, int, Callable[[], None]]] = queue.PriorityQueue()
        self._number = itertools.count()
        self._since: float | None = None
        threading.Thread(target=self._run, name="worker", daemon=True).start()

    @property
    def busy_seconds(self) -> float:
        """For how long it has been at its present work; 0 where it is at none."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    async def run(self, work: Callable[[], T], *, first: bool = False) -> T:
        """Return what `work` returns, or raise what it raises; `first` goes ahead of all that only waits."""
        done, keep = promised(work)
        self._work.put((not first, next(self._number), keep))
        return await done

    def _run(self) -> None:
        while True:
            work = self._work.get()[2]
            self._since = time.monotonic()
            work()
            self._since = None
