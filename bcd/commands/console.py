"""`bcd console`: the terminal looked at first, then Textual, and an honest exit status at the end."""

import gc
import os
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bcd.commands.streams import print_lines
from bcd.core.build import this_build
from bcd.core.clock import Clock, SystemClock
from bcd.core.config import load_config
from bcd.core.durable import host_error
from bcd.core.errors import NotPermitted
from bcd.core.exits import ExitStatus
from bcd.core.records import Failed
from bcd.core.status import read_status
from bcd.core.text import clean
from bcd.tui.preflight import require_terminal
from bcd.tui.snapshot import Snapshot
from bcd.tui.view import View

if TYPE_CHECKING:
    from bcd.core.acceptance import Acceptance
    from bcd.doctor.finding import Report
    from bcd.lab.session import LabSession
    from bcd.tui.app import ConsoleApp
    from bcd.tui.journal import Journal

_NARRATE_SECONDS = 0.5
_ARGUMENT_LIMIT = 300
"""Characters of what is carried into a new console."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What the console was started with."""

    config_path: str
    view: View = field(default_factory=View)
    theme: str = "dark"
    mouse: bool = False
    read_only: bool = False
    log: str | None = None
    color: str = "auto"
    bundle: str | None = None


def run_console(asked: Asked, lab: "LabSession | None" = None) -> ExitStatus:
    """Open the console, on a lab's node where `lab` is given.

    Raises:
        UsageError: `no-terminal`, or `unreadable-bundle`.
        HostError: the program that `current` names could not be started.
    """
    require_terminal()
    gc.disable()  # a start makes no garbage: this is a tenth of the time to the first frame, after which it is enabled
    app, journal = _of_bundle(asked, asked.bundle) if asked.bundle is not None else open_on_this_machine(asked, lab)
    if lab is not None:
        lab.signalled.then = app.end
        if lab.signalled.status is not None:
            return lab.signalled.status
    try:
        app.run(mouse=asked.mouse)
    finally:
        gc.enable()
        journal.close()
    if app.start_anew_at is not None:
        _start_anew(asked, app.start_anew_at, app.theme)
    # Textual ends a crashed app with a return code and no exception: it must not pass for a good end.
    code = app.return_code
    return ExitStatus.CRASH if code == 1 else ExitStatus(code or 0)


def open_on_this_machine(asked: Asked, lab: "LabSession | None") -> "tuple[ConsoleApp, Journal]":
    """The console over this machine's node, or over a lab's, and the journal to close after it."""
    from bcd.core.units import NODE_UNIT, SYSTEMD_DIRECTORY
    from bcd.node.follow import LiveFollower
    from bcd.tui.app import ConsoleApp
    from bcd.tui.glyphs import terminal_is_ascii_only
    from bcd.tui.journal import Journal, LogFile, NoJournal, SystemdJournal
    from bcd.tui.source import Source
    from bcd.tui.vitals import VitalSigns, node_unit

    build, config_path = this_build() if lab is None else lab.build, asked.config_path
    clock: Clock = SystemClock() if lab is None else lab.clock
    vitals = VitalSigns(node_unit() if lab is None else None)
    source = Source(config_path, build, clock, LiveFollower(), read_vitals=vitals, read_only=asked.read_only)

    def read() -> Snapshot:
        if lab is None:
            return source.read()
        # This console is no binary of the lab's, and the lab's supervisor is its systemd.
        return replace(source.read(), running_slot_moved=False, crash_loop_rollback=True)

    # What only some screens need is loaded by the thread that works for them, and not before the first frame.
    def examine() -> "Report":
        from bcd.doctor.checks import CHECKS
        from bcd.doctor.probes import Probes
        from bcd.doctor.run import run_checks

        return run_checks(
            CHECKS, Probes(config_path=config_path, build=build, clock=clock, timeout_seconds=4.0), timeout_seconds=5.0
        )

    def clear(versions: tuple[str, ...]) -> tuple[Failed, ...]:
        from bcd.core.manager import Manager
        from bcd.core.service import NoServiceManager

        if asked.read_only:
            raise NotPermitted("read-only", "this console is read-only", "start it without --read-only")
        manager = Manager(config=load_config(config_path), build=build, clock=clock, service=NoServiceManager())
        return manager.clear_failed(versions)

    def judge(given: str) -> "Acceptance":
        from bcd.commands.check import judge_manifest, read_manifest

        return judge_manifest(given.encode() if given.startswith("{") else read_manifest(given), config_path)

    journal: Journal = NoJournal("no journal: there is no systemd here, and no --log FILE was given")
    if asked.log is not None:
        journal = LogFile(asked.log)
    elif os.path.isdir(SYSTEMD_DIRECTORY):
        journal = SystemdJournal(NODE_UNIT)
    app = ConsoleApp(
        read=read,
        read_events=source.read_events,
        examine=examine,
        clear=clear,
        judge=judge,
        journal=journal,
        view=asked.view,
        theme=f"bcd-{asked.theme}",
        ascii_only=terminal_is_ascii_only(),
        signals=lab is None,
        lab=None if lab is None else lab.desk,
        read_only=asked.read_only,
    )
    return app, journal


