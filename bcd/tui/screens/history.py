"""History: what happened here, newest first, filtered as it is typed."""

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import DataTable, Input, Static

from bcd.core.records import Json
from bcd.core.text import clean
from bcd.tui.screens.base import ConsoleScreen
from bcd.tui.snapshot import Snapshot
from bcd.tui.view import View
from bcd.tui.widgets.rows import Rows
from bcd.tui.words import moment


class HistoryScreen(ConsoleScreen):
    """The timeline."""

    NAME = "history"
    AUTO_FOCUS = "#history-table"  # the hidden field would swallow every key
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/", id="history.filter"),
        Binding("escape", "no_filter", "No filter", id="history.no-filter"),
    ]

    events: reactive[tuple[Json, ...]] = reactive(())

    def __init__(self) -> None:
        super().__init__()
        self._wanted = ""
        """The event that the cursor belongs on."""

    def body(self) -> Iterable[Widget]:
        """Filter, table, empty state."""
        yield Input(placeholder="filter: a version, an event, a word", id="history-filter")
        yield Rows(id="history-table")
        yield Static(id="history-more")
        yield Static(Text.styled("Nothing happened here yet.", "dim"), id="history-empty")

    def on_mount(self) -> None:
        """Columns, then the app's events."""
        self.query_one("#history-table", DataTable).add_columns("when", "event", "version", "more")
        self.query_one("#history-filter").display = False
        super().on_mount()
        self.follow("events", self._take_events)

    @property
    def view(self) -> View:
        """The filter, and the event under the cursor."""
        return View(screen=self.NAME, filter=self.query_one("#history-filter", Input).value, cursor=self._wanted)

    def go_to(self, view: View) -> None:
        """Start filtered, on an event."""
        self._wanted = view.cursor
        if view.filter:
            field = self.query_one("#history-filter", Input)
            field.value = view.filter
            field.display = True

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a filter that is there can be taken away."""
        if action == "no_filter" and self.is_mounted and not self.query_one("#history-filter").display:
            return False
        if action == "filter" and isinstance(self.focused, Input):
            return False  # a slash is typed into the field
        return super().check_action(action, parameters)

    def take(self, snapshot: Snapshot) -> None:
        """The events come of themselves."""

    def action_filter(self) -> None:
        """Type a filter."""
        field = self.query_one("#history-filter", Input)
        field.display = True
        field.focus()
        self.refresh_bindings()

    def action_no_filter(self) -> None:
        """Show everything again."""
        field = self.query_one("#history-filter", Input)
        field.value = ""
        field.display = False
        self.query_one("#history-table").focus()
        self.refresh_bindings()

    def on_input_changed(self) -> None:
        """Filter as it is typed."""
        self._fill()

    def on_input_submitted(self) -> None:
        """Back to the table, the filter kept."""
        self.query_one("#history-table").focus()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Show the event under the cursor whole."""
        table = self.query_one("#history-table", DataTable)
        if event.row_key not in table.rows:
            return  # the table was filled anew since
        cells = table.get_row(event.row_key)
        self._wanted = _key([str(cell) for cell in cells])
        self.query_one("#history-more", Static).update(Text("  ".join(str(cell) for cell in cells)))

    def _take_events(self, events: tuple[Json, ...]) -> None:
        self.events = events
        self._fill()

    def _fill(self) -> None:
        wanted = self.query_one("#history-filter", Input).value.casefold()
        table: DataTable[Text] = self.query_one("#history-table", DataTable)
        row, wanted_row = table.cursor_row, self._wanted
        table.clear()
        found = None
        for event in self.events:
            cells = _cells(event)
            if wanted in " ".join(cells).casefold():
                if found is None and _key(cells) == wanted_row:
                    found = table.row_count
                table.add_row(*(Text(cell) for cell in cells))
        # A new event comes in on top: the cursor stays on the event that it was on, and not on its row.
        table.move_cursor(row=min(row, max(0, table.row_count - 1)) if found is None else found)
        table.display = self.query_one("#history-more").display = bool(table.row_count)
        self.query_one("#history-empty").display = not table.row_count


def _key(cells: Iterable[str]) -> str:
    """What tells an event from the others."""
    return " ".join(cells)[:200]


def _cells(event: Json) -> tuple[str, str, str, str]:
    when = moment(event.get("at"), "%Y-%m-%d %H:%M:%S")
    more = [f"{key} {event[key]}" for key in ("sequence", "slot", "way", "code") if event.get(key) is not None]
    if event.get("reason"):
        more.append(str(event["reason"]))
    version = event.get("version") or event.get("versions") or ""
    return when, clean(str(event.get("event"))), clean(str(version)), clean("; ".join(more))
