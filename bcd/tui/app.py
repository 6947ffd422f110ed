"""The console: one source of snapshots, one screen a place, every act through core.

It never blocks on the disk, a socket or a process: what may is done in a thread. It notices a change on disk within a
second, and costs next to nothing in between: one thread looks, and wakes the screen only for what is drawn otherwise.
"""

import asyncio
import contextlib
import gc
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from importlib import resources
from typing import TYPE_CHECKING, ClassVar

from rich.terminal_theme import TerminalTheme
from textual.app import App
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.filter import LineFilter
from textual.reactive import reactive

from bcd.core.errors import BcdError, UsageError
from bcd.core.exits import ExitStatus
from bcd.core.records import Failed, Json
from bcd.core.text import clean
from bcd.tui.clipboard import osc52
from bcd.tui.decoder import tolerate_any_byte
from bcd.tui.evidence import Look, evidence_of, look
from bcd.tui.glyphs import AsciiFilter
from bcd.tui.journal import Journal
from bcd.tui.keys import rows_of
from bcd.tui.lab_port import LabPort
from bcd.tui.news import News, NewsDesk
from bcd.tui.palette import ConsoleCommands
from bcd.tui.places import load_all, screen_maker
from bcd.tui.screens.base import ConsoleScreen
from bcd.tui.snapshot import Snapshot
from bcd.tui.stylesheet import OnceParsed
from bcd.tui.themes import THEMES, palette
from bcd.tui.view import View
from bcd.tui.widgets.top_bar import SCREENS

if TYPE_CHECKING:
    from bcd.core.acceptance import Acceptance
    from bcd.doctor.finding import Report
    from bcd.tui.screens.check import CheckScreen
    from bcd.tui.screens.doctor import DoctorScreen
    from bcd.tui.screens.failed import FailedScreen

_LOOK_SECONDS = 0.5
_LINES = 2000
_TOASTS = 5
_ENDED = (RuntimeError, CancelledError)
"""What a thread meets that calls into an app which has ended, or ends at that moment."""

ReadSnapshot = Callable[[], Snapshot]
ReadEvents = Callable[[], tuple[Json, ...]]
Examine = Callable[[], "Report"]
Clear = Callable[[tuple[str, ...]], tuple[Failed, ...]]
Judge = Callable[[str], "Acceptance"]
"""Judges a manifest, given by its path or its text; raises BcdError."""


def _lab_commands() -> type[Provider]:
    from bcd.tui.screens.lab_commands import LabCommands  # noqa: PLC0415  # not before the first frame

    return LabCommands


