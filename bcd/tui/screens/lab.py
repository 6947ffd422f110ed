"""Lab: what can be done to the lab under this console, what will come of it, and the lab's own journal.

Every act runs in a thread: it may sign a release, or wait for a process to end.
"""

import contextlib
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import OptionList, RichLog, Static
from textual.widgets.option_list import Option

from bcd.core.errors import BcdError
from bcd.core.links import SLOTS
from bcd.core.text import clean
from bcd.tui.lab_port import (
    CUT_GATEWAY,
    KILL_AGENT,
    MEND_GATEWAY,
    RESTART_AGENT,
    STEP_CLOCK,
    TRUE_CLOCK,
    LabAct,
    LabLine,
    LabPort,
    LabState,
)
from bcd.tui.phase import phase_of
from bcd.tui.screens.base import ConsoleScreen
from bcd.tui.snapshot import Snapshot
from bcd.tui.widgets.phase_rail import PhaseRail
from bcd.tui.words import age, moment

_LOOK_SECONDS = 0.25
_WHO_COLUMNS = 10
_STYLES = {"you": "bold", "lab": "dim", "supervisor": "magenta", "gateway": "cyan", "releases": "blue"}
_ENDED = (RuntimeError, CancelledError)
"""What a thread meets that calls into an app which has ended, or ends at that moment."""
_READ_ONLY = "this console is read-only"


class Acts(OptionList):
    """The list of acts. Its Enter is told in the footer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "Do it", key_display="Enter", id="lab.do"),
        Binding("j", "cursor_down", "Down", show=False),
        Binding("k", "cursor_up", "Up", show=False),
    ]


class LabScreen(ConsoleScreen):
    """What to do on the left, what comes of it on the right."""

    NAME = "lab"
    AUTO_FOCUS = "#lab-acts"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g", f"do_named('{CUT_GATEWAY}')", "Cut gateway", id="lab.cut-gateway"),
        Binding("g", f"do_named('{MEND_GATEWAY}')", "Mend gateway", id="lab.mend-gateway"),
        Binding("x", f"do_named('{KILL_AGENT}')", "Kill", id="lab.kill"),
        Binding("s", f"do_named('{RESTART_AGENT}')", "Restart", id="lab.restart"),
        Binding("t", f"do_named('{STEP_CLOCK}')", "Clock +1 h", id="lab.step-clock"),
        Binding("t", f"do_named('{TRUE_CLOCK}')", "Clock true", id="lab.true-clock"),
    ]

    def __init__(self, lab: LabPort, *, read_only: bool) -> None:
        super().__init__()
        self._lab = lab
        self._read_only = read_only
        self._acts = {act.name: act for act in lab.acts()}
        self._state: LabState = lab.state()
        self._told = 0
        self._ticking: Timer | None = None

    def body(self) -> Iterable[Widget]:
        """Rail, slots and how the lab stands; then the acts beside what they do and the journal."""
        yield PhaseRail()
        yield Static(id="lab-slots")
        yield Static(id="lab-state")
        yield Horizontal(
            Acts(*_options(self._acts.values()), id="lab-acts", markup=False),
            Vertical(
                Static(id="lab-more"),
                RichLog(id="lab-lines", max_lines=2000, min_width=1, markup=False, wrap=True, auto_scroll=True),
                id="lab-right",
            ),
            id="lab-body",
        )

    def on_mount(self) -> None:
        """Choose the first act, and look at the lab while this screen is on."""
        super().on_mount()
        self.query_one("#lab-lines", RichLog).can_focus = False
        self.query_one(OptionList).action_first()
        self._draw_state()
        self._ticking = self.set_interval(_LOOK_SECONDS, self._look)

    def on_screen_resume(self) -> None:
        """Look on."""
        if self._ticking is not None:
            self._ticking.resume()

    def on_screen_suspend(self) -> None:
        """Nobody looks."""
        if self._ticking is not None:
            self._ticking.pause()

    def take(self, snapshot: Snapshot) -> None:
        """Show where the update is, and the slots."""
        self.query_one(PhaseRail).phase = phase_of(snapshot)
        self.query_one("#lab-slots", Static).update(_slots(snapshot))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Of two acts on one key the one that makes sense now; all of them shown and refused where nothing may change."""
        if action == "do_named" and self._read_only:
            return None if parameters[:1] not in ((MEND_GATEWAY,), (TRUE_CLOCK,)) else False
        if action != "do_named":
            return True
        cut, stepped = self._state.gateway_cut, self._state.clock_ahead_seconds != 0
        wanted = {CUT_GATEWAY: not cut, MEND_GATEWAY: cut, STEP_CLOCK: not stepped, TRUE_CLOCK: stepped}
        return wanted.get(str(parameters[0]), True)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Say what it does."""
        if event.option_id is not None:
            self.query_one("#lab-more", Static).update(_more(self._acts[event.option_id]))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Do it."""
        if event.option_id is not None:
            self._do(event.option_id)

    @property
    def acts(self) -> Iterable[LabAct]:
        """What can be done."""
        return self._acts.values()

    def doing(self, name: str) -> Callable[[], None]:
        """Does the act of this name when it is called."""
        return lambda: self._do(name)

    def action_do_named(self, name: str) -> None:
        """Do an act that has a key."""
        self._do(name)

    def _do(self, name: str) -> None:
        if self._read_only:
            self.notify(_READ_ONLY, severity="warning", markup=False)
        else:
            threading.Thread(target=self._do_in_thread, args=(name,), daemon=True).start()

    def _do_in_thread(self, name: str) -> None:
        try:
            self._lab.do(name)
        except BcdError as error:
            with contextlib.suppress(*_ENDED):  # the app ended meanwhile
                said = clean(f"{error.message} ({error.code}); {error.hint}")
                self.app.call_from_thread(self.notify, said, severity="error", markup=False)
        except Exception:
            # A lab that is being taken down refuses in its own words, and nobody is there to read them.
            if self.app.is_running:
                raise

    def _look(self) -> None:
        state, lines = self._lab.state(), self._lab.lines(self._told)
        if state != self._state:
            self._state = state
            self._draw_state()
            self.refresh_bindings()
        if lines:
            self._told = lines[-1].number + 1
            log = self.query_one("#lab-lines", RichLog)
            for line in lines:
                log.write(_drawn(line), expand=True)

    def _draw_state(self) -> None:
        self.query_one("#lab-state", Static).update(_stands(self._state, read_only=self._read_only))


