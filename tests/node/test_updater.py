"""One target at a time through prepare, download and swap: what is tried, how often, and what is told of it.

The manager is scripted where its answers matter, and the real one on a real disk where the disk does.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from bcd.core.build import Build
from bcd.core.deadline import Left
from bcd.core.download import DownloadFailed, Progress, Wanted
from bcd.core.errors import BcdError, HostError, Refusal
from bcd.core.manager import Fetch, Manager, Prepared
from bcd.core.records import PendingRecord
from bcd.core.service import NoServiceManager
from bcd.node.live import LiveState
from bcd.node.updater import Target, Updater
from tests.core.node_root import Node, Release, make_release, quick_node
from tests.node.gateways import eventually

A = {"version": "1.1.0", "url": "https://a"}
B = {"version": "1.2.0", "url": "https://b"}
FETCH = Fetch(version="1.1.0", sequence=11, url="https://a", sha256="0" * 64, size=1000)
LEFT = Left(100.0, 100.0, same_boot=True)
EXPIRED = Refusal("expired", "the manifest expired 5 s ago")
IN_PROGRESS = HostError("update-in-progress", "an update is pending here")
PENDING = PendingRecord(
    swap_id="0" * 32,
    from_version="1.0.0",
    to_version="1.1.0",
    from_slot="a",
    to_slot="b",
    sequence=11,
    command_id=None,
    launched=False,
    swapped_at=0,
    deadline=120,
    boot_id="",
    swapped_boottime=0.0,
)


class Scripted(Manager):
    """A manager whose answers are the test's; nothing but its staging directory touches the disk."""

    def __init__(self, node: Node) -> None:
        super().__init__(
            config=node.config, build=Build("1.0.0", 0, 0, fakehw=False), clock=node.clock, service=NoServiceManager()
        )
        self.prepared: list[object] = []
        """What was looked at."""
        self.swapped: list[tuple[object, str | None]] = []
        self.looks = 0
        """How often somebody asked whether the node had changed."""
        self.mark = 0
        """Stands for what may change a refusal."""
        self.left: Left | None = None
        self.answer: Callable[[object], Prepared | None] = lambda _: None
        self.swap_answer: Callable[[], PendingRecord] = lambda: PENDING

    def prepare(self, spec: object, *, server_time: int | None) -> Prepared | None:
        self.prepared.append(spec)
        return self.answer(spec)

    def swap(self, spec: object, *, server_time: int | None, command_id: str | None) -> PendingRecord:
        self.swapped.append((spec, command_id))
        return self.swap_answer()

    def fingerprint(self) -> tuple[object, ...]:
        self.looks += 1
        return (self.mark,)

    def time_left(self) -> Left | None:
        return self.left

    def refuse(self, refusal: Refusal) -> None:
        """Refuse everything from now on."""
        self.answer = raising(refusal)


def raising(error: Exception) -> Callable[..., None]:
    """An answer that is an error."""

    def answer(*_: object) -> None:
        raise error

    return answer


def fetching(_: object = None) -> Prepared:
    """The answer that there is something to download."""
    return Prepared(version="1.1.0", fetch=FETCH)


class Fetched:
    """A fetcher whose answers are the test's."""

    def __init__(self) -> None:
        self.wanted: list[Wanted] = []
        self.work: Callable[[Wanted, Path, Callable[[Progress], None], threading.Event], Path] = self.bring

    def fetch(
        self, wanted: Wanted, staging: Path, *, progress: Callable[[Progress], None], cancelled: threading.Event
    ) -> Path:
        self.wanted.append(wanted)
        return self.work(wanted, staging, progress, cancelled)

    @staticmethod
    def bring(wanted: Wanted, staging: Path, _: Callable[[Progress], None], __: threading.Event) -> Path:
        """Put some file there."""
        path = staging / f"bcd-{wanted.version}"
        path.write_bytes(b"some")
        return path


class Told:
    """The reporter: what it was told, in order, as (what, of which command, generation, detail)."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str | None, int, str]] = []

    def what(self) -> list[str]:
        """Only the kinds."""
        return [one[0] for one in self.all]

    def _keep(self, what: str, target: Target, detail: str = "") -> None:
        self.all.append((what, target.command_id, target.generation, detail))

    async def target_progressing(self, target: Target, error: BcdError | None) -> None:
        self._keep("progressing", target, "" if error is None else f"{error.code}: {error.message}")

    async def target_done(self, target: Target) -> None:
        self._keep("done", target)

    async def target_refused(self, target: Target, refusal: Refusal) -> None:
        self._keep("refused", target, refusal.code)

    async def target_swapped(self, target: Target, pending: PendingRecord) -> None:
        self._keep("swapped", target, pending.to_version)


class World:
    """An updater at work, and everything around it."""

    def __init__(self, node: Node, manager: Manager | None = None, *, look_again_seconds: float = 2.0) -> None:
        self.node = node
        self.manager = Scripted(node)
        self.fetcher = Fetched()
        self.told = Told()
        self.live = Shown()
        self.updater = Updater(
            manager=manager or self.manager,
            fetcher=self.fetcher,
            live=self.live,
            reporter=self.told,
            server_time=lambda: None,
            look_again_seconds=look_again_seconds,
        )
        self.task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Run it meanwhile."""
        self.task = asyncio.create_task(self.updater.run())
        try:
            yield
        finally:
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task

    async def until(self, true: Callable[[], object], seconds: float = 10.0) -> None:
        """Wait until something is true, and see that the updater lives."""
        await eventually(lambda: true() or (self.task is not None and self.task.done()), seconds)
        assert true()


class Shown(LiveState):
    """A live state that remembers what it showed."""

    def __init__(self) -> None:
        super().__init__(role="node", version="1.0.0")
        self.seen: list[dict[str, object]] = []

    def update(self, **changes: object) -> None:
        self.seen.append(changes)
        super().update(**changes)

    def values(self, key: str) -> list[object]:
        """The values that it was given, in order, repetitions left out."""
        found: list[object] = []
        for changes in self.seen:
            if key in changes and (not found or found[-1] != changes[key]):
                found.append(changes[key])
        return found


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
    world.manager.refuse(EXPIRED)
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
