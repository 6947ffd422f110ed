"""What every screen has: the top bar, the deadline, its own body, the footer, and the app's snapshot handed down."""

from collections.abc import Iterable

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer

from bcd.tui.snapshot import Snapshot
from bcd.tui.widgets.deadline import Deadline
from bcd.tui.widgets.top_bar import TopBar


class ConsoleScreen(Screen[None]):
    """A screen of the console."""

    NAME = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (64, "-wide")]  # noqa: RUF012  # Textual's own type is no ClassVar
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall"), (32, "-roomy")]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        """Top bar, deadline, body, footer."""
        yield TopBar(self.NAME)
        yield Deadline()
        yield from self.body()
        yield Footer(show_command_palette=False)

    def body(self) -> Iterable[Widget]:
        """The widgets between top bar and footer."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Follow the app's snapshot."""
        self.watch(self.app, "snapshot", self._take)

    def _take(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self.query_one(TopBar).snapshot = snapshot
            self.query_one(Deadline).left = None if snapshot.status is None else snapshot.status.left
            self.take(snapshot)

    def take(self, snapshot: Snapshot) -> None:
        """Show a snapshot."""
        raise NotImplementedError
