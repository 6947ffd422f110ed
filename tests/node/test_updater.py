"""What the updater makes of a target that does not go through: refusals, errors that may pass, and rest (section 4)."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.core.answers import Fetch, Prepared
from bcd.core.download import DownloadFailed, Progress, Wanted
from bcd.core.errors import Refusal
from bcd.core.records import PendingRecord
from tests.core.node_root import Node, Release, make_release, quick_node
from tests.node.updating import EXPIRED, IN_PROGRESS, LEFT, A, B, World, fetching, raising


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """An updater over a scripted manager."""
    return World(quick_node(tmp_path, monkeypatch), look_again_seconds=0.1)


# Refusals ------------------------------------------------------------------------------------------------------------


async def test_the_same_section_again_is_answered_from_memory(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Field reports 22 and 23: a control plane that insists for an hour costs one look and one line.

    Each time it is told, for the generation at hand.
    """
    world.manager.refuse(Refusal("below-floor", "sequence 3 is below 5"))
    with caplog.at_level(logging.DEBUG):
        async with world.at_work():
            await world.updater.set_section(1, A)
            await world.until(lambda: world.told.all)
            for generation in range(2, 1001):
                await world.updater.set_section(generation, dict(reversed(A.items())))
    assert world.told.all == [("refused", None, generation, "below-floor") for generation in range(1, 1001)]
    assert world.manager.prepared == [A]
    assert world.fetcher.wanted == []
    lines = [record.getMessage() for record in caplog.records if record.name == "bcd.node.updater"]
    assert lines == ["1.1.0 is refused: sequence 3 is below 5 (below-floor)"]


