"""An updater at work over a manager, a fetcher and a reporter that are the test's: what it asked, and what it told."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from bcd.core.answers import Fetch, Prepared
from bcd.core.build import Build
from bcd.core.deadline import Left
from bcd.core.download import Progress, Wanted
from bcd.core.errors import BcdError, HostError, Refusal
from bcd.core.look import Look
from bcd.core.manager import Manager
from bcd.core.records import PendingRecord
from bcd.core.service import NoServiceManager
from bcd.node.live import LiveState
from bcd.node.updater import Target, Updater
from tests.core.node_root import Node
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


class ScriptedLook(Look):
    """What a scripted manager says of the disk."""

    def __init__(self, manager: "Scripted") -> None:
        super().__init__(manager.node.layout, manager.node.clock)
        self._manager = manager

    def fingerprint(self) -> tuple[object, ...]:
        self._manager.looks += 1
        return (self._manager.mark,)

    def time_left(self) -> Left | None:
        return self._manager.left


class Scripted(Manager):
    """A manager whose answers are the test's; nothing but its staging directory touches the disk."""

    def __init__(self, node: Node) -> None:
        super().__init__(
            config=node.config, build=Build("1.0.0", 0, 0, fakehw=False), clock=node.clock, service=NoServiceManager()
        )
        self.node = node
        self.look = ScriptedLook(self)
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
            layout=node.layout,
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
