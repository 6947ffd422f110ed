"""Blocking work beside the event loop: its end comes back, and it never keeps anybody from ending."""

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from bcd.core.background import in_thread
from bcd.core.errors import HostError


async def test_what_the_work_returns_comes_back() -> None:
    """From another thread, while the loop goes on."""
    loop_thread, release = threading.current_thread(), threading.Event()

    def work() -> threading.Thread:
        assert release.wait(10)
        return threading.current_thread()

    waiting = asyncio.create_task(in_thread(work))
    await asyncio.sleep(0)
    release.set()
    ran_in = await waiting
    assert ran_in is not loop_thread
    assert ran_in.daemon


async def test_none_is_a_result_too() -> None:
    """Work that returns nothing ends like any other."""
    ran = threading.Event()
    async with asyncio.timeout(10):
        await in_thread(ran.set)
    assert ran.is_set()


@pytest.mark.parametrize("failure", [OSError("disk"), ValueError("value"), SystemExit(3)], ids=repr)
async def test_what_the_work_raises_comes_back(failure: BaseException) -> None:
    """The very error, an attempt to end the process included: it is the waiter's to decide."""

    def work() -> None:
        raise failure

    with pytest.raises(type(failure)) as caught:
        await in_thread(work)
    assert caught.value is failure


async def test_a_thread_that_cannot_be_had_is_an_error_that_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on threads (`TasksMax=`) ends nothing; it is tried again like a full disk."""

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(HostError) as caught:
        await in_thread(lambda: None)
    assert caught.value.code == "io-error"


async def test_a_waiter_that_is_cancelled_does_not_wait_for_the_work() -> None:
    """The work's late end, good or bad, reaches nobody and breaks nothing."""
    release, ended = threading.Event(), threading.Event()
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    def work() -> None:
        release.wait(10)
        ended.set()
        raise OSError("too late")

    waiting = asyncio.create_task(in_thread(work))
    await asyncio.sleep(0.01)
    waiting.cancel()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert time.monotonic() - began < 1
    assert not ended.is_set()
    release.set()
    assert await in_thread(lambda: ended.wait(10))
    await asyncio.sleep(0.01)
    assert complaints == []


def test_work_that_outlives_the_loop_ends_quietly() -> None:
    """Its thread finds the loop closed and says nothing (an unhandled error in a thread fails this test)."""
    release = threading.Event()
    before = set(threading.enumerate())

    async def start() -> None:
        waiting = asyncio.ensure_future(in_thread(lambda: release.wait(10)))
        await asyncio.sleep(0.01)
        waiting.cancel()

    asyncio.run(start())
    (thread,) = set(threading.enumerate()) - before
    release.set()
    thread.join(10)
    assert not thread.is_alive()


def test_work_that_hangs_does_not_keep_the_process() -> None:
    """Where an executor's thread would be waited for, ours is left behind."""
    program = (
        "import asyncio, time\n"
        "from bcd.core.background import in_thread\n"
        "async def main():\n"
        "    task = asyncio.ensure_future(in_thread(lambda: time.sleep(60)))\n"
        "    await asyncio.sleep(0.01)\n"
        "asyncio.run(main())\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], timeout=20, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
