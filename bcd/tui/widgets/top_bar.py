"""The two lines on top of every screen: who this node is and whether it is connected, and the screens with their keys."""

from datetime import datetime

from rich.text import Text
from textual import events
from textual.reactive import reactive
from textual.widgets import Static

from bcd.core.text import clean
from bcd.tui.snapshot import Snapshot

SCREENS = ("overview", "failed", "doctor", "check", "history", "journal", "config")


class TopBar(Static):
    """The top of a screen. Drawn anew only where it would read otherwise: it costs the terminal two whole lines."""

    shown: reactive[Text] = reactive(Text, layout=False)

    def __init__(self, screen_name: str) -> None:
        super().__init__()
        self._screen_name = screen_name
        self._ends: list[int] = []
        """Where each screen's name ends, in cells."""

    def show(self, snapshot: Snapshot) -> None:
        """Take a snapshot."""
        text = Text(no_wrap=True, overflow="ellipsis")
        self.shown = text.append_text(_who(snapshot)).append("\n").append_text(self._tabs(snapshot))

    def render(self) -> Text:
        """Two lines."""
        return self.shown

    async def on_click(self, event: events.Click) -> None:
        """Go to the screen whose name was clicked."""
        if event.y == 1:
            name = next((name for name, end in zip(SCREENS, self._ends, strict=False) if event.x < end), None)
            if name is not None:
                await self.run_action(f"app.switch_mode('{name}')")

    def _tabs(self, snapshot: Snapshot) -> Text:
        update = None if snapshot.status is None else snapshot.status.update.value
        counts = {"failed": len(update.failed) if update is not None else 0}
        tabs = Text()
        self._ends = []
        for number, name in enumerate(SCREENS, start=1):
            count = f" {counts[name]}" if counts.get(name) else ""
            style = "reverse bold" if name == self._screen_name else "bold" if count else ""
            tabs.append(f" {number} {name.capitalize()}{count} ", style=style)
            self._ends.append(tabs.cell_len)
        return tabs


def _who(snapshot: Snapshot) -> Text:
    status = snapshot.status
    text = Text()
    if snapshot.origin:
        # First, so that it is never cut off: nobody may take another machine's state for this one's.
        text.append(f" {clean(snapshot.origin)} ", style="bold reverse")
    text.append(" bcd ", style="bold")
    if status is not None:
        text.append(f"{snapshot.running or 'version unknown'}  ", style="bold")
        node = status.config.node.node_id
        text.append(f"{clean(node)}  " if node else "")
    text.append("● agent up" if snapshot.agent is not None else "○ no agent", style="" if snapshot.agent else "yellow")
    state, error = snapshot.session
    if snapshot.agent is not None:
        good = state == "welcomed"
        text.append(f"   {'●' if good else '○'} gateway {state}", style="" if good else "yellow")
        if error:
            text.append(f": {error}", style="dim")
    if snapshot.running_slot_moved:
        text.append("   this console runs the old binary (N: start anew)", style="bold yellow")
    if not snapshot.origin:
        text.append(f"   {datetime.fromtimestamp(snapshot.taken_at).astimezone():%H:%M}", style="dim")
    return text
