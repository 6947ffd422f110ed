"""The forecast, drawn: a line a future, struck out where this node lacks it."""

from rich.text import Text
from textual.reactive import reactive
from textual.widgets import Static

from bcd.tui.forecast import Future


class ForecastView(Static):
    """The futures of what is pending."""

    shown: reactive[tuple[Future, ...]] = reactive((), layout=False)

    def render(self) -> Text:
        """A line a future."""
        text = Text(no_wrap=True, overflow="ellipsis")
        for number, future in enumerate(self.shown):
            if number:
                text.append("\n")
            style = "strike dim" if future.struck else ""
            text.append(f"{future.when:<14}", style=f"bold {style}".strip()).append(future.what, style=style)
            if future.struck:
                text.append(f"  ({future.struck})", style="yellow")
        return text
