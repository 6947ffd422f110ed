"""One slot as a panel: what it holds, and on its lower edge whether it is current or previous."""

from rich.text import Text
from textual.reactive import reactive
from textual.widgets import Static

from bcd.core.links import Slot
from bcd.core.records import SlotRecord
from bcd.tui.words import age, digest, size

_WHOLE_DIGEST = 76
"""Columns from which there is room for all of the SHA-256 beside the size."""


class SlotPanel(Static):
    """A slot."""

    record: reactive[SlotRecord | None] = reactive(None, layout=False)
    """What it holds; None where nothing is known."""
    role: reactive[str] = reactive("", layout=False)
    """`current`, `previous` or nothing."""
    note: reactive[str] = reactive("", layout=False)
    """What is to be said of it beyond its record: `waits for its welcome`."""

    def __init__(self, slot: Slot) -> None:
        super().__init__(id=f"slot-{slot}")
        self.border_title = f"slot {slot}"
        self.now = 0.0
        """Unix seconds, for the age."""

    def watch_role(self, role: str) -> None:
        """Draw the link on the lower edge."""
        self.border_subtitle = {"current": "▲ current: bcd runs from here", "previous": "▲ previous: the way back"}.get(
            role, ""
        )
        self.set_class(role == "current", "-current")
        self.set_class(role == "previous", "-previous")

    def render(self) -> Text:
        """Three lines: version, digest and size, age or note."""
        record = self.record
        if record is None:
            return Text.styled("empty" if not self.role else "holds something that is not recorded", "dim")
        sequence = f"sequence {record.sequence}" if record.sequence else "sequence unknown"
        text = Text()
        text.append(f"{record.version}", style="bold").append(f"   {sequence}\n")
        whole = self.size.width >= _WHOLE_DIGEST
        text.append(f"{record.sha256 if whole else digest(record.sha256)}   {size(record.size)}\n", style="dim")
        text.append(self.note or f"written {age(self.now - record.written_at)} ago")
        return text
