"""The deadline in one line, on every screen that has no countdown: it is never folded away, nor a screen away."""

from rich.text import Text
from textual.reactive import reactive
from textual.widgets import Static

from bcd.core.deadline import Left
from bcd.tui.words import time_left


class Deadline(Static):
    """What is left of a pending release's time."""

    left: reactive[Left | None] = reactive(None, layout=False)

    def watch_left(self, left: Left | None) -> None:
        """Take a line only where something is pending."""
        self.set_class(left is not None, "-pending")

    def render(self) -> Text:
        """One line."""
        text = "" if self.left is None else time_left(self.left.seconds)
        return Text(no_wrap=True, overflow="ellipsis").append(text, style="bold yellow")