class ConsoleApp(App[int]):
    """The console."""

    CSS = resources.files("bcd.tui").joinpath("console.tcss").read_text(encoding="utf-8")  # in a packed binary, no path
    ENABLE_COMMAND_PALETTE = True
    COMMANDS = {ConsoleCommands, _lab_commands}  # noqa: RUF012  # Textual's own type is no ClassVar
    TITLE = "bcd"
    MODES: ClassVar = {name: screen_maker(name) for name in SCREENS}
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(number), f"switch_mode('{name}')", name.capitalize(), show=False, id=f"go.{name}")
            for number, name in enumerate(SCREENS, start=1)
        ),
        Binding("q", "quit", "Quit", id="quit"),
        # Where a field takes the letters these are left, and the footer shows them.
        Binding("ctrl+q,ctrl+c", "quit", "Quit", show=False),
        Binding("e", "evidence", "Evidence", id="evidence"),
        Binding("N", "start_anew", "Start anew", id="start-anew"),
        Binding("question_mark", "help", "Help", key_display="?", id="help"),
        Binding("f1", "help", "Help"),
        Binding("colon", "command_palette", "Commands", key_display=":", id="commands"),
        Binding("ctrl+p", "command_palette", "Commands", key_display="^p"),
    ]

    # Not repainted: an app's reactive draws the whole screen anew; the screens watch these and draw what differs.
    snapshot: reactive[Snapshot | None] = reactive(None, repaint=False)
    report: reactive["Report | None"] = reactive(None, repaint=False)
    events: reactive[tuple[Json, ...]] = reactive((), repaint=False)
    acceptance: reactive["Acceptance | BcdError | None"] = reactive(None, repaint=False)
    journal_source: reactive[str] = reactive("", repaint=False)

    def __init__(
        self,
        *,
        read: ReadSnapshot,
        read_events: ReadEvents,
        examine: Examine,
        clear: Clear,
        judge: Judge,
        journal: Journal,
        view: View = View(),  # noqa: B008  # a value that never changes
        theme: str = "bcd-dark",
        ascii_only: bool = False,
        signals: bool = True,
        evidence: Look = look,
        lab: LabPort | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__()
        tolerate_any_byte()
        self._read = read
        self._read_events = read_events
        self._examine = examine
        self._clear = clear
        self._judge = judge
        self._journal = journal
        self.view = view
        """Where it opens."""
        for known in THEMES:
            self.register_theme(known)
        # Before anything is parsed: a theme that is set later has all of it parsed twice.
        self.set_reactive(ConsoleApp.theme, theme)
        self.stylesheet = OnceParsed(variables=self.get_css_variables())
        self._refresh_truecolor_filter(self.ansi_theme)
        self._evidence = evidence
        self._lines: list[str] = []
        self.start_anew_at: View | None = None
        """Where a new console is to open; None to just end."""
        self._signals = signals
        self._examining = threading.Lock()
        self._look_now = threading.Event()
        self._news = NewsDesk()
        self._told_at: list[float] = []
        """When the toasts that may still be on were told, monotonic seconds."""
        self._ascii = AsciiFilter(enabled=ascii_only)
        self.lab = lab
        """The lab under this console; None on a node."""
        self._read_only = read_only
        self._ended: ExitStatus | None = None
        self._running_loop: asyncio.AbstractEventLoop | None = None

    async def on_mount(self) -> None:
        """Look once before the first frame, then for ever."""
        loop = self._running_loop = asyncio.get_running_loop()
        if self._ended is not None:
            self.end(self._ended)
        if self._signals:
            for number, status in ((signal.SIGTERM, ExitStatus.TERMINATED), (signal.SIGHUP, ExitStatus.HANGUP)):
                # Textual leaves mouse mode and the alternate screen behind on these.
                loop.add_signal_handler(number, self.exit, int(status), int(status))
        if self.lab is not None:
            self._add_lab(self.lab)
        self.snapshot = self._read()
        self.events = self._read_events()
        await self.switch_mode(self.view.screen)
        threading.Thread(target=self._keep_looking, daemon=True).start()
        threading.Thread(target=self._follow_journal, daemon=True).start()

    @property
    def ansi_theme(self) -> TerminalTheme:
        """The theme's own red, green, yellow."""
        return palette(self.current_theme) if self.current_theme in THEMES else super().ansi_theme

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's filters, and last ours: whatever draws a sign, only its ASCII form leaves where no other can."""
        return [*super().get_line_filters(), self._ascii] if self._ascii.enabled else super().get_line_filters()

    def end(self, status: ExitStatus) -> None:
        """End with `status`, before the first frame or at any time; for any thread, and for a signal's handler."""
        self._ended = status
        if self._running_loop is not None:
            with contextlib.suppress(*_ENDED):  # the loop was closed: it has ended
                self._running_loop.call_soon_threadsafe(self.exit, int(status), int(status))

    def _add_lab(self, lab: LabPort) -> None:
        from bcd.tui.screens.lab import LabScreen  # noqa: PLC0415  # only over a lab

        self.add_mode("lab", lambda: LabScreen(lab, read_only=self._read_only))
        self.bind(str(len(self.MODES) + 1), "switch_mode('lab')", description="Lab", show=False)

    def _follow_journal(self) -> None:
        """Hand on the log's lines as they come, from a thread that ends with the process."""
        with contextlib.suppress(*_ENDED):
            self.call_from_thread(setattr, self, "journal_source", self._journal.source())
            for lines in self._journal.follow():
                self.call_from_thread(self._add_lines, lines)

    def _add_lines(self, lines: list[str]) -> None:
        self._lines = (self._lines + lines)[-_LINES:]
        screen = self.screen
        if isinstance(screen, ConsoleScreen):
            screen.add_lines(lines)

    @property
    def journal_lines(self) -> list[str]:
        """The last lines of the log."""
        return self._lines

    def on_check_screen_judge(self, message: "CheckScreen.Judge") -> None:
        """Judge a manifest in a thread: hashing the other slot may take a while."""
        threading.Thread(target=self._judge_in_thread, args=(message.given,), daemon=True).start()

    def _judge_in_thread(self, given: str) -> None:
        answer: Acceptance | BcdError
        try:
            answer = self._judge(given)
        except BcdError as error:
            answer = error
        with contextlib.suppress(*_ENDED):
            self.call_from_thread(setattr, self, "acceptance", answer)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Starting anew is offered only where this console is the old one."""
        if action == "start_anew" and (
            # A lab ends with its console: a program of its slots would find no node any more.
            self.lab is not None or self.snapshot is None or not self.snapshot.running_slot_moved
        ):
            return False
        return super().check_action(action, parameters)

    def action_help(self) -> None:
        """List the keys that hold here, now."""
        from bcd.tui.screens.help import HelpScreen  # noqa: PLC0415  # not before the first frame

        self.push_screen(HelpScreen(rows_of(self, self.screen.active_bindings.values())))

    def action_arrow(self, key: str) -> None:
        """Be the arrow key, for the list that has the focus or the first that could."""
        if self.focused is None:
            self.screen.focus_next()
        self.simulate_key(key)

    def action_evidence(self) -> None:
        """Show what the values on the screen rest on."""
        if self.snapshot is not None:
            from bcd.tui.screens.evidence import EvidenceScreen  # noqa: PLC0415  # not before the first frame

            self.push_screen(EvidenceScreen(evidence_of(self.snapshot), self._evidence))

    def action_start_anew(self) -> None:
        """End, and have the program that `current` names now take over where this one is."""
        screen = self.screen
        self.start_anew_at = screen.view if isinstance(screen, ConsoleScreen) else View(screen=self.current_mode)
        self.exit(0)

    def _keep_looking(self) -> None:
        """Look for ever, from a thread of its own; hand over only what is drawn otherwise."""
        shown, events = self.snapshot, self.events
        self._look_now.wait(_LOOK_SECONDS)  # the first frame comes before what no frame needs yet
        load_all()
        gc.enable()  # where it was disabled for a fast start
        watches_terminal = self._signals or (self.lab is not None and not self.is_headless)
        with contextlib.suppress(*_ENDED):  # the app ended meanwhile
            while self.is_running:
                self._look_now.wait(_pause(shown))
                self._look_now.clear()
                if watches_terminal and not os.isatty(0):
                    self.call_from_thread(self.exit, int(ExitStatus.HANGUP), int(ExitStatus.HANGUP))
                    return
                try:
                    snapshot, now = self._read(), self._read_events()
                except Exception as error:  # noqa: BLE001  # a console that stopped looking would go on showing what was
                    self.call_later(self._fall, error)
                    return
                if _shown(snapshot) != _shown(shown) or now != events:
                    shown, events = snapshot, now
                    self.call_from_thread(self._take, snapshot, now)

    def _fall(self, error: Exception) -> None:
        raise error

    def _take(self, snapshot: Snapshot, events: tuple[Json, ...]) -> None:
        before, self.snapshot, self.events = self.snapshot, snapshot, events
        if before is None or before.running_slot_moved != snapshot.running_slot_moved:
            self.refresh_bindings()
        for news in self._news.between(before, snapshot):
            self._tell(news)

    def _tell(self, news: News) -> None:
        """Say what changed to who looks elsewhere, with the key to look."""
        screen = self.screen
        if isinstance(screen, ConsoleScreen) and screen.NAME in news.shown_on:
            return
        key = list(self.MODES).index(news.look_at) + 1
        now = time.monotonic()
        self._told_at = [at for at in self._told_at if now - at < self.NOTIFICATION_TIMEOUT]
        if len(self._told_at) >= _TOASTS:
            return  # a node that fails over and over must not cover the screen; its screens have all of it
        self._told_at.append(now)
        self.notify(clean(f"{news.text} ({key}: look)"), severity=news.severity, markup=False)

    def on_doctor_screen_again(self) -> None:
        """Run the checks in a thread."""
        threading.Thread(target=self._examine_in_thread, daemon=True).start()

    def _examine_in_thread(self) -> None:
        if not self._examining.acquire(blocking=False):
            return
        try:
            report = self._examine()
        finally:
            self._examining.release()
        with contextlib.suppress(*_ENDED):
            self.call_from_thread(setattr, self, "report", report)

    def on_doctor_screen_copy(self, message: "DoctorScreen.Copy") -> None:
        """Copy the command of a finding."""
        self.copy_to_clipboard(message.text)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy over OSC 52, and say what is known: that it was sent, or why it was not."""
        try:
            sequence = osc52(text, os.environ)
        except UsageError as error:
            self.notify(f"{error.message}: {error.hint}", severity="warning", markup=False)
            return
        self._clipboard = text  # what Textual itself pastes from
        if self._driver is not None:
            self._driver.write(sequence)
        self.notify("sent to the terminal's clipboard", markup=False)

    def on_failed_screen_clear(self, message: "FailedScreen.Clear") -> None:
        """Forget failed versions, in a thread."""
        threading.Thread(target=self._clear_in_thread, args=(message.versions,), daemon=True).start()

    def _clear_in_thread(self, versions: tuple[str, ...]) -> None:
        try:
            forgotten = self._clear(versions)
            said, severity = f"cleared: {', '.join(f.version for f in forgotten) or 'nothing'}", "information"
        except BcdError as error:
            said, severity = f"{clean(error.message)} ({error.code})", "error"
        with contextlib.suppress(*_ENDED):
            self.call_from_thread(self.notify, clean(said), severity=severity, markup=False)
        self._look_now.set()


def _pause(snapshot: Snapshot | None) -> float:
    """Seconds until the next look: while a release waits, just past the moment at which the seconds left change."""
    left = None if snapshot is None or snapshot.status is None else snapshot.status.left
    if snapshot is None or left is None or snapshot.origin:
        return _LOOK_SECONDS
    part = left.seconds - math.floor(left.seconds)
    return min(_LOOK_SECONDS, part + 0.01) if left.seconds > 0 else _LOOK_SECONDS


def _shown(snapshot: Snapshot | None) -> object:
    """What of a snapshot is drawn: whole seconds, so that nothing is drawn anew for a tenth of one."""
    if snapshot is None:
        return None
    status = snapshot.status
    left = None if status is None or status.left is None else int(status.left.seconds)
    still = None if status is None else status._replace(left=None)
    parted = None if status is None or status.left is None else int(status.left.wall_seconds - status.left.seconds)
    return (
        still,
        parted,
        left,
        snapshot.agent,
        snapshot.running_slot_moved,
        snapshot.clear_refused,
        int(snapshot.taken_at) // 60,
        snapshot.trouble,
        snapshot.entrypoint_leads,
        snapshot.vitals,
    )
