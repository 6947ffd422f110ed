"""The console: one source of snapshots, one screen a place, every act through core.

It never blocks on the disk, a socket or a process: what may is done in a thread. It notices a change on disk within a
second, and costs next to nothing in between: a look is a handful of lstat.
"""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable
from importlib import resources
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.timer import Timer

from bcd.core.acceptance import Acceptance
from bcd.core.errors import BcdError
from bcd.core.exits import ExitStatus
from bcd.core.records import Failed, Json
from bcd.core.text import clean
from bcd.doctor.finding import Report
from bcd.tui.decoder import tolerate_any_byte
from bcd.tui.evidence import evidence_of
from bcd.tui.journal import Journal
from bcd.tui.screens.check import CheckScreen
from bcd.tui.screens.config import ConfigScreen
from bcd.tui.screens.doctor import DoctorScreen
from bcd.tui.screens.evidence import EvidenceScreen
from bcd.tui.screens.failed import FailedScreen
from bcd.tui.screens.history import HistoryScreen
from bcd.tui.screens.journal import JournalScreen
from bcd.tui.screens.overview import OverviewScreen
from bcd.tui.snapshot import Snapshot
from bcd.tui.themes import THEMES

_CALM_SECONDS = 1.0
_PENDING_SECONDS = 0.5
_TERMINAL_SECONDS = 1.0
_LINES = 2000

ReadSnapshot = Callable[[], Snapshot]
ReadEvents = Callable[[], tuple[Json, ...]]
Examine = Callable[[], Report]
Clear = Callable[[tuple[str, ...]], tuple[Failed, ...]]
Judge = Callable[[str], Acceptance]
"""Judges a manifest, given by its path or its text; raises BcdError."""


