"""The one thread that works: the manager is asked by one at a time, in the order of asking.

A daemon thread: an end on SIGTERM must not wait for a hung disk. What is cut off then is what a power cut cuts off.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


class Worker:
    """Runs what it is given, one after the other."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="worker", daemon=True).start()

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, or raise what it raises."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, error: Exception | None) -> None:
            if done.cancelled():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]  # T may be None; without an error it is a T

        def at_work() -> None:
            result, failure = None, None
            if done.cancelled():
                return
            try:
                result = work()
            except Exception as error:  # noqa: BLE001  # handed to whoever awaits
                failure = error
            with suppress(RuntimeError):  # the loop ended before the work did
                loop.call_soon_threadsafe(settle, result, failure)

        self._work.put(at_work)
        return await done

    def _run(self) -> None:
        while True:
            self._work.get()()
