"""Config: what is in force, and where each value comes from."""

import os
from collections.abc import Iterable

from rich.text import Text
from textual.widget import Widget
from textual.widgets import DataTable, Static

from bcd.core.config import Config, HelperConfig, NodeConfig, UpdateConfig
from bcd.core.text import clean
from bcd.tui.screens.base import ConsoleScreen
from bcd.tui.snapshot import Snapshot
from bcd.tui.widgets.rows import Rows


class ConfigScreen(ConsoleScreen):
    """The configuration."""

    NAME = "config"

    def body(self) -> Iterable[Widget]:
        """The file, the table, the trouble."""
        yield Static(id="config-file")
        yield Rows(id="config-table")

    def on_mount(self) -> None:
        """Columns first."""
        self.query_one("#config-table", DataTable).add_columns("table", "key", "from", "value")
        super().on_mount()

    def take(self, snapshot: Snapshot) -> None:
        """Bring the values up to date."""
        line = self.query_one("#config-file", Static)
        table: DataTable[Text] = self.query_one("#config-table", DataTable)
        status = snapshot.status
        table.display = status is not None
        if status is None:
            trouble = snapshot.trouble
            line.update(Text.styled("" if trouble is None else f"{trouble.message}\n{trouble.hint}", "bold red"))
            return
        config = status.config
        found = config.path if config.found else f"there is no {config.path}; the defaults are in force"
        line.update(Text.styled(clean(found), "dim"))
        rows = tuple(_rows(config))
        if table.row_count != len(rows) or getattr(self, "_rows", None) != rows:
            self._rows = rows
            table.clear()
            for row in rows:
                table.add_row(*(Text(clean(cell)) for cell in row))


def _rows(config: Config) -> Iterable[tuple[str, str, str, str]]:
    tables: tuple[tuple[str, NodeConfig | UpdateConfig | HelperConfig | None, object], ...] = (
        ("[node]", config.node, NodeConfig()),
        ("[update]", config.update, UpdateConfig()),
        ("[helper]", config.helper, HelperConfig()),
    )
    for name, values, defaults in tables:
        if values is None:
            continue
        for key, value in values._asdict().items():
            shown = ", ".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
            source = "default" if value == getattr(defaults, key) else os.path.basename(config.path)
            yield name, key, source, shown
