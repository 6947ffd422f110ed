"""The tour while it runs, on a terminal: one frame, drawn from the board as often as it is asked for.

It fits 80 columns and as many lines as there are; what does not fit is told by number.
"""

import time
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from bcd.lab.scenario import Doing, Scenario
from bcd.lab.tour.board import Board, Snapshot
from bcd.lab.tour.marks import Marks, clock

_TITLE_COLUMNS = 41
_SCENARIO_COLUMNS = 32
_LEFT_COLUMNS = 10
_WIDEST = 100
_LINES_BESIDES = 6
"""Of the frame, beside the groups and the scenarios that play."""


class LiveView:
    """A renderable that shows the board as it is at that instant."""

    def __init__(self, board: Board, marks: Marks) -> None:
        self._board = board
        self._marks = marks

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        board = self._board.snapshot()
        for line in self._lines(board, min(options.max_width - 1, _WIDEST), console.size.height):
            line.no_wrap, line.overflow = True, "crop"
            yield line

    def _lines(self, board: Snapshot, width: int, height: int) -> Iterator[Text]:
        yield self._head(board, width)
        yield Text()
        for group in board.groups:
            row = Text(f"  {group.title:<{_TITLE_COLUMNS}}")
            for scenario in group.scenarios:
                row.append_text(self._mark(board, scenario))
            yield row
        yield Text()
        yield from self._playing(board, width, max(1, height - len(board.groups) - _LINES_BESIDES))
        yield Text()
        yield self._bar(board, width)

    def _head(self, board: Snapshot, width: int) -> Text:
        left, right = "bcd lab tour", f"{len(board.results)} of {board.total}   {clock(board.elapsed_seconds)}"
        return Text.assemble((left, "bold"), " " * max(1, width - len(left) - len(right)), right)

    def _mark(self, board: Snapshot, scenario: Scenario) -> Text:
        result = board.results.get(scenario.name)
        if result is not None:
            return Text(self._marks.good, "green") if result.as_ruled else Text(self._marks.bad, "bold red")
        if scenario.name in board.playing:
            return Text(self._marks.playing, "cyan")
        return Text(self._marks.to_come, "dim")

    def _playing(self, board: Snapshot, width: int, room: int) -> list[Text]:
        titles = {scenario.name: scenario.title for group in board.groups for scenario in group.scenarios}
        rows = [self._doing(titles[name], doing, width) for name, doing in board.playing.items()]
        if len(rows) > room:
            rows = [*rows[: room - 1], Text(f"  and {len(rows) - room + 1} more", "dim")]
        return rows

    def _doing(self, title: str, doing: Doing, width: int) -> Text:
        left = "" if doing.until is None else f"{clock(doing.until - time.monotonic())} left"
        text_columns = max(1, width - 2 - _SCENARIO_COLUMNS - _LEFT_COLUMNS)
        text = doing.text if len(doing.text) <= text_columns - 1 else doing.text[: text_columns - 3] + ".."
        return Text.assemble(
            f"  {title:<{_SCENARIO_COLUMNS}}", (f"{text:<{text_columns}}", "dim"), (f"{left:>{_LEFT_COLUMNS}}", "cyan")
        )

    def _bar(self, board: Snapshot, width: int) -> Text:
        columns = width - 2
        done = columns * len(board.results) // max(1, board.total)
        return Text.assemble(
            "  ", (self._marks.bar_done * done, "green"), (self._marks.bar_left * (columns - done), "dim")
        )
