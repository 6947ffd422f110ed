"""Help over whatever screen it was asked on: the keys that hold there now, made from the bindings themselves."""

from itertools import groupby
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from bcd.tui.keys import HJKL, Row

_KEYS_WIDTH = 16


class HelpScreen(ModalScreen[None]):
    """A list of keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "dismiss", "Close", key_display="esc", id="help.close"),
        *HJKL,
    ]

    def __init__(self, rows: tuple[Row, ...]) -> None:
        super().__init__()
        self.rows = rows

    def compose(self) -> ComposeResult:
        """One part that scrolls."""
        with VerticalScroll(id="help-keys"):
            yield Static(_drawn(self.rows))


def _drawn(rows: tuple[Row, ...]) -> Text:
    text = Text().append("The keys here, now (esc closes this)\n", style="bold")
    for group, members in groupby(sorted(rows, key=lambda row: row.group == "everywhere"), key=lambda row: row.group):
        text.append(f"\n{group}\n", style="bold underline")
        for row in members:
            text.append(f"  {row.shown:<{_KEYS_WIDTH}}", style="bold" if row.enabled else "dim")
            text.append(
                row.what if row.enabled else f"{row.what} (not possible now)", style="" if row.enabled else "dim"
            )
            text.append("\n")
    return text