def _of_bundle(asked: Asked, file: str) -> "tuple[ConsoleApp, Journal]":
    """Another machine's, from a bundle: nothing here looks at this one."""
    from bcd.doctor.open_bundle import open_bundle
    from bcd.tui.bundled import Bundled, no_judging

    bundled = Bundled(file, open_bundle(file))
    from bcd.tui.app import ConsoleApp

    app = ConsoleApp(
        read=bundled.read,
        read_events=bundled.read_events,
        examine=bundled.examine,
        clear=bundled.clear,
        judge=no_judging,
        journal=bundled.journal,
        view=asked.view,
        theme=f"bcd-{asked.theme}",
        evidence=bundled.look,
    )
    return app, bundled.journal


def anew(asked: Asked, view: View, theme: str, *, to_older: bool = False) -> list[str]:
    """The arguments with which a new console shows what this one showed, and may do what it might.

    One that is older, after a rollback, may not know where to look; what it may do it must be told.
    """
    if to_older:
        view = View(screen=view.screen)
    given = ["console", "--config", asked.config_path, "--screen", view.screen, "--theme", theme.removeprefix("bcd-")]
    # With `=`: what was typed may begin with a dash. Cleaned: an argument holds no NUL and no half of a character.
    if view.filter:
        given.append(f"--filter={clean(view.filter, _ARGUMENT_LIMIT)}")
    if view.cursor:
        given.append(f"--cursor={clean(view.cursor, _ARGUMENT_LIMIT)}")
    if asked.log is not None:
        given.append(f"--log={asked.log}")
    if asked.color != "auto" and not to_older:
        given.append(f"--color={asked.color}")
    return [*given, *(["--mouse"] if asked.mouse else []), *(["--read-only"] if asked.read_only else [])]


def _start_anew(asked: Asked, view: View, theme: str) -> None:
    config, build = load_config(asked.config_path), this_build()
    entrypoint = config.update.entrypoint
    status = read_status(config, build, SystemClock())
    target = status.record(status.current.slot)
    to_older = target is None or target.sequence < build.sequence
    try:
        os.execv(entrypoint, [entrypoint, *anew(asked, view, theme, to_older=to_older)])  # noqa: S606  # the program that takes over: no shell is wanted
    except OSError as error:
        raise host_error(error, "start the console anew") from error


def run_narrated(config_path: str, *, lab: "LabSession | None" = None) -> None:
    """Say what is, then each change, a plain sentence a line, until a signal ends it or nobody reads any more.

    Raises:
        Ended: a signal asked a lab to end.
    """
    from bcd.node.follow import LiveFollower
    from bcd.tui.narrate import narrate
    from bcd.tui.source import Source

    source = Source(
        config_path,
        this_build() if lab is None else lab.build,
        SystemClock() if lab is None else lab.clock,
        LiveFollower(),
    )

    def pause() -> None:
        time.sleep(_NARRATE_SECONDS)
        if lab is not None:
            lab.signalled.check()

    for sentence in narrate(source.read, pause):
        if not print_lines([sentence]):
            return
