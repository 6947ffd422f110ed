"""The node's part of an update: one target at a time through prepare, download and swap (spec/self-update.md 4).

A target comes from the `daemon` section or from a command. A refusal is told and remembered for that exact section; a
retryable error is tried again with backoff; a newer section takes the place of an older one, also in mid-download.
What to do with it all is decided by the manager: this moves bytes and tells people.
"""

import asyncio
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bcd.core.answers import Fetch, Prepared, UpdateManager
from bcd.core.background import in_thread
from bcd.core.download import Fetcher, Progress, Wanted
from bcd.core.errors import BcdError, HostError, Refusal
from bcd.core.layout import Layout
from bcd.core.records import PendingRecord
from bcd.core.section import named_version
from bcd.core.space import check_room
from bcd.core.staging import held_bytes
from bcd.core.text import clean
from bcd.node.backoff import Backoff
from bcd.node.live import LiveState

_LOOK_AGAIN_SECONDS = 2.0
"""How often a refused section's node is looked at: an operator who cleared a failed version waits for it."""

_LONGEST_PAUSE_SECONDS = 300.0

_log = logging.getLogger(__name__)


@dataclass(kw_only=True, eq=False)
class Target:
    """Something to run."""

    spec: object
    command_id: str | None
    """None for the section."""
    generation: int = 0
    ready_at: float = 0.0
    """Monotonic seconds."""
    backoff: Backoff = field(default_factory=Backoff)
    finished: bool = False
    """Whether there is nothing more to do for it: it runs, or it is refused."""
    refusal: Refusal | None = None
    fingerprint: tuple[object, ...] = ()
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def shown(self) -> str:
        """The version that it names, for people."""
        return clean(named_version(self.spec) or "a malformed section", 80)


class Reporter(Protocol):
    """Who is told how a target stands."""

    async def target_progressing(self, target: Target, error: BcdError | None) -> None:
        """It is being worked on, or waits for another try after `error`."""

    async def target_done(self, target: Target) -> None:
        """Its version runs."""

    async def target_refused(self, target: Target, refusal: Refusal) -> None:
        """It is refused."""

    async def target_swapped(self, target: Target, pending: PendingRecord) -> None:
        """It is current: restart."""


