"""One target at a time through download and swap, commands before the section: what is begun, cut off and shown."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.core.answers import Prepared
from bcd.core.download import DownloadFailed, Progress, Wanted
from bcd.core.errors import HostError
from bcd.core.records import PendingRecord
from tests.core.node_root import quick_node
from tests.node.updating import EXPIRED, IN_PROGRESS, PENDING, A, B, World, fetching, raising


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """An updater over a scripted manager."""
    return World(quick_node(tmp_path, monkeypatch), look_again_seconds=0.1)


# Downloads -----------------------------------------------------------------------------------------------------------


def until_cancelled(_: Wanted, __: Path, ___: object, cancelled: threading.Event) -> Path:
    """A download without an end."""
    assert cancelled.wait(10)
    raise DownloadFailed("stopped")


async def test_a_changed_section_ends_the_download_of_the_old_one(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """At once, without an error of its own, and the new one is looked at."""
    world.manager.answer = lambda spec: fetching() if spec == A else None
    world.fetcher.work = until_cancelled
    with caplog.at_level(logging.WARNING):
        async with world.at_work():
            await world.updater.set_section(1, A)
            await world.until(lambda: world.fetcher.wanted)
            began = time.monotonic()
            await world.updater.set_section(2, B)
            await world.until(lambda: "done" in world.told.what())
            assert time.monotonic() - began < 1
            await asyncio.sleep(0.05)
    assert world.told.all == [("progressing", None, 1, ""), ("done", None, 2, "")]
    assert world.manager.prepared == [A, B]
    assert caplog.records == []


async def test_the_same_section_again_does_not_end_its_download(world: World) -> None:
    """However often it is named: it is the very thing that is wanted."""
    release = threading.Event()

    def fetch(wanted: Wanted, staging: Path, told: Callable[[Progress], None], cancelled: threading.Event) -> Path:
        assert release.wait(10)
        assert not cancelled.is_set()
        return world.fetcher.bring(wanted, staging, told, cancelled)

    world.manager.answer = fetching
    world.fetcher.work = fetch
    async with world.at_work():
        await world.updater.set_section(1, A)
        await world.until(lambda: world.fetcher.wanted)
        for generation in range(2, 50):
            await world.updater.set_section(generation, dict(A))
        release.set()
        await world.until(lambda: "swapped" in world.told.what())
    assert len(world.fetcher.wanted) == 1
    assert world.told.all[-1] == ("swapped", None, 49, "1.1.0")


async def test_a_section_that_was_replaced_during_its_last_byte_is_not_swapped_in(world: World) -> None:
    """The download came to its end all the same; the control plane wants something else by now."""
    arrived, release = threading.Event(), threading.Event()

    def fetch(wanted: Wanted, staging: Path, told: Callable[[Progress], None], cancelled: threading.Event) -> Path:
        arrived.set()
        assert release.wait(10)
        return world.fetcher.bring(wanted, staging, told, cancelled)

    world.manager.answer = lambda spec: fetching() if spec == A else None
    world.fetcher.work = fetch
    async with world.at_work():
        await world.updater.set_section(1, A)
        await world.until(arrived.is_set)
        await world.updater.set_section(2, B)
        release.set()
        await world.until(lambda: "done" in world.told.what())
    assert world.manager.swapped == []


async def test_a_section_that_was_replaced_while_it_was_looked_at_is_not_told_as_refused(world: World) -> None:
    """Nobody waits for that answer any more."""
    release = threading.Event()

    def answer(spec: object) -> None:
        if spec == A:
            assert release.wait(10)
            raise EXPIRED

    world.manager.answer = answer
    async with world.at_work():
        await world.updater.set_section(1, A)
        await world.until(lambda: world.manager.prepared)
        await world.updater.set_section(2, B)
        release.set()
        await world.until(lambda: world.told.all)
    assert world.told.all == [("done", None, 2, "")]


async def test_a_download_is_shown_while_it_runs_and_no_longer(world: World) -> None:
    """Bytes done and total, the rate, and the phases in their order."""
    released = threading.Event()

    def fetch(wanted: Wanted, staging: Path, told: Callable[[Progress], None], cancelled: threading.Event) -> Path:
        told(Progress(400, 1000, 12.6))
        assert released.wait(10)
        return world.fetcher.bring(wanted, staging, told, cancelled)

    world.manager.answer = fetching
    world.fetcher.work = fetch
    async with world.at_work():
        await world.updater.set_section(1, A)
        await world.until(lambda: {"bytes_done": 400, "bytes_total": 1000, "rate": 13} in world.live.seen)
        released.set()
        await world.until(lambda: "swapped" in world.told.what())
    assert world.live.values("phase") == ["checking", "downloading", "staging", "swapped"]
    assert [world.live.values(key)[-1] for key in ("bytes_done", "bytes_total", "rate")] == [None] * 3
    assert world.live.values("pending_deadline") == [PENDING.deadline]


async def test_a_staged_file_is_removed_once_it_is_in_its_slot(world: World) -> None:
    """And no sooner: a swap that failed uses it again."""
    failures = [HostError("io-error", "the slots directory is read-only")]
    staged = Path(world.node.layout.staging) / "bcd-1.1.0"
    there: list[bool] = []

    def swap() -> PendingRecord:
        there.append(staged.exists())
        if failures:
            raise failures.pop()
        return PENDING

    world.manager.answer = fetching
    world.manager.swap_answer = swap
    async with world.at_work():
        await world.updater.set_section(1, A)
        await world.until(lambda: "progressing" in world.told.what() and world.told.all[-1][3])
        assert staged.exists()
        world.updater.try_again()
        await world.until(lambda: "swapped" in world.told.what())
    assert there == [True, True]
    assert not staged.exists()


async def test_after_a_swap_nothing_else_is_begun(world: World) -> None:
    """This process is about to be replaced: what comes now is the next one's to do."""
    world.manager.answer = lambda _: Prepared(version="1.1.0", fetch=None)
    world.updater.add_command("c1", A)
    world.updater.add_command("c2", B)
    async with asyncio.timeout(10):
        await world.updater.run()
    await world.updater.set_section(1, B)
    assert world.manager.swapped == [(A, "c1")]
    assert world.told.all[-1] == ("swapped", "c1", 0, "1.1.0")


