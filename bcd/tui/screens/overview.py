"""Overview: what runs, from which slot, where the update is, how long it has, what failed. Plain within a second."""

from collections.abc import Iterable

from rich.text import Text
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Static

from bcd.core.links import CURRENT, SLOTS
from bcd.core.records import Json
from bcd.core.status import Status
from bcd.core.text import clean
from bcd.tui.forecast import futures
from bcd.tui.phase import phase_of
from bcd.tui.screens.base import ConsoleScreen, say
from bcd.tui.snapshot import Snapshot
from bcd.tui.widgets.countdown import Countdown
from bcd.tui.widgets.forecast_view import ForecastView
from bcd.tui.widgets.phase_rail import PhaseRail
from bcd.tui.widgets.slot_panel import SlotPanel
from bcd.tui.words import age, bar, moment, size, time_left

_BAR = 32
_LATELY = 20
_EVENT, _VERSION = 14, 8
"""Columns of the longest event, and of a usual version."""


class OverviewScreen(ConsoleScreen):
    """The first screen."""

    NAME = "overview"

    def body(self) -> Iterable[Widget]:
        """Slots, rail, countdown, forecast, facts, and where there is room what happened lately."""
        yield Static(id="compact")
        yield Horizontal(*(SlotPanel(slot) for slot in SLOTS), id="slots")
        yield PhaseRail()
        yield Countdown()
        yield ForecastView()
        yield Static(id="facts")
        yield Static(id="lately")

    def on_mount(self) -> None:
        """Follow the app's events too."""
        super().on_mount()
        self.follow("events", self._take_events)

    def _take_events(self, events: tuple[Json, ...]) -> None:
        self.query_one("#lately", Static).update(_lately(events))

    def take(self, snapshot: Snapshot) -> None:
        """Hand each widget its part."""
        status = snapshot.status
        for slot in SLOTS:
            panel = self.query_one(f"#slot-{slot}", SlotPanel)
            panel.now = snapshot.taken_at
            panel.record = None if status is None else status.record(slot)
            panel.note = _note(status, slot)
            panel.role = _role(status, slot)
        self._say_compact(snapshot)
        self.query_one(PhaseRail).phase = phase_of(snapshot)
        self.query_one(Countdown).left = None if status is None else status.left
        self.query_one(ForecastView).shown = futures(snapshot, crash_loop_rollback=snapshot.crash_loop_rollback)
        say(self.query_one("#facts", Static), _facts(snapshot))
        pending = status is not None and status.left is not None
        if pending != self.has_class("-pending"):
            self.set_class(pending, "-pending")

    def on_resize(self) -> None:
        """A small terminal shows the compact lines."""
        self.call_after_refresh(self._say_compact, getattr(self.app, "snapshot", None))

    def _say_compact(self, snapshot: Snapshot | None) -> None:
        compact = self.query_one("#compact", Static)
        # Hidden, it would draw the whole screen anew each second of a countdown.
        if snapshot is not None and compact.display:
            say(compact, _compact(snapshot))


def _compact(snapshot: Snapshot) -> Text:
    """What is never folded away: what runs, from where, how long it has, how many failed."""
    status = snapshot.status
    if status is None:
        return Text.styled("the configuration can't be read", "bold red")
    slot = f"from slot {status.current.slot}" if status.current.slot else "no slot in use"
    text = Text.styled(f"{snapshot.running or 'version unknown'} {slot}", "bold")
    if status.left is not None:
        text.append(f"\n{time_left(status.left.seconds)}", style="bold yellow")
    failed = () if status.update.value is None else status.update.value.failed
    if failed:
        text.append(f"\nfailed here: {len(failed)}", style="bold red")
    return text


def _lately(events: tuple[Json, ...]) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis").append("lately", style="bold")
    for event in events[:_LATELY]:
        said = [clean(str(event.get(key) or "")) for key in ("event", "version", "reason")]
        text.append(f"\n{moment(event.get('at'), '%Y-%m-%d %H:%M:%S')}  ", style="dim")
        text.append(
            f"{said[0]:<{_EVENT}}  {said[1] or clean(str(event.get('versions') or '')):<{_VERSION}}  {said[2]}".rstrip()
        )
    return text.append("\nnothing happened here yet", style="dim") if not events else text


def _role(status: Status | None, slot: str) -> str:
    if status is None:
        return ""
    return "current" if status.current.slot == slot else "previous" if status.previous.slot == slot else ""


def _note(status: Status | None, slot: str) -> str:
    pending = None if status is None else status.pending.value
    if status is None or pending is None:
        return ""
    return "waits for its welcome" if slot == pending.to_slot and slot == status.current.slot else ""


def _facts(snapshot: Snapshot) -> Text:
    status = snapshot.status
    text = Text()
    if status is None:
        trouble = snapshot.trouble
        return Text.styled("" if trouble is None else f"{trouble.message}\n{trouble.hint}", "bold red")
    pins = status.config.update
    if status.current.slot is None:
        text.append(f"{snapshot.runs}\n", style="bold")
    text.append(f"floor {status.floor_words}", style="bold")
    text.append(f"   {len(pins.release_pins)} pins, {pins.release_threshold} must sign")
    text.append(f"   entrypoint {clean(status.layout.entrypoint)}", style="dim")
    leads = snapshot.entrypoint_leads
    loud = status.current.slot is not None and leads not in ("", f"→ {CURRENT}")
    text.append(f" {clean(leads)}\n", style="bold yellow" if loud else "dim")
    transfer = snapshot.transfer
    if transfer is not None:
        done, total, rate = transfer
        share = done / total
        eta = f", {int((total - done) / rate)} s to go" if rate > 0 else ""
        full, empty = bar(share, _BAR)
        text.append(full, style="cyan").append(empty, style="dim")
        text.append(f" {share:4.0%}  {size(done)} of {size(total)}, {size(rate)}/s{eta}\n")
    failed = () if status.update.value is None else status.update.value.failed
    if failed:
        text.append(f"failed here: {', '.join(entry.version for entry in reversed(failed))}\n", style="bold red")
        text.append(f"  {failed[-1].version}: {failed[-1].reason}\n")
    for problem in status.problems:
        text.append(f"{problem.state}: {clean(problem.what)} ({clean(problem.why)})\n", style="bold yellow")
    for path in status.aside:
        text.append(f"a broken record was moved aside: {clean(path)}\n", style="bold yellow")
    if snapshot.agent_error:
        text.append(f"the agent's last trouble: {snapshot.agent_error}\n", style="yellow")
    if snapshot.agent is None and not snapshot.origin:
        text.append("no agent answers: nothing updates this node, and nothing swaps back\n", style="bold yellow")
    text.append(_vitals(snapshot))
    text.rstrip()
    return text


def _vitals(snapshot: Snapshot) -> Text:
    seen, text = snapshot.vitals, Text()
    if seen.pid is not None:
        parts = [f"agent {seen.pid}{f' of {seen.unit}' if seen.unit else ''}"]
        parts.append(f"up {age(snapshot.boottime - seen.started)}")
        if seen.cpu_percent is not None:
            parts.append(f"{seen.cpu_percent or '<1'} % of a core")
        text.append(f"{', '.join([*parts, f'{seen.memory_mib} MiB'])}\n", style="dim")
    if seen.unit and not seen.unit_state.startswith("active "):
        text.append(f"{seen.unit} is {seen.unit_state}\n", style="bold yellow")
    return text
