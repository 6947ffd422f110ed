"""Journal: the service's log, followed: journalctl where systemd keeps it."""

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import RichLog, Static

from bcd.tui.screens.base import ConsoleScreen
from bcd.tui.snapshot import Snapshot

_STYLES = {"ERROR": "bold red", "WARNING": "yellow", "DEBUG": "dim"}


class JournalScreen(ConsoleScreen):
    """The log's tail."""

    NAME = "journal"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("f", "follow", "Follow", id="journal.follow")]

    following: reactive[bool] = reactive(True)

    def body(self) -> Iterable[Widget]:
        """Where it comes from, and the lines."""
        yield Static(id="journal-source")
        yield RichLog(id="journal-lines", max_lines=2000, min_width=1, markup=False, wrap=True, auto_scroll=True)

    def on_mount(self) -> None:
        """Show what is there, then what comes."""
        super().on_mount()
        self.follow("journal_source", self._take_source)

    def on_screen_resume(self) -> None:
        """Catch up with what came meanwhile."""
        self._fill()

    def on_resize(self) -> None:
        """Wrap every line anew: the log keeps each as it was drawn first."""
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        self.query_one("#journal-lines", RichLog).clear()
        self.add_lines(getattr(self.app, "journal_lines", []))

    def take(self, snapshot: Snapshot) -> None:
        """The lines come of themselves."""

    def add_lines(self, lines: list[str]) -> None:
        """Append lines, already made safe to show."""
        log = self.query_one("#journal-lines", RichLog)
        for line in lines:
            style = next((style for word, style in _STYLES.items() if f" {word} " in line), "")
            log.write(Text.styled(line, style), expand=True)  # else no wider than a console of Rich's own is

    def action_follow(self) -> None:
        """Follow the end, or stay where it is."""
        log = self.query_one("#journal-lines", RichLog)
        log.auto_scroll = self.following = not self.following
        self._take_source(self._source)

    def _take_source(self, source: str) -> None:
        self._source = source
        following = "following" if self.following else "not following (f)"
        self.query_one("#journal-source", Static).update(Text.styled(f"{source}   {following}", "dim"))
