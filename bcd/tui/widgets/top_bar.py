"""The two lines on top of every screen: who this node is and whether it is connected, and the screens with their keys."""

from datetime import datetime

from rich.text import Text
from textual.reactive import reactive
from textual.widgets import Static

from bcd.core.text import clean
from bcd.tui.snapshot import Snapshot

SCREENS = ("overview", "failed", "doctor", "check", "history", "journal", "config")

_WIDE = 90
"""Columns from which one screen more has room with blanks on both sides."""


class TopBar(Static):
    """The top of a screen."""

    snapshot: reactive[Snapshot | None] = reactive(None, layout=False)

    def __init__(self, screen_name: str) -> None:
        super().__init__()
        self._screen_name = screen_name

    def render(self) -> Text:
        """Two lines."""
        text = Text(no_wrap=True, overflow="ellipsis")
        snapshot = self.snapshot
        if snapshot is not None:
            text.append_text(_who(snapshot)).append("\n").append_text(self._tabs(snapshot))
        return text

    def _tabs(self, snapshot: Snapshot) -> Text:
        names = SCREENS if getattr(self.app, "lab", None) is None else (*SCREENS, "lab")
        update = None if snapshot.status is None else snapshot.status.update.value
        counts = {"failed": len(update.failed) if update is not None else 0}
        tabs = Text()
        blank = " " if len(names) == len(SCREENS) or self.size.width >= _WIDE else ""
        for number, name in enumerate(names, start=1):
            count = f" {counts[name]}" if counts.get(name) else ""
            style = "reverse bold" if name == self._screen_name else "bold" if count else ""
            tabs.append(f"{blank}{number} {name.capitalize()}{count} ", style=style)
        return tabs


def _who(snapshot: Snapshot) -> Text:
    status = snapshot.status
    text = Text(" bcd ", style="bold")
    if status is not None:
        text.append(f"{status.version}  ", style="bold")
        if status.left is not None:
            seconds = int(status.left.seconds)
            said = f"{seconds} s left" if seconds > 0 else f"{-seconds} s overdue"
            text.append(f"{said}  ", style="bold yellow" if seconds > 0 else "bold red")
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
    text.append(f"   {datetime.fromtimestamp(snapshot.taken_at).astimezone():%H:%M}", style="dim")
    return text
