"""The two lines on top of every screen: who this node is and whether it is connected, and the screens with their keys."""

from collections.abc import Iterator
from datetime import datetime

from rich.text import Text
from textual import events
from textual.reactive import reactive
from textual.widgets import Static

from bcd.core.text import clean
from bcd.tui.snapshot import Snapshot

SCREENS = ("overview", "failed", "doctor", "check", "history", "journal", "config")
_PARTS = ("origin", "runs", "here", "node", "agent", "gateway", "old")
"""In their order on the line."""

_WIDE = 90
"""Columns from which one screen more has room with blanks on both sides."""


class TopBar(Static):
    """The top of a screen. Drawn anew only where it would read otherwise: it costs the terminal two whole lines."""

    shown: reactive[Text] = reactive(Text, layout=False)

    def __init__(self, screen_name: str) -> None:
        super().__init__()
        self._screen_name = screen_name
        self._snapshot: Snapshot | None = None
        self._ends: list[int] = []
        """Where each screen's name ends, in cells."""

    def show(self, snapshot: Snapshot) -> None:
        """Take a snapshot."""
        self._snapshot = snapshot
        self._draw()

    def on_resize(self) -> None:
        """What fits is another matter now."""
        self._draw()

    def render(self) -> Text:
        """Two lines, of which a small terminal shows the first."""
        return self.shown

    async def on_click(self, event: events.Click) -> None:
        """Go to the screen whose name was clicked."""
        if event.y == 1:
            name = next((name for name, end in zip(self._names, self._ends, strict=False) if event.x < end), None)
            if name is not None:
                await self.run_action(f"app.switch_mode('{name}')")

    @property
    def _names(self) -> tuple[str, ...]:
        return SCREENS if getattr(self.app, "lab", None) is None else (*SCREENS, "lab")

    def _draw(self) -> None:
        if self._snapshot is not None:
            text = Text(no_wrap=True, overflow="ellipsis")
            text.append_text(self._who(self._snapshot)).append("\n").append_text(self._tabs(self._snapshot))
            self.shown = text

    def _tabs(self, snapshot: Snapshot) -> Text:
        """The screens: spaced, close together, or by their digits alone, whatever fits."""
        update = None if snapshot.status is None else snapshot.status.update.value
        counts = {"failed": len(update.failed) if update is not None else 0}
        tabs = Text()
        for pad, short in ((" ", False), ("", False), ("", True)):
            tabs = Text()
            self._ends = []
            for number, name in enumerate(self._names, start=1):
                count = f" {counts[name]}" if counts.get(name) else ""
                here = name == self._screen_name
                style = "reverse bold" if here else "bold" if count else ""
                title = f" {number}" if short and not here else f" {number} {name.capitalize()}{count}{pad}"
                tabs.append(title, style=style)
                self._ends.append(tabs.cell_len)
            if tabs.cell_len <= self.size.width:
                break
        return tabs

    def _who(self, snapshot: Snapshot) -> Text:
        """The parts that fit, in their order on the line; what runs always does. The clock stands at the right."""
        width = self.size.width
        drawn = {"runs": _runs(snapshot)}
        room = width - drawn["runs"].cell_len
        for name, part in self._parts(snapshot):
            if part.cell_len <= room:
                drawn.setdefault(name, part)
                room = width - sum(each.cell_len for each in drawn.values())
        clock = drawn.pop("clock", Text())
        line = Text().join(drawn[name] for name in _PARTS if name in drawn)
        return line.append(" " * (width - line.cell_len - clock.cell_len)).append_text(clock)

    def _parts(self, snapshot: Snapshot) -> Iterator[tuple[str, Text]]:
        """What else there is to say, the most important first; of two of one name the first that fits is drawn."""
        if snapshot.origin:
            # Nobody may take another machine's state for this one's.
            yield "origin", Text.styled(f" {clean(snapshot.origin)} ", "bold reverse")
            room = max(8, self.size.width - _runs(snapshot).cell_len - 3)
            yield "origin", Text.styled(f" {clean(snapshot.origin, room)} ", "bold reverse")
        if snapshot.running_slot_moved:
            yield "old", Text.styled("  this console runs the old binary (N: start anew)", "bold yellow")
            yield "old", Text.styled("  old binary (N: anew)", "bold yellow")
            yield "old", Text.styled("  old", "bold yellow")
        if self.size.height == 1:
            yield "here", Text.styled(f" {self._screen_name} ", "reverse bold")
        up = snapshot.agent is not None
        yield "agent", Text("  ● agent up") if up else Text.styled("  ○ no agent", "yellow")
        if up:
            state, error = snapshot.session
            good = state == "welcomed"
            gateway = Text.styled(f"  {'●' if good else '○'} gateway {state}", "" if good else "yellow")
            if error:
                yield "gateway", gateway.copy().append(f": {error}")
            yield "gateway", gateway
        node = "" if snapshot.status is None else snapshot.status.config.node.node_id
        if node:
            yield "node", Text(f"  {clean(node)}")
        if not snapshot.origin:
            yield "clock", Text.styled(f"  {datetime.fromtimestamp(snapshot.taken_at).astimezone():%H:%M} ", "dim")


def _runs(snapshot: Snapshot) -> Text:
    runs = "" if snapshot.status is None else snapshot.running or "version unknown"
    return Text.styled(f" bcd {runs}".rstrip(), "bold")
