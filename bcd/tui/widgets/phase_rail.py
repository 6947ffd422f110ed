"""The phase rail: the stations of an update, what is behind and where it is. Marks say it, colour says it again."""

from rich.text import Text
from textual.reactive import reactive
from textual.widgets import Static

from bcd.tui.phase import STATIONS, Phase

_STYLES = {"quiet": "dim", "working": "cyan", "waiting": "yellow", "good": "green", "bad": "red"}


class PhaseRail(Static):
    """Where the update is."""

    phase: reactive[Phase | None] = reactive(None, layout=False)

    def render(self) -> Text:
        """The stations on one line, the sentence on the next."""
        phase = self.phase
        if phase is None:
            return Text()
        text = Text(no_wrap=True, overflow="ellipsis")
        for number, station in enumerate(STATIONS):
            if number:
                text.append(" ─── " if number <= phase.passed else " ┄┄┄ ", style="dim")
            if number < phase.passed:
                text.append(f"● {station}", style=_STYLES["good"])
            elif number == phase.passed and phase.at:
                text.append(f"◉ {phase.at}", style=f"bold {_STYLES[phase.tone]}")
            else:
                text.append(f"○ {station}", style="dim")
        text.append("\n")
        text.append(phase.sentence, style=_STYLES[phase.tone] if phase.tone != "quiet" else "")
        return text