async def test_what_expired_by_a_wrong_clock_is_judged_anew(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The same section comes back when the session does; a clock that was mended since must count. One log line."""
    world.manager.refuse(EXPIRED)
    with caplog.at_level(logging.DEBUG):
        async with world.at_work():
            await world.updater.set_section(1, A)
            await world.until(lambda: world.told.all)
            await world.updater.set_section(2, A)
            await world.until(lambda: len(world.told.all) == 2)
    assert world.manager.prepared == [A, A]
    lines = [record.getMessage() for record in caplog.records if record.name == "bcd.node.updater"]
    assert len(lines) == 1


async def test_a_changed_section_is_tried_at_once(world: World) -> None:
    """The memory of a refusal is for the exact section that got it."""
    world.manager.refuse(EXPIRED)
    async with world.at_work():
        await world.updater.set_section(1, A)
        await world.until(lambda: world.told.all)
        began = time.monotonic()
        await world.updater.set_section(2, {**A, "url": "https://elsewhere"})
        await world.until(lambda: len(world.told.all) == 2)
        assert time.monotonic() - began < 1
        await world.updater.set_section(3, A)
        await world.until(lambda: len(world.told.all) == 3)
    assert world.manager.prepared == [A, {**A, "url": "https://elsewhere"}, A]


async def test_a_refused_section_is_tried_again_when_the_node_changed(world: World) -> None:
    """An operator who mended what was refused waits a moment, and no word of the gateway is needed."""
    world.manager.refuse(EXPIRED)
    async with world.at_work():
        await world.updater.set_section(1, A)
        await world.until(lambda: world.told.all)
        world.manager.answer = lambda _: None
        world.manager.mark += 1
        await world.until(lambda: world.told.what() == ["refused", "done"])


async def test_a_change_while_it_is_looked_at_is_not_missed(world: World) -> None:
    """The record is read, then a slot of 100 MB is hashed, and in between the operator clears the failed version."""

    def refuse_too_late(_: object) -> None:
        world.manager.mark += 1
        world.manager.answer = lambda _: None
        raise EXPIRED

    world.manager.answer = refuse_too_late
    async with world.at_work():
        await world.updater.set_section(1, A)
        await world.until(lambda: world.told.what() == ["refused", "done"])


async def test_the_same_refusal_after_a_change_is_no_news(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The node changed, the answer did not: one line in the log."""
    world.manager.refuse(EXPIRED)
    with caplog.at_level(logging.WARNING):
        async with world.at_work():
            await world.updater.set_section(1, A)
            await world.until(lambda: world.told.all)
            world.manager.mark += 1
            await world.updater.set_section(2, A)
            await world.until(lambda: len(world.told.all) == 2)
    assert world.told.what() == ["refused", "refused"]
    assert len(caplog.records) == 1


async def test_a_refusal_after_a_download_is_not_downloaded_again(world: World) -> None:
    """The swap adopted the entrypoint before it refused: that change of the node is its own and no reason to try."""

    def adopt_and_refuse() -> PendingRecord:
        world.manager.mark += 1
        raise Refusal("wrong-platform-binary", "the downloaded file is a program for Windows")

    world.manager.answer = fetching
    world.manager.swap_answer = adopt_and_refuse
    async with world.at_work():
        await world.updater.set_section(1, A)
        await world.until(lambda: "refused" in world.told.what())
        await world.updater.set_section(2, A)
        await asyncio.sleep(0.3)
    assert world.told.what() == ["progressing", "refused", "refused"]
    assert len(world.fetcher.wanted) == 1


async def test_a_failed_version_that_is_cleared_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """`bcd update --clear-failed` in another process takes effect within two seconds or so, as it does in service.

    On a real disk, and not a byte is downloaded: the other slot has it.
    """
    node, release = quick_node(tmp_path, monkeypatch), make_release("1.1.0", 11)
    node.fail(release)
    world = World(node, node.manager())
    async with world.at_work():
        await world.updater.set_section(1, release.section)
        await world.until(lambda: world.told.all)
        assert world.told.all == [("refused", None, 1, "failed-version")]
        await asyncio.to_thread(node.manager("0.0.0").clear_failed)
        began = time.monotonic()
        await world.until(lambda: "swapped" in world.told.what())
        assert time.monotonic() - began < 3
    assert world.fetcher.wanted == []
    assert node.runs() == "1.1.0"


# Errors that may pass ------------------------------------------------------------------------------------------------


async def test_a_download_that_failed_is_tried_again_after_a_pause(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told as progress with its cause, the pause is shown, and the second try goes through."""
    failures = [DownloadFailed("the server answered 503")]

    def fetch(wanted: Wanted, staging: Path, told: Callable[[Progress], None], cancelled: threading.Event) -> Path:
        if failures:
            raise failures.pop()
        return world.fetcher.bring(wanted, staging, told, cancelled)

    world.manager.answer = fetching
    world.fetcher.work = fetch
    with caplog.at_level(logging.WARNING):
        async with world.at_work():
            began = time.monotonic()
            await world.updater.set_section(7, A)
            await world.until(lambda: "swapped" in world.told.what())
    assert 0.5 <= time.monotonic() - began < 3
    assert world.told.all == [
        ("progressing", None, 7, ""),
        ("progressing", None, 7, "download-failed: the server answered 503"),
        ("progressing", None, 7, ""),
        ("swapped", None, 7, "1.1.0"),
    ]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    waiting = next(changes for changes in world.live.seen if changes.get("phase") == "waiting")
    assert waiting["error"] == "the server answered 503"
    assert world.live.values("retry_at")[-1] is None


@pytest.mark.parametrize(("asked", "pause"), [(30.0, 30), (86_400.0, 300)])
async def test_a_server_that_asks_for_patience_gets_it(world: World, asked: float, pause: int) -> None:
    """Retry-After beats a shorter pause of ours, and never makes one longer than ours may become."""
    world.manager.answer = fetching
    world.fetcher.work = raising(DownloadFailed("the server answered 429", retry_after=asked))  # type: ignore[assignment]
    async with world.at_work():
        await world.updater.set_section(1, A)
        await world.until(lambda: world.live.values("retry_at")[-1:] not in ([], [None]))
        retry_at = world.live.values("retry_at")[-1]
        assert isinstance(retry_at, int)
        assert pause - 2 <= retry_at - time.time() <= pause + 1


async def test_a_fault_of_bcd_itself_over_one_target_ends_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The gateway replays it, so that an agent that ended would end again: a mended release must still get through."""

    def answer(spec: object) -> None:
        if spec == A:
            raise ZeroDivisionError("\x1b[2J")

    world.manager.answer = answer
    with caplog.at_level(logging.ERROR):
        async with world.at_work():
            await world.updater.set_section(1, A)
            await world.until(lambda: world.told.all)
            await world.updater.set_section(2, B)
            await world.until(lambda: "done" in world.told.what())
    assert world.told.all[0] == (
        "progressing", None, 1, "io-error: a fault in bcd itself: ZeroDivisionError: \\x1b[2J"
    )  # fmt: skip
    assert [record.exc_info is not None for record in caplog.records] == [True]


async def test_the_same_section_again_does_not_cut_a_pause_short(world: World) -> None:
    """A gateway that reconnects every second is no reason to try every second, nor to answer with an old refusal."""
    world.manager.refuse(Refusal("below-floor", "sequence 3 is below 5"))
    async with world.at_work():
        await world.updater.set_section(1, A)
        await world.until(lambda: world.told.all)
        world.manager.answer = fetching
        world.fetcher.work = raising(DownloadFailed("busy", retry_after=30.0))  # type: ignore[assignment]
        world.manager.mark += 1
        await world.updater.set_section(2, A)
        await world.until(lambda: world.told.all[-1][3].startswith("download-failed"))
        before = list(world.told.all)
        for generation in range(3, 20):
            await world.updater.set_section(generation, A)
        await asyncio.sleep(0.05)
    assert len(world.fetcher.wanted) == 1
    assert world.told.all == before


async def test_an_update_in_progress_is_waited_for_and_then_gone_on_with(world: World) -> None:
    """Field report 10: the second section waits until the first update is settled, then runs at once."""
    world.manager.answer = raising(IN_PROGRESS)
    async with world.at_work():
        await world.updater.set_section(1, A)
        await world.until(lambda: world.told.all)
        world.manager.answer = lambda _: Prepared(version="1.1.0", fetch=None)
        assert world.manager.swapped == []
        began = time.monotonic()
        world.updater.try_again()
        await world.until(lambda: "swapped" in world.told.what())
        assert time.monotonic() - began < 0.4
    assert world.told.all[0] == ("progressing", None, 1, "update-in-progress: an update is pending here")


async def test_a_version_that_runs_unconfirmed_is_not_told_as_done(world: World) -> None:
    """It was welcomed, but the welcome could not be written down: it may yet be rolled back."""
    world.manager.left = LEFT
    async with world.at_work():
        await world.updater.set_section(1, A)
        world.updater.add_command("c1", A)
        await world.until(lambda: len(world.told.all) == 2)
        assert world.told.what() == ["progressing", "progressing"]
        world.manager.left = None
        world.updater.try_again()
        await world.until(lambda: len(world.told.all) == 4)
    assert world.told.what()[2:] == ["done", "done"]


async def test_without_room_nothing_is_downloaded(world: World) -> None:
    """The first byte is asked for only where the last one fits."""
    huge = Fetch(version="1.1.0", sequence=11, url="https://a", sha256="0" * 64, size=2**50)
    world.manager.answer = lambda _: Prepared(version="1.1.0", fetch=huge)
    async with world.at_work():
        await world.updater.set_section(1, A)
        await world.until(lambda: len(world.told.all) == 2)
    assert world.told.all[1][3].startswith("no-space: need ")
    assert world.fetcher.wanted == []


# At rest -------------------------------------------------------------------------------------------------------------


async def test_a_section_that_runs_is_told_for_each_generation(world: World) -> None:
    """The same version under a new generation is done at once."""
    async with world.at_work():
        for generation in (1, 2, 3):
            await world.updater.set_section(generation, A)
            await world.until(lambda: len(world.told.all) == generation)  # noqa: B023  # awaited in this round
    assert world.told.all == [("done", None, generation, "") for generation in (1, 2, 3)]


@pytest.mark.parametrize("state", ["nothing", "done", "refused", "waiting"])
async def test_an_updater_at_rest_does_nothing(world: World, state: str) -> None:
    """No busy loop: nothing is looked at but, of a refused section's node, a few file times now and then."""
    if state == "refused":
        world.manager.refuse(EXPIRED)
    if state == "waiting":
        world.manager.answer = fetching
        world.fetcher.work = raising(DownloadFailed("busy", retry_after=30.0))  # type: ignore[assignment]
    async with world.at_work():
        if state != "nothing":
            await world.updater.set_section(1, A)
            await world.until(lambda: world.told.all and (state != "waiting" or world.told.all[-1][3]))
        before, looks, cpu = len(world.manager.prepared), world.manager.looks, time.process_time()
        await asyncio.sleep(0.5)
        assert time.process_time() - cpu < 0.3
    assert len(world.manager.prepared) == before
    assert world.manager.looks - looks <= (6 if state == "refused" else 0)
    assert before == (0 if state == "nothing" else 1)


@pytest.mark.parametrize("spec", [None, [], "1.1.0", {}, {"version": 5}, {"version": "\x1b[2J"}, {"a": {"b": [1.5]}}])
async def test_a_malformed_section_is_refused_and_remembered_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, spec: object
) -> None:
    """By the real manager; what it is called can't write a terminal."""
    node = quick_node(tmp_path, monkeypatch)
    node.start()
    world = World(node, node.manager())
    with caplog.at_level(logging.WARNING):
        async with world.at_work():
            await world.updater.set_section(1, spec)
            await world.until(lambda: world.told.all)
            await world.updater.set_section(2, spec)
    assert world.told.all == [("refused", None, 1, "bad-section"), ("refused", None, 2, "bad-section")]
    assert len(caplog.records) == 1
    assert caplog.records[0].getMessage().isprintable()


async def test_a_good_section_is_swapped_in_on_a_real_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the section to `current`; what was staged is gone, and the pending record says who asked for it."""
    node, release = quick_node(tmp_path, monkeypatch), make_release("1.1.0", 11)
    node.start()
    world = World(node, node.manager())
    world.fetcher.work = staging(node, release)
    async with world.at_work():
        world.updater.add_command("c1", release.section)
        await world.until(lambda: "swapped" in world.told.what())
    assert node.runs() == "1.1.0"
    assert os.listdir(node.layout.staging) == []
    pending = node.json(node.layout.pending_record)
    assert pending is not None
    assert (pending["command_id"], pending["to_version"]) == ("c1", "1.1.0")
    assert [wanted.sha256 for wanted in world.fetcher.wanted] == [release.section["sha256"]]


def staging(node: Node, release: Release) -> Callable[..., Path]:
    """A download of `release`."""
    return lambda *_: node.stage(release)
