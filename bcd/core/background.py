"""Blocking work beside an event loop, in daemon threads.

Daemon threads, and not an executor's: an interpreter that ends waits for an executor, and a hung disk or server would
keep the agent from ending on SIGTERM. Everything that runs here may be cut off at any instant, since SIGKILL and power
cuts do the same (ADR 0006).
"""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from bcd.core.errors import HostError

T = TypeVar("T")


def promised(work: Callable[[], T]) -> tuple[asyncio.Future[T], Callable[[], None]]:
    """A future of what `work` returns or raises, and the call that keeps it, for some other thread to make.

    Called once nobody awaits it any more, it does not begin the work.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # T may be None; without an error it is a T

    def keep() -> None:
        if done.cancelled():
            return
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # handed to whoever awaits
            failure = error
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:
            # The loop has ended before the work did: nobody waits any more.
            return

    return done, keep


async def in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a daemon thread and return what it returns, or raise what it raises; `HostError` where no thread can be had."""
    done, keep = promised(work)
    try:
        threading.Thread(target=keep, daemon=True).start()
    except RuntimeError as error:  # a limit on threads (TasksMax=)
        raise HostError("io-error", f"could not start a thread: {error}") from error
    return await done
