"""The agent: what runs as `bcd node` and `bcd site` (and, without self-update, `bcd sim` and `bcd ramdisk`).

It starts with Settle, holds a session with the gateway, confirms what a gateway welcomed, rolls back what none did,
and runs targets through the updater. It ends in one of two ways: stopped, or to be replaced by the entrypoint's
program; the caller execs, with everything here closed.
"""

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import Enum
from functools import partial

from bcd.core.answers import Settled, UpdateManager
from bcd.core.background import in_thread
from bcd.core.build import Build, this_platform
from bcd.core.config import Config
from bcd.core.download import Fetcher
from bcd.core.errors import BcdError, HostError, Refusal
from bcd.core.layout import layout_of
from bcd.core.notify import notify, ready
from bcd.core.records import PendingRecord
from bcd.core.section import named_version
from bcd.core.settle import Outcome
from bcd.core.text import clean
from bcd.core.versions import is_version
from bcd.node.frames import (
    Ack,
    Command,
    CommandState,
    CommandStatus,
    Hello,
    Section,
    SectionState,
    SectionStatus,
    Welcome,
)
from bcd.node.live import LiveState
from bcd.node.outbox import Entry, Outbox
from bcd.node.protocol import PROTOCOL
from bcd.node.session import GatewaySession
from bcd.node.updater import Target, Updater

ROLES = ("node", "site", "sim", "ramdisk")
UPDATING_ROLES = ("node", "site")

_ID_LIMIT = 256
_CONFIRM_AGAIN_SECONDS = 1.0
_ROLL_BACK_AGAIN_SECONDS = 10.0
_SETTLE_AGAIN_SECONDS = 10.0
_TICK_SECONDS = 1.0
_CLOSE_SECONDS = 3.0

_log = logging.getLogger(__name__)


class Ending(Enum):
    """Why the agent ended."""

    STOPPED = "stopped"
    RESTART = "restart"