class ConsoleApp(App[int]):
    """The console."""

    CSS = resources.files("bcd.tui").joinpath("console.tcss").read_text(encoding="utf-8")  # in a packed binary, no path
    ENABLE_COMMAND_PALETTE = True
    TITLE = "bcd"
    MODES: ClassVar[dict[str, type]] = {  # type: ignore[assignment]  # Textual's own type is wider
        "overview": OverviewScreen,
        "failed": FailedScreen,
        "doctor": DoctorScreen,
        "check": CheckScreen,
        "history": HistoryScreen,
        "journal": JournalScreen,
        "config": ConfigScreen,
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(number), f"switch_mode('{name}')", name.capitalize(), show=False, id=f"go.{name}")
            for number, name in enumerate(MODES, start=1)
        ),
        Binding("q,ctrl+c", "quit", "Quit", id="quit", key_display="q"),
        Binding("e", "evidence", "Evidence", id="evidence"),
        Binding("N", "start_anew", "Start anew", show=False, id="start-anew"),
        Binding("question_mark", "show_help_panel", "Help", key_display="?", id="help"),
        Binding("colon", "command_palette", "Commands", key_display=":", id="commands"),
    ]

    snapshot: reactive[Snapshot | None] = reactive(None)
    report: reactive[Report | None] = reactive(None)
    events: reactive[tuple[Json, ...]] = reactive(())
    acceptance: reactive[Acceptance | BcdError | None] = reactive(None)
    journal_source: reactive[str] = reactive("")

    def __init__(
        self,
        *,
        read: ReadSnapshot,
        read_events: ReadEvents,
        examine: Examine,
        clear: Clear,
        judge: Judge,
        journal: Journal,
        start_at: str = "overview",
        theme: str = "bcd-dark",
        signals: bool = True,
    ) -> None:
        super().__init__()
        tolerate_any_byte()
        self._read = read
        self._read_events = read_events
        self._examine = examine
        self._clear = clear
        self._judge = judge
        self._journal = journal
        self._start_at = start_at
        self._theme = theme
        self._lines: list[str] = []
        self.start_anew_at: str | None = None
        """The screen that a new console is to open; None to just end."""
        self._signals = signals
        self._looking = threading.Lock()
        self._next_look: Timer | None = None

    async def on_mount(self) -> None:
        """Look once before the first frame, then for ever."""
        if self._signals:
            loop = asyncio.get_running_loop()
            for number, status in ((signal.SIGTERM, ExitStatus.TERMINATED), (signal.SIGHUP, ExitStatus.HANGUP)):
                # Textual leaves mouse mode and the alternate screen behind on these.
                loop.add_signal_handler(number, self.exit, int(status), int(status))
            self.set_interval(_TERMINAL_SECONDS, self._leave_a_dead_terminal)
        self.snapshot = self._read()
        self.events = self._read_events()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = self._theme
        await self.switch_mode(self._start_at)
        self._look()
        threading.Thread(target=self._follow_journal, daemon=True).start()

    def _follow_journal(self) -> None:
        """Hand on the log's lines as they come, from a thread that ends with the process."""
        with contextlib.suppress(RuntimeError):
            self.call_from_thread(setattr, self, "journal_source", self._journal.source())
            for lines in self._journal.follow():
                self.call_from_thread(self._add_lines, lines)

    def _add_lines(self, lines: list[str]) -> None:
        self._lines = (self._lines + lines)[-_LINES:]
        screen = self.screen
        if isinstance(screen, JournalScreen):
            screen.add(lines)

    @property
    def journal_lines(self) -> list[str]:
        """The last lines of the log."""
        return self._lines

    def on_check_screen_judge(self, message: CheckScreen.Judge) -> None:
        """Judge a manifest in a thread: hashing the other slot may take a while."""
        threading.Thread(target=self._judge_in_thread, args=(message.given,), daemon=True).start()

    def _judge_in_thread(self, given: str) -> None:
        answer: Acceptance | BcdError
        try:
            answer = self._judge(given)
        except BcdError as error:
            answer = error
        with contextlib.suppress(RuntimeError):
            self.call_from_thread(setattr, self, "acceptance", answer)

    def action_evidence(self) -> None:
        """Show what the values on the screen rest on."""
        if self.snapshot is not None:
            self.push_screen(EvidenceScreen(evidence_of(self.snapshot)))

    def action_start_anew(self) -> None:
        """End, and have the program that `current` names now take over where this one is."""
        self.start_anew_at = self.current_mode
        self.exit(0)

    def _look(self) -> None:
        """Look again in a thread, and come back."""
        threading.Thread(target=self._look_in_thread, daemon=True).start()

    def _look_in_thread(self) -> None:
        with contextlib.suppress(RuntimeError):  # the app ended meanwhile
            try:
                snapshot, events = self._read(), self._read_events()
            except Exception as error:  # noqa: BLE001  # a console that stopped looking would go on showing what was
                self.call_later(self._fall, error)
            else:
                self.call_from_thread(self._take, snapshot, events)

    def _fall(self, error: Exception) -> None:
        raise error

    def _take(self, snapshot: Snapshot, events: tuple[Json, ...]) -> None:
        if _shown(snapshot) != _shown(self.snapshot):
            self.snapshot = snapshot
        if events != self.events:
            self.events = events
        pending = snapshot.status is not None and snapshot.status.left is not None
        if self._next_look is not None:  # a clearing looked out of turn: one chain of looks, not ever more
            self._next_look.stop()
        self._next_look = self.set_timer(_PENDING_SECONDS if pending else _CALM_SECONDS, self._look)

    def _leave_a_dead_terminal(self) -> None:
        if not os.isatty(0):
            self.exit(int(ExitStatus.HANGUP), int(ExitStatus.HANGUP))

    def on_doctor_screen_again(self) -> None:
        """Run the checks in a thread."""
        threading.Thread(target=self._examine_in_thread, daemon=True).start()

    def _examine_in_thread(self) -> None:
        if not self._looking.acquire(blocking=False):
            return
        try:
            report = self._examine()
        finally:
            self._looking.release()
        with contextlib.suppress(RuntimeError):
            self.call_from_thread(setattr, self, "report", report)

    def on_doctor_screen_copy(self, message: DoctorScreen.Copy) -> None:
        """Copy over OSC 52. Whether the terminal took it can't be known."""
        self.copy_to_clipboard(message.text)
        self.notify("sent to the terminal's clipboard", markup=False)

    def on_failed_screen_clear(self, message: FailedScreen.Clear) -> None:
        """Forget failed versions, in a thread."""
        threading.Thread(target=self._clear_in_thread, args=(message.versions,), daemon=True).start()

    def _clear_in_thread(self, versions: tuple[str, ...]) -> None:
        try:
            forgotten = self._clear(versions)
            said, severity = f"cleared: {', '.join(f.version for f in forgotten) or 'nothing'}", "information"
        except BcdError as error:
            said, severity = f"{clean(error.message)} ({error.code})", "error"
        with contextlib.suppress(RuntimeError):
            self.call_from_thread(self.notify, clean(said), severity=severity, markup=False)
            self.call_from_thread(self._look)


def _shown(snapshot: Snapshot | None) -> object:
    """What of a snapshot is drawn: whole seconds, so that nothing is drawn anew for a tenth of one."""
    if snapshot is None:
        return None
    status = snapshot.status
    left = None if status is None or status.left is None else int(status.left.seconds)
    still = None if status is None else status._replace(left=None)
    return still, left, snapshot.agent, snapshot.running_slot_moved, int(snapshot.taken_at) // 60, snapshot.trouble