def _options(acts: Iterable[LabAct]) -> Iterable[Option]:
    group = ""
    for act in acts:
        if act.group != group:
            group = act.group
            yield Option(Text(group, style="bold"), disabled=True)
        yield Option(Text(f"  {act.title}"), id=act.name)


def _more(act: LabAct) -> Text:
    text = Text(f"{act.happens}\n", style="")
    return text.append("Watch: ", style="bold").append(act.watch)


def _slots(snapshot: Snapshot) -> Text:
    status = snapshot.status
    text = Text(no_wrap=True, overflow="ellipsis")
    if status is None:
        return text
    for number, slot in enumerate(SLOTS):
        role = "current ▶ " if status.current.slot == slot else "previous ▶ " if status.previous.slot == slot else ""
        record = status.record(slot)
        held = "empty" if record is None else f"{record.version}"
        text.append("     " if number else "").append(role, style="bold" if role.startswith("c") else "")
        text.append(f"slot {slot}: {held}", style="bold green" if role.startswith("c") else "")
    if status.current.slot is None:
        text.append(f"     {status.version} runs as installed", style="dim")
    text.append(f"     floor {status.floor_words}")
    failed = () if status.update.value is None else status.update.value.failed
    if failed:
        text.append(f"     failed: {', '.join(entry.version for entry in reversed(failed))}", style="bold red")
    return text


def _stands(state: LabState, *, read_only: bool) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    if read_only:
        text.append("read-only   ", style="bold yellow")
    text.append("✗ gateway cut", style="bold yellow") if state.gateway_cut else text.append("● gateway open")
    agent = f"● agent {state.agent_pid}" if state.agent_pid is not None else "○ agent down"
    text.append(f"   {agent}, {state.starts} start{'s' if state.starts != 1 else ''}")
    spoilt = state.next_download
    text.append("   next download: ").append(spoilt or "sound", style="bold yellow" if spoilt else "")
    if state.clock_ahead_seconds:
        text.append(f"   node's clock {age(state.clock_ahead_seconds)} ahead", style="bold yellow")
    return text


def _drawn(line: LabLine) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(width=_WHO_COLUMNS)
    table.add_column(overflow="fold")
    who = Text(line.who, style=_STYLES.get(line.who, ""))
    table.add_row(Text(moment(int(line.at), "%H:%M:%S"), style="dim"), who, Text(line.what))
    return table