class Agent:
    """One run of the agent, from after Settle to its end.

    Args:
        role: one of `ROLES`.
        config: what is in force.
        build: the running binary's stamp.
        manager: None for a role that does not update itself.
        settled: what the start found; None where it could not be settled yet, and the agent goes on trying.
        fetcher: brings a release into staging.
    """

    def __init__(
        self,
        *,
        role: str,
        config: Config,
        build: Build,
        manager: UpdateManager | None,
        settled: Settled | None,
        fetcher: Fetcher,
    ) -> None:
        self._role = role
        self._config = config
        self._build = build
        self._manager = manager
        self._settled = settled
        self._outbox = Outbox(config.node.data_dir)
        self._live = LiveState(role=role, version=build.version)
        self._session = GatewaySession(config.node, self, self._live)
        self._server_time: tuple[int, float] | None = None
        self._ending: asyncio.Future[Ending] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._pending: PendingRecord | None = None
        self._unconfirmed: str | None = None
        """Why a welcome could not be confirmed, as long as that is so."""
        self._updater = (
            None
            if manager is None
            else Updater(
                manager=manager,
                layout=layout_of(config),
                fetcher=fetcher,
                live=self._live,
                reporter=self,
                server_time=self._server_now,
            )
        )

    async def run(self) -> Ending:
        """Run until a signal or a restart."""
        loop = asyncio.get_running_loop()
        self._ending = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, Ending.STOPPED)
        await self._live.serve(self._config.node.data_dir)
        if self._manager is not None and self._settled is not None:
            self._begin(self._manager, self._settled)
        elif self._manager is not None:
            self._start(self._settle_later(self._manager))
        self._start(self._session.run())
        # No gateway is waited for: whether one welcomes this binary is the deadline's to judge, not the service manager's.
        ready(f"bcd {self._build.version} runs as {self._role}")
        try:
            ending = await self._ending
            if ending is Ending.STOPPED:
                notify("STOPPING=1")
            return ending
        finally:
            await self._close()

    def _begin(self, manager: UpdateManager, settled: Settled) -> None:
        """Start what must know how this start was settled."""
        if _waits(settled):
            self._pending = settled.pending
        self._tell_settled(settled)
        if self._updater is not None:
            self._start(self._updater.run())
        if self._pending is not None:
            self._live.update(
                phase="waiting for welcome",
                target=self._pending.to_version,
                pending_deadline=self._pending.deadline,
            )
            self._start(self._watch_deadline(manager))

    async def _settle_later(self, manager: UpdateManager) -> None:
        """Settle when the disk can be written, or the lock taken, again.

        Until then nothing is updated; without it, a pending release would run on with no deadline and no confirm, to be
        rolled back as late by some later start.
        """
        while self._settled is None:
            await asyncio.sleep(_SETTLE_AGAIN_SECONDS)
            try:
                self._settled = await in_thread(manager.settle)
            except HostError as error:
                if error.code == "slots-broken":
                    raise
                _log.debug("updates are still off: %s", error.message)
        if self._settled.restart:
            self._end(Ending.RESTART)
            return
        _log.info("updates are on again")
        self._begin(manager, self._settled)
        if self._server_time is not None:
            await self._catch_up(manager)

    # -- the session asks ---------------------------------------------------------------------------------------

    def hello(self) -> Hello:
        """What this node says first."""
        return Hello(
            protocol=PROTOCOL,
            node_id=self._config.node.node_id or socket.gethostname(),
            role=self._role,
            version=self._build.version,
            platform=this_platform(),
            sections=self._outbox.sections(),
        )

    def is_pending(self) -> bool:
        """Whether a release waits for its welcome."""
        return self._pending is not None

    async def welcomed(self, welcome: Welcome) -> None:
        """A gateway took the node: confirm what waits for it, and send what it has not acked."""
        self._server_time = (welcome.server_time, time.monotonic())
        await self._catch_up(self._manager)

    async def _catch_up(self, manager: UpdateManager | None) -> None:
        if self._pending is not None and manager is not None:
            await self._confirm(manager)
        self._resolve()
        for status in self._outbox.unacked():
            await self._session.send(status)

    async def session_refused(self, said: str) -> None:
        """A gateway answered and did not take the node: no verdict, but a reason to show if the deadline passes."""
        manager = self._manager
        if self._pending is not None and manager is not None:
            try:
                await in_thread(lambda: manager.note_gateway_refused(said))
            except BcdError as error:
                _log.debug("%s", error.message)  # only words for a reason, and it comes at each try

    async def received(self, frame: Section | Command | Ack) -> None:
        """Something to do."""
        match frame:
            case Ack(id=command_id):
                self._keep(lambda: self._outbox.ack(command_id))
            case Section():
                await self._section(frame)
            case Command():
                await self._command(frame)

    async def _section(self, frame: Section) -> None:
        if len(frame.name) > _ID_LIMIT:
            _log.warning("a section with an unusable name was passed over")
        elif self._updater is None or frame.name != "daemon":
            await self._report_section(frame.name, frame.generation, "UNSUPPORTED", reason="SectionUnsupported")
        else:
            await self._updater.set_section(frame.generation, frame.spec)
            if self._settled is None:
                why = HostError("io-error", "updates are off until this node's records can be worked on")
                await self.target_progressing(Target(spec=frame.spec, command_id=None), why)

    async def _command(self, frame: Command) -> None:
        if not 0 < len(frame.id) <= _ID_LIMIT:
            _log.warning("a command with an unusable id was passed over")
            return
        entry = self._outbox.command(frame.id)
        if entry is None and self._outbox.is_full():
            # Told and not kept: what the gateway keeps of it, it does not send again; else it may be taken later.
            why = HostError(
                "too-many-commands",
                "too many commands wait here for their end or their ack; ack those, then send this one again",
            )
            await self._session.send(
                CommandStatus(id=frame.id, state="FAILED", reason="update-failed", code=why.code, message=why.message)
            )
            return
        if entry is None:
            version = named_version(frame.args)
            # What is no version never runs here, and may be as long as a frame.
            entry = Entry(id=frame.id, version=version if version is not None and is_version(version) else None)
            if self._updater is None or frame.kind != "daemon.upgrade":
                entry.state = "UNSUPPORTED"
                entry.message = f"{clean(frame.kind, 80)} is not supported by the role {self._role}"
            self._keep(lambda: self._outbox.put(entry))
        await self._session.send(entry.status())
        if not entry.final and self._updater is not None:
            self._updater.add_command(frame.id, frame.args)

    # -- the updater tells --------------------------------------------------------------------------------------

    async def target_progressing(self, target: Target, error: BcdError | None) -> None:
        """A target is being worked on: the section keeps the generation it was last decided for."""
        if error is not None and error.code == "update-in-progress" and await self._is_swapped_under_us():
            # The helper swapped and its answer was lost: what is current is not what runs here.
            self._end(Ending.RESTART)
            return
        code, message = (None, None) if error is None else (error.code, error.message)
        if target.command_id is not None:
            await self._report_command(target.command_id, "RUNNING", code=code, message=message)
            return
        decided = next((s.observed_generation for s in self._outbox.sections() if s.name == "daemon"), 0)
        await self._report_section("daemon", decided, "PROGRESSING", code=code, message=message)

    async def _is_swapped_under_us(self) -> bool:
        manager = self._manager
        if manager is None or self._settled is None or self._pending is not None:
            return False
        try:
            return await in_thread(manager.look.is_swapped)
        except BcdError:
            return False

    async def target_done(self, target: Target) -> None:
        """A target's version runs."""
        if target.command_id is not None:
            await self._report_command(target.command_id, "SUCCEEDED", message=f"{self._build.version} runs")
        else:
            await self._report_section("daemon", target.generation, "READY")

    async def target_refused(self, target: Target, refusal: Refusal) -> None:
        """A target is refused, for good until something changes on the node."""
        if target.command_id is not None:
            await self._report_command(
                target.command_id, "FAILED", reason="update-failed", code=refusal.code, message=refusal.message
            )
        else:
            await self._report_section(
                "daemon",
                target.generation,
                "FAILED",
                reason="UpdateFailed",
                code=refusal.code,
                message=refusal.message,
            )

    async def target_swapped(self, target: Target, pending: PendingRecord) -> None:
        """A target is current: be replaced by it."""
        _log.info("restarting into %s (%s)", pending.to_version, "a command" if target.command_id else "the section")
        self._end(Ending.RESTART)

    # -- confirm and roll back ----------------------------------------------------------------------------------

    async def _confirm(self, manager: UpdateManager) -> None:
        try:
            confirmed = await in_thread(manager.confirm)
            if confirmed is None and await in_thread(manager.look.went_back):
                # A rollback was faster than the welcome. What runs here is not what is current, and has not succeeded.
                self._end(Ending.RESTART)
                return
        except BcdError as error:
            # Not written is not confirmed. The deadline goes on; so does trying, once for all welcomes.
            level = logging.DEBUG if error.message == self._unconfirmed else logging.ERROR
            _log.log(level, "the welcome could not be confirmed: %s", error.message)
            if self._unconfirmed is None:
                self._start(self._confirm_later(manager))
            self._unconfirmed = error.message
            return
        self._pending = self._unconfirmed = None
        self._live.update(phase="idle", target=None, pending_deadline=None)
        if confirmed is not None:
            _log.info("update to %s is confirmed, release floor %d", confirmed.to_version, confirmed.sequence)
        if self._updater is not None:
            self._updater.try_again()

    async def _confirm_later(self, manager: UpdateManager) -> None:
        while self._pending is not None:
            await asyncio.sleep(_CONFIRM_AGAIN_SECONDS)
            if self._pending is not None:
                await self._confirm(manager)
        await self._catch_up(manager)

    async def _watch_deadline(self, manager: UpdateManager) -> None:
        said = ""
        while self._pending is not None:
            try:
                # Asked anew at each tick: the loop's clock stands still while the machine is suspended.
                left = await in_thread(manager.look.time_left)
                if left is None:
                    return
                if left.seconds > 0:
                    await asyncio.sleep(min(left.seconds, _TICK_SECONDS))
                    continue
                moved = await in_thread(lambda: manager.rollback(way="deadline") or manager.look.went_back())
            except BcdError as error:
                level = logging.DEBUG if error.message == said else logging.ERROR
                _log.log(level, "the rollback did not happen: %s", error.message)
                said = error.message
                self._live.update(error=error.message)
                await asyncio.sleep(_ROLL_BACK_AGAIN_SECONDS)
                continue
            if moved:
                _log.error("no gateway welcomed %s before its deadline; going back", self._build.version)
                self._end(Ending.RESTART)
            return

    # -- shared -------------------------------------------------------------------------------------------------

    def _tell_settled(self, settled: Settled) -> None:
        if settled.failed is not None:
            _log.error("%s", settled.failed.reason)
            self._live.update(error=settled.failed.reason)
        if settled.outcome is Outcome.INTERRUPTED and settled.pending is not None:
            _log.warning(
                "the update to %s was cut off before it ran; it may be tried again", settled.pending.to_version
            )
        self._resolve()

    def _resolve(self) -> None:
        """Give each command whose update is settled its final status, from what the disk says."""
        if self._manager is None or self._settled is None or self._pending is not None:
            return
        unfinished = self._outbox.unfinished()
        if not unfinished:
            return
        try:
            failed = self._manager.look.failed()
        except BcdError as error:
            _log.warning("%s", error.message)
            return
        for entry in unfinished:
            if entry.version == self._build.version:
                entry.state, entry.message = "SUCCEEDED", f"{self._build.version} runs"
                entry.reason = entry.code = None
            elif entry.version in failed:
                entry.state, entry.reason, entry.code = "FAILED", "update-failed", "failed-version"
                entry.message = str(failed[entry.version].reason)
            else:
                continue
            self._keep(partial(self._outbox.put, entry))

    async def _report_command(
        self,
        command_id: str,
        state: CommandState,
        *,
        reason: str | None = None,
        code: str | None = None,
        message: str | None = None,
    ) -> None:
        entry = self._outbox.command(command_id) or Entry(id=command_id)
        entry.state, entry.reason, entry.code = state, reason, code
        entry.message = _bounded(message)
        self._keep(lambda: self._outbox.put(entry))
        await self._session.send(entry.status())

    async def _report_section(
        self,
        name: str,
        generation: int,
        state: SectionState,
        *,
        reason: str | None = None,
        code: str | None = None,
        message: str | None = None,
    ) -> None:
        status = SectionStatus(
            name=name,
            observed_generation=generation,
            state=state,
            reason=reason,
            code=code,
            message=_bounded(message),
        )
        if name == "daemon":
            self._keep(lambda: self._outbox.put_section(status))
        await self._session.send(status)

    def _keep(self, write: Callable[[], None]) -> None:
        try:
            write()
        except HostError as error:
            # Told all the same; a restart before the disk is well again would tell it a second time.
            _log.warning("%s", error.message)

    def _server_now(self) -> int | None:
        if self._server_time is None:
            return None
        told, at = self._server_time
        return told + int(time.monotonic() - at)

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        failure = None if task.cancelled() else task.exception()
        if failure is not None and self._ending is not None and not self._ending.done():
            # A fault of our own must not leave half an agent: end, and let whatever starts bcd start it anew.
            self._ending.set_exception(failure)

    def _end(self, ending: Ending) -> None:
        if self._ending is not None and not self._ending.done():
            self._ending.set_result(ending)

    async def _close(self) -> None:
        with suppress(Exception):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._session.close(f"bcd {self._build.version} ends")
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._live.close()


def _bounded(message: str | None) -> str | None:
    # It is kept and told after each hello: one that made a frame too long would keep the node out for good.
    return None if message is None else clean(message)


def _waits(settled: Settled) -> bool:
    """Whether what settled is a release that runs and waits for its welcome, a rollback that could not happen included."""
    return settled.outcome in (Outcome.PENDING, Outcome.ROLL_BACK)
