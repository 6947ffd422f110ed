"""Failed versions: which, when, why; and forgetting one, several or all of them, each behind a confirmation."""

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import DataTable, Static

from bcd.core.records import Failed
from bcd.core.text import raw
from bcd.tui.screens.base import ConsoleScreen
from bcd.tui.screens.confirm_clear import ConfirmClear
from bcd.tui.snapshot import Snapshot
from bcd.tui.view import View
from bcd.tui.widgets.rows import Rows
from bcd.tui.words import moment


class FailedScreen(ConsoleScreen):
    """The table of failed versions."""

    NAME = "failed"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "Mark", id="failed.mark"),
        Binding("c", "clear", "Clear", id="failed.clear"),
        Binding("C", "clear_all", "Clear all", id="failed.clear-all"),
    ]

    class Clear(Message):
        """The operator confirmed that these versions be forgotten."""

        def __init__(self, versions: tuple[str, ...]) -> None:
            super().__init__()
            self.versions = versions

    def __init__(self) -> None:
        super().__init__()
        self._failed: tuple[Failed, ...] = ()
        self._marked: set[str] = set()
        self._why_not: str | None = None
        self._wanted = ""
        """The version to start on, once it is there."""

    def body(self) -> Iterable[Widget]:
        """The table, its empty state, and the reason where clearing is not possible."""
        yield Rows(id="failed-table")
        yield Static(id="failed-reason")
        yield Static(id="failed-empty")
        yield Static(id="failed-right")

    def on_mount(self) -> None:
        """Columns first, then rows as snapshots come."""
        table = self._table
        for title in ("", "version", "sequence", "when", "why"):
            table.add_column(title, key=title or "mark")
        super().on_mount()

    @property
    def view(self) -> View:
        """The version under the cursor."""
        return View(screen=self.NAME, cursor=self._under_cursor() or "")

    def go_to(self, view: View) -> None:
        """Start on a version."""
        self._wanted = view.cursor

    def take(self, snapshot: Snapshot) -> None:
        """Bring the rows up to date, each under its version: the cursor stays on the version that it was on."""
        status = snapshot.status
        update = None if status is None else status.update.value
        failed = () if update is None else tuple(reversed(update.failed))
        unreadable = status is not None and status.update.state == "unreadable"
        could, self._why_not = self._may_clear, snapshot.clear_refused
        if failed != self._failed:
            self._failed = failed
            self._marked &= {raw(entry.version) for entry in failed}
            self._fill()
        table = self._table
        table.display = self.query_one("#failed-reason").display = bool(failed)
        empty = self.query_one("#failed-empty", Static)
        empty.display = not failed
        empty.update(
            Text.styled("what failed here may not be read by this user: sudo bcd console", "bold yellow")
            if unreadable
            else Text.styled("No version failed here.", "dim")
        )
        right = self.query_one("#failed-right", Static)
        right.display = bool(failed) and self._why_not is not None
        right.update(Text.styled(self._why_not or "", "yellow"))
        self._show_reason()
        if self._may_clear != could:
            self.refresh_bindings()

    @property
    def _may_clear(self) -> bool:
        return self._why_not is None and bool(self._failed)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Clearing is shown, and disabled where it is not possible."""
        if action in ("clear", "clear_all") and not self._may_clear:
            return None
        return super().check_action(action, parameters)

    def action_mark(self) -> None:
        """Mark the version under the cursor, or take the mark away."""
        version = self._under_cursor()
        if version is not None:
            self._marked ^= {version}
            self._table.update_cell(version, "mark", self._mark(version))

    def action_clear(self) -> None:
        """Ask whether to clear what is marked, or what is under the cursor."""
        version = self._under_cursor()
        versions = tuple(raw(f.version) for f in self._failed if raw(f.version) in self._marked)
        self._ask(versions or ((version,) if version is not None else ()))

    def action_clear_all(self) -> None:
        """Ask whether to clear all of them."""
        self._ask(tuple(raw(entry.version) for entry in self._failed))

    def on_data_table_row_highlighted(self) -> None:
        """Show the whole reason of the version under the cursor."""
        self._show_reason()

    def _ask(self, versions: tuple[str, ...]) -> None:
        def answered(clear: bool | None) -> None:  # noqa: FBT001  # what a modal screen ends with
            if clear:
                self.post_message(self.Clear(versions))

        if versions:
            self.app.push_screen(ConfirmClear(versions), answered)

    @property
    def _table(self) -> "DataTable[Text]":
        return self.query_one("#failed-table", DataTable)

    def _fill(self) -> None:
        table = self._table
        before = self._under_cursor() or self._wanted
        table.clear()
        for entry in self._failed:
            version = raw(entry.version)
            when = moment(entry.at, "%Y-%m-%d %H:%M")
            cells = (Text(entry.version), Text(str(entry.sequence)), Text(when), Text(entry.reason))
            table.add_row(self._mark(version), *cells, key=version)
        if before in {raw(entry.version) for entry in self._failed}:
            table.move_cursor(row=table.get_row_index(before))

    def _mark(self, version: str) -> Text:
        return Text("*" if version in self._marked else " ")

    def _under_cursor(self) -> str | None:
        table = self._table
        if table.row_count == 0:
            return None
        return table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value

    def _show_reason(self) -> None:
        version = self._under_cursor()
        entry = next((f for f in self._failed if raw(f.version) == version), None)
        self.query_one("#failed-reason", Static).update(Text("" if entry is None else entry.reason))
