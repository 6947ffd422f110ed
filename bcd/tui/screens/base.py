"""What every screen has: the top bar, the deadline, its own body, the footer, and the app's snapshot handed down."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from bcd.tui.keys import HJKL
from bcd.tui.letting_go import let_go
from bcd.tui.snapshot import Snapshot
from bcd.tui.view import View
from bcd.tui.widgets.deadline import Deadline
from bcd.tui.widgets.footer import ConsoleFooter
from bcd.tui.widgets.top_bar import TopBar


class ConsoleScreen(Screen[None]):
    """A screen of the console."""

    NAME = ""
    BINDINGS: ClassVar[list[BindingType]] = [*HJKL]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (64, "-wide")]  # noqa: RUF012  # Textual's own type is no ClassVar
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall"), (32, "-roomy")]  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self._followed: set[str] = set()
        self._behind: dict[str, Callable[[Any], None]] = {}
        """What changed while this screen was not seen, with what shows it."""

    def compose(self) -> ComposeResult:
        """Top bar, deadline, body, footer."""
        yield TopBar(self.NAME)
        yield Deadline()
        yield from self.body()
        yield ConsoleFooter(show_command_palette=False)

    def body(self) -> Iterable[Widget]:
        """The widgets between top bar and footer."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Follow the app's snapshot."""
        view: View = getattr(self.app, "view", View())
        if view.screen == self.NAME:
            self.go_to(view)
        self.follow("snapshot", self._take)

    def follow(self, name: str, show: Callable[[Any], None]) -> None:
        """Show each value of the app's reactive `name`: at once while this screen is seen, else when it is seen again.

        A node that restarts every second would otherwise have all eight screens drawn anew, for nobody.
        Asked for again, it changes nothing: Textual calls `on_mount` of each class, also where one calls its parent's.
        """
        if name in self._followed:
            return
        self._followed.add(name)

        def changed(value: object) -> None:
            if self.is_current:
                show(value)
            else:
                self._behind[name] = show

        self.watch(self.app, name, changed)

    def on_screen_resume(self) -> None:
        """Catch up."""
        let_go(self)
        behind, self._behind = self._behind, {}
        for name, show in behind.items():
            show(getattr(self.app, name))

    def _take(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self.query_one(TopBar).show(snapshot)
            self.query_one(Deadline).left = None if snapshot.status is None else snapshot.status.left
            self.take(snapshot)

    def take(self, snapshot: Snapshot) -> None:
        """Show a snapshot."""
        raise NotImplementedError

    def add_lines(self, lines: list[str]) -> None:
        """Lines that came into the log, for the screen that shows it."""

    @property
    def view(self) -> View:
        """Where one is on this screen."""
        return View(screen=self.NAME)

    def go_to(self, view: View) -> None:
        """Start there, as far as what is shown still has it."""


def say(widget: Static, text: Text) -> None:
    """Give a Static its text where it is another one; laid out anew, which draws the whole screen, only for more lines."""
    before = widget.content
    if before != text:
        lines = before.plain.count("\n") if isinstance(before, Text) else -1
        widget.update(text, layout=lines != text.plain.count("\n") or len(text) > widget.size.width > 0)