# Commands ------------------------------------------------------------------------------------------------------------


async def test_commands_come_before_the_section_and_in_their_order(world: World) -> None:
    """Somebody gave an order: the desired state can wait."""
    specs = [{**A, "url": f"https://{number}"} for number in range(3)]
    await world.updater.set_section(1, B)
    for number, spec in enumerate(specs):
        world.updater.add_command(f"c{number}", spec)
    async with world.at_work():
        await world.until(lambda: len(world.told.all) == 4)
    assert world.manager.prepared == [*specs, B]
    assert [one[:2] for one in world.told.all] == [("done", "c0"), ("done", "c1"), ("done", "c2"), ("done", None)]


async def test_a_command_that_waits_does_not_hold_up_the_section(world: World) -> None:
    """Nor do two commands hold up each other."""
    world.manager.answer = lambda spec: raising(IN_PROGRESS)() if spec == A else None
    world.updater.add_command("c1", A)
    world.updater.add_command("c2", B)
    await world.updater.set_section(1, B)
    async with world.at_work():
        await world.until(lambda: world.told.what().count("done") == 2)
    assert [one[:2] for one in world.told.all] == [("progressing", "c1"), ("done", "c2"), ("done", None)]


async def test_the_same_command_twice_runs_once(world: World) -> None:
    """Field report 37: while it is at work it is known, whatever is delivered again."""
    release = threading.Event()

    def answer(_: object) -> None:
        assert release.wait(10)

    world.manager.answer = answer
    async with world.at_work():
        world.updater.add_command("c1", A)
        await world.until(lambda: world.manager.prepared)
        for _ in range(10):
            world.updater.add_command("c1", A)
        release.set()
        await world.until(lambda: world.told.all)
        await asyncio.sleep(0.05)
    assert world.told.all == [("done", "c1", 0, "")]
    assert world.manager.prepared == [A]


async def test_a_waiting_command_that_is_delivered_again_waits_on(world: World) -> None:
    """A gateway that reconnects every second is no reason to try every second."""
    world.manager.answer = fetching
    world.fetcher.work = raising(DownloadFailed("busy", retry_after=30.0))  # type: ignore[assignment]
    async with world.at_work():
        world.updater.add_command("c1", A)
        await world.until(lambda: len(world.told.all) == 2)
        for _ in range(10):
            world.updater.add_command("c1", A)
        await asyncio.sleep(0.05)
    assert len(world.told.all) == 2
    assert len(world.fetcher.wanted) == 1


async def test_a_refused_command_ends_and_is_not_looked_at_again(world: World) -> None:
    """A command is answered once; only the section is the desired state, worth another look when the node changes."""
    world.manager.refuse(EXPIRED)
    async with world.at_work():
        world.updater.add_command("c1", A)
        await world.until(lambda: world.told.all)
        world.manager.mark += 1
        await asyncio.sleep(0.05)
        world.updater.try_again()
        await asyncio.sleep(0.05)
    assert world.told.all == [("refused", "c1", 0, "expired")]
    assert world.manager.prepared == [A]


async def test_a_refused_command_says_nothing_of_the_section(world: World) -> None:
    """Each has an answer of its own, for the same target too."""
    world.manager.refuse(EXPIRED)
    async with world.at_work():
        world.updater.add_command("c1", A)
        await world.updater.set_section(1, A)
        await world.until(lambda: len(world.told.all) == 2)
    assert world.told.all == [("refused", "c1", 0, "expired"), ("refused", None, 1, "expired")]
