"""The countdown of a pending release: seconds left, a bar that shrinks, and both clocks where they part.

Cheap by design: a second that went by draws the cells of its number and, now and then, one cell of the bar. It runs for
two minutes on slow lines too.
"""

from rich.text import Text
from textual.geometry import Region
from textual.reactive import reactive
from textual.widgets import Static

from bcd.core.deadline import WELCOME_SECONDS, Left
from bcd.tui.words import bar

_APART_SECONDS = 2
_BAR = 48
_NUMBER = 6
"""Cells of the seconds."""


class Countdown(Static):
    """What is left."""

    left: reactive[Left | None] = reactive(None, layout=False, repaint=False)

    def watch_left(self, before: Left | None, left: Left | None) -> None:
        """Draw what became different."""
        if before is None or left is None:
            self.refresh()
            return
        was, now = (_lines(each) for each in (before, left))
        if was == now:
            return
        number, rest = (Region(0, 0, _NUMBER, 1), Region(_NUMBER, 0, max(1, self.size.width - _NUMBER), 1))
        changed = [number] if was[0][:_NUMBER] != now[0][:_NUMBER] else []
        if was[0][_NUMBER:] != now[0][_NUMBER:]:
            changed.append(rest)
        if _style(before) != _style(left):
            changed = [number, rest, Region(0, 1, max(1, self.size.width), 1)]
        elif was[1] != now[1]:
            low, high = sorted((_full(before), _full(left)))
            changed.append(Region(low, 1, max(1, high - low), 1))
        self.refresh(*changed)

    def render(self) -> Text:
        """Two lines; none where nothing is pending."""
        left = self.left
        if left is None:
            return Text()
        style = _style(left)
        said, bar = _lines(left)
        text = Text(no_wrap=True)
        text.append(said[:_NUMBER], style=style).append(said[_NUMBER:])
        full = _full(left)
        return text.append("\n").append(bar[:full], style=style).append(bar[full:], style="dim")


def _lines(left: Left) -> tuple[str, str]:
    seconds = int(left.seconds)
    said = f"{abs(seconds):>4} s" + (
        "  left to be welcomed by a gateway" if left.seconds > 0 else "  overdue, not swapped back yet"
    )
    if not left.same_boot:
        said += "   (wall clock: it was swapped in before this boot)"
    elif abs(left.wall_seconds - left.seconds) > _APART_SECONDS:
        said += f"   the wall clock was stepped and says {int(left.wall_seconds)} s"
    return said, "".join(bar(left.seconds / WELCOME_SECONDS, _BAR))


def _full(left: Left) -> int:
    return round(max(0.0, min(1.0, left.seconds / WELCOME_SECONDS)) * _BAR)


def _style(left: Left) -> str:
    share = left.seconds / WELCOME_SECONDS
    return "bold green" if share > 0.5 else "bold yellow" if share > 0.2 else "bold red"