class Updater:
    """One target at a time; commands before the section."""

    def __init__(
        self,
        *,
        manager: UpdateManager,
        layout: Layout,
        fetcher: Fetcher,
        live: LiveState,
        reporter: Reporter,
        server_time: Callable[[], int | None],
        look_again_seconds: float = _LOOK_AGAIN_SECONDS,
    ) -> None:
        self._manager = manager
        self._layout = layout
        self._fetcher = fetcher
        self._live = live
        self._reporter = reporter
        self._server_time = server_time
        self._look_again_seconds = look_again_seconds
        self._section: Target | None = None
        self._commands: dict[str, Target] = {}
        self._wake = asyncio.Event()
        self._replaced = False

    async def set_section(self, generation: int, spec: object) -> None:
        """The desired state names this section now."""
        old = self._section
        if old is not None and _same(old.spec, spec):
            old.generation = generation
            if old.finished and old.refusal is not None and self._still_holds(old, old.refusal):
                # The same section again is answered from memory: no download, no log line.
                await self._reporter.target_refused(old, old.refusal)
                return
            old.finished = False
        else:
            if old is not None:
                old.cancelled.set()
            self._section = Target(spec=spec, command_id=None, generation=generation)
        self._wake.set()

    def _still_holds(self, target: Target, refusal: Refusal) -> bool:
        # What expired by a wrong clock, the node's or a gateway's, must come back to life when the clock is mended.
        return refusal.code != "expired" and target.fingerprint == self._manager.look.fingerprint()

    def add_command(self, command_id: str, spec: object) -> None:
        """Run a command, once: one that is at work already is not added again."""
        if command_id not in self._commands:
            self._commands[command_id] = Target(spec=spec, command_id=command_id)
            self._wake.set()

    def try_again(self) -> None:
        """Something settled: whatever waited for it need not wait longer."""
        for target in self._targets():
            target.ready_at = 0.0
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while not self._replaced:
            self._wake.clear()
            now = time.monotonic()
            target = next((t for t in self._targets() if not t.finished and t.ready_at <= now), None)
            if target is not None:
                await self._attempt(target)
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._pause(now))
            section = self._section
            if section is not None and section.refusal is not None and section.finished:
                section.finished = section.fingerprint == self._manager.look.fingerprint()

    def _targets(self) -> list[Target]:
        return [*self._commands.values(), *([self._section] if self._section is not None else [])]

    def _pause(self, now: float) -> float | None:
        waits = [max(0.0, target.ready_at - now) for target in self._targets() if not target.finished]
        if self._section is not None and self._section.refusal is not None:
            waits.append(self._look_again_seconds)
        return min(waits, default=None)

    async def _attempt(self, target: Target) -> None:
        try:
            await self._once(target)
        except Exception as failure:  # noqa: BLE001  # told from a fault of our own below
            if target.cancelled.is_set():
                return
            error = failure if isinstance(failure, BcdError) else _fault(failure)
            if isinstance(error, Refusal):
                await self._end(target, error)
                return
            # What a server asks for counts up to the longest pause: a day of it would be a day without a mended release.
            asked = min(getattr(error, "retry_after", None) or 0.0, _LONGEST_PAUSE_SECONDS)
            delay = max(target.backoff.next(), asked)
            target.ready_at = time.monotonic() + delay
            _log.warning("%s: %s (%s); next try in %.0f s", target.shown, error.message, error.code, delay)
            self._live.update(phase="waiting", retry_at=int(time.time() + delay), error=error.message, rate=None)
            await self._reporter.target_progressing(target, error)
        else:
            self._live.update(retry_at=None, error=None)

    async def _once(self, target: Target) -> None:
        self._live.update(target=target.shown, phase="checking", error=None, retry_at=None)
        manager, server_time = self._manager, self._server_time()
        # Before it is looked at: what changes meanwhile (an operator's --clear-failed) may have come too late for it.
        target.fingerprint = manager.look.fingerprint()
        prepared = await in_thread(lambda: self._prepare(target.spec, server_time))
        if prepared is None:
            self._finish(target)
            self._live.update(phase="idle", target=None)
            await self._reporter.target_done(target)
            return
        await self._reporter.target_progressing(target, None)
        staged: Path | None = None
        if prepared.fetch is not None:
            _log.info("update to %s: downloading %d bytes", prepared.version, prepared.fetch.size)
            staged = await self._download(prepared.fetch, target.cancelled)
        if target.cancelled.is_set():
            return
        self._live.update(phase="staging")
        try:
            pending = await in_thread(
                lambda: manager.swap(target.spec, server_time=server_time, command_id=target.command_id)
            )
        except Refusal:
            # A swap changes the node before it refuses: the first one adopts the entrypoint.
            target.fingerprint = manager.look.fingerprint()
            raise
        if staged is not None:
            with suppress(OSError):
                os.unlink(staged)
        _log.info("update to %s: swapped into slot %s", pending.to_version, pending.to_slot)
        self._live.update(phase="swapped", pending_deadline=pending.deadline)
        self._finish(target)
        self._replaced = True
        await self._reporter.target_swapped(target, pending)

    def _prepare(self, spec: object, server_time: int | None) -> Prepared | None:
        prepared = self._manager.prepare(spec, server_time=server_time)
        if prepared is None and self._manager.look.time_left() is not None:
            # It runs, but no welcome is on record yet, so that it may still be rolled back: told as done it would be a lie.
            raise HostError(
                "update-in-progress",
                f"bcd {self._manager.running_version()} runs and is not confirmed yet",
                "it is confirmed by its first welcome, or rolled back within two minutes",
            )
        return prepared

    async def _download(self, fetch: Fetch, cancelled: threading.Event) -> Path:
        staging, slots_dir = Path(self._layout.staging), Path(self._layout.slots_dir)
        loop = asyncio.get_running_loop()

        def progress(now: Progress) -> None:
            with suppress(RuntimeError):  # the loop ended under the thread
                loop.call_soon_threadsafe(self._show_progress, now)

        def fetch_it() -> Path:
            check_room(staging, slots_dir, fetch.size, held_bytes(staging, fetch.version))
            wanted = Wanted(fetch.version, fetch.url, fetch.sha256, fetch.size)
            return self._fetcher.fetch(wanted, staging, progress=progress, cancelled=cancelled)

        self._live.update(phase="downloading", bytes_done=0, bytes_total=fetch.size, rate=None)
        try:
            return await in_thread(fetch_it)
        finally:
            self._live.update(bytes_done=None, bytes_total=None, rate=None)

    def _show_progress(self, now: Progress) -> None:
        self._live.update(bytes_done=now.bytes_done, bytes_total=now.bytes_total, rate=round(now.rate))

    async def _end(self, target: Target, refusal: Refusal) -> None:
        self._live.update(phase="idle", target=None, error=f"{target.shown}: {refusal.message}", retry_at=None)
        # Looked at again because something else changed on the node: the same answer is no news (field report 23).
        if target.refusal is None or target.refusal.message != refusal.message:
            _log.error("%s is refused: %s (%s)", target.shown, refusal.message, refusal.code)
        target.refusal = refusal
        self._finish(target)
        await self._reporter.target_refused(target, refusal)

    def _finish(self, target: Target) -> None:
        target.finished = True
        if target.command_id is not None:
            self._commands.pop(target.command_id, None)


def _fault(failure: Exception) -> HostError:
    # The gateway replays what it wants: a fault over one target that ended the agent would end each next one, until
    # systemd starts none any more, and no mended release could reach the node.
    _log.error("a fault in bcd itself", exc_info=failure)
    return HostError("io-error", f"a fault in bcd itself: {type(failure).__name__}: {clean(str(failure), 300)}")


def _same(one: object, other: object) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
