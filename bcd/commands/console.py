"""`bcd console`: the terminal looked at first, then Textual, and an honest exit status at the end."""

import os
import time
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from bcd.commands.check import judge_manifest, read_manifest
from bcd.commands.streams import print_lines
from bcd.core.acceptance import Acceptance
from bcd.core.build import this_build
from bcd.core.clock import Clock, SystemClock
from bcd.core.config import load_config
from bcd.core.durable import host_error
from bcd.core.errors import BcdError, NotPermitted
from bcd.core.exits import ExitStatus
from bcd.core.history import read_events
from bcd.core.layout import layout_of
from bcd.core.records import Failed, Json
from bcd.node.client import read_live_state
from bcd.tui.preflight import require_terminal
from bcd.tui.snapshot import Snapshot
from bcd.tui.source import Source

if TYPE_CHECKING:
    from bcd.lab.session import LabSession

_EVENTS = 500
_NARRATE_SECONDS = 0.5


def run_console(
    config_path: str,
    *,
    screen: str,
    theme: str,
    mouse: bool,
    read_only: bool,
    log: str | None,
    lab: "LabSession | None" = None,
) -> ExitStatus:
    """Open the console, on a lab's node where `lab` is given.

    Raises:
        UsageError: `no-terminal`.
    """
    require_terminal()
    from bcd.doctor.checks import CHECKS
    from bcd.doctor.finding import Report
    from bcd.doctor.probes import NODE_UNIT, SYSTEMD_DIRECTORY, Probes
    from bcd.doctor.run import run_checks
    from bcd.tui.app import ConsoleApp
    from bcd.tui.journal import Journal, LogFile, NoJournal, SystemdJournal

    build = this_build() if lab is None else lab.build
    clock: Clock = SystemClock() if lab is None else lab.clock
    source = Source(config_path, build, clock, read_live_state, read_only=read_only)

    def read() -> Snapshot:
        if lab is None:
            return source.read()
        # This console is no binary of the lab's, and the lab's supervisor is its systemd.
        return replace(source.read(), running_slot_moved=False, crash_loop_rollback=True)

    def events() -> tuple[Json, ...]:
        try:
            return tuple(islice(read_events(layout_of(load_config(config_path)).history), _EVENTS))
        except (OSError, BcdError):
            return ()

    def examine() -> Report:
        return run_checks(
            CHECKS, Probes(config_path=config_path, build=build, clock=clock, timeout_seconds=4.0), timeout_seconds=5.0
        )

    def clear(versions: tuple[str, ...]) -> tuple[Failed, ...]:
        from bcd.core.manager import Manager
        from bcd.core.service import NoServiceManager

        if read_only:
            raise NotPermitted("read-only", "this console is read-only", "start it without --read-only")
        manager = Manager(config=load_config(config_path), build=build, clock=clock, service=NoServiceManager())
        return manager.clear_failed(versions)

    def judge(given: str) -> Acceptance:
        return judge_manifest(given.encode() if given.startswith("{") else read_manifest(given), config_path)

    journal: Journal = NoJournal("no journal: there is no systemd here, and no --log FILE was given")
    if log is not None:
        journal = LogFile(log)
    elif os.path.isdir(SYSTEMD_DIRECTORY):
        journal = SystemdJournal(NODE_UNIT)
    app = ConsoleApp(
        read=read,
        read_events=events,
        examine=examine,
        clear=clear,
        judge=judge,
        journal=journal,
        start_at=screen,
        theme=theme,
        signals=lab is None,
        lab=None if lab is None else lab.desk,
        read_only=read_only,
    )
    if lab is not None:
        lab.signalled.then = app.end
        if lab.signalled.status is not None:
            return lab.signalled.status
    try:
        app.run(mouse=mouse)
    finally:
        journal.close()
    if app.start_anew_at is not None:
        _start_anew(config_path, app.start_anew_at)
    # Textual ends a crashed app with a return code and no exception: it must not pass for a good end.
    code = app.return_code
    return ExitStatus.CRASH if code == 1 else ExitStatus(code or 0)


def _start_anew(config_path: str, screen: str) -> None:
    entrypoint = load_config(config_path).update.entrypoint
    try:
        os.execv(entrypoint, [entrypoint, "console", "--config", config_path, "--screen", screen])  # noqa: S606
    except OSError as error:
        raise host_error(error, "start the console anew") from error


def run_narrated(config_path: str, *, lab: "LabSession | None" = None) -> None:
    """Say what is, then each change, a plain sentence a line, until a signal ends it or nobody reads any more.

    Raises:
        Ended: a signal asked a lab to end.
    """
    from bcd.tui.narrate import narrate

    source = Source(
        config_path,
        this_build() if lab is None else lab.build,
        SystemClock() if lab is None else lab.clock,
        read_live_state,
    )

    def pause() -> None:
        time.sleep(_NARRATE_SECONDS)
        if lab is not None:
            lab.signalled.check()

    for sentence in narrate(source.read, pause):
        if not print_lines([sentence]):
            return
