"""The countdown of a pending release: seconds left, a bar that shrinks, and both clocks where they part.

Cheap by design: fixed height, `layout=False`, and drawn anew only when the whole second changed.
"""

from rich.text import Text
from textual.reactive import reactive
from textual.widgets import Static

from bcd.core.deadline import WELCOME_SECONDS, Left
from bcd.tui.words import bar

_APART_SECONDS = 2
_BAR = 48


class Countdown(Static):
    """What is left."""

    left: reactive[Left | None] = reactive(None, layout=False)

    def render(self) -> Text:
        """Two lines; none where nothing is pending."""
        left = self.left
        if left is None:
            return Text()
        seconds = int(left.seconds)
        share = max(0.0, min(1.0, left.seconds / WELCOME_SECONDS))
        style = "bold green" if share > 0.5 else "bold yellow" if share > 0.2 else "bold red"
        text = Text(no_wrap=True)
        if left.seconds > 0:
            text.append(f"{seconds:>4} s", style=style).append("  left to be welcomed by a gateway")
        else:
            text.append(f"{-seconds:>4} s", style="bold red").append("  overdue, not swapped back yet")
        if not left.same_boot:
            text.append("   (wall clock: it was swapped in before this boot)", style="dim")
        elif abs(left.wall_seconds - left.seconds) > _APART_SECONDS:
            text.append(f"   the wall clock was stepped and says {int(left.wall_seconds)} s", style="yellow")
        full, empty = bar(share, _BAR)
        text.append("\n").append(full, style=style).append(empty, style="dim")
        return text
