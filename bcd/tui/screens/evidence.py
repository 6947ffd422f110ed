"""The evidence, over whatever screen it was asked on: each value, its file, that file's time and digest, and the rule."""

import os
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import DataTable, Static

from bcd.core.text import clean
from bcd.tui.evidence import Evidence, Look
from bcd.tui.keys import HELP, HJKL
from bcd.tui.widgets.rows import Rows

_VALUE, _NARROW_VALUE, _NARROW = 40, 20, 110
"""Characters of a value in the table, also on a terminal of fewer columns than this: below the table it stands whole."""


class EvidenceScreen(ModalScreen[None]):
    """A table of what the values rest on, read again as it opens."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,e,q", "dismiss", "Close", key_display="esc", id="evidence.close"),
        HELP,
        *HJKL,
    ]

    def __init__(self, rows: tuple[Evidence, ...], look: Look) -> None:
        super().__init__()
        self._rows = rows
        self._seen = {row.path: look(row.path) for row in rows}
        """When each file changed, and what it is: looked at once."""

    def compose(self) -> ComposeResult:
        """The table, and the row under the cursor whole."""
        with Vertical(id="evidence"):
            yield Static(Text.styled("Evidence, read again just now", "bold"))
            yield Rows(id="evidence-table")
            yield Static(id="evidence-whole")

    def on_mount(self) -> None:
        """Fill it."""
        table: DataTable[Text] = self.query_one("#evidence-table", DataTable)
        table.add_columns("value", "is", "file", "changed")
        limit = _NARROW_VALUE if self.app.size.width < _NARROW else _VALUE
        for row in self._rows:
            cells = (row.name, clean(row.value, limit), os.path.basename(row.path), self._seen[row.path][0])
            table.add_row(*(Text(clean(cell)) for cell in cells))

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Show a row whole."""
        if event.cursor_row < len(self._rows):
            row = self._rows[event.cursor_row]
            when, what = (clean(each) for each in self._seen[row.path])
            seen = f"changed {when}, {what}" if when else what
            self.query_one("#evidence-whole", Static).update(
                Text(f"{clean(row.name)}: {clean(row.value)}\n{clean(row.path)}\n{seen}\n{row.rule}")
            )
