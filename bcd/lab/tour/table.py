"""The tour when it has ended: the table, and for what did not end as the rules say what was expected and seen.

Laid out by hand, so that nothing is ever cut off: with room for it a scenario is one row, what it proves wrapped in its
own column; on a narrow terminal what it proves stands below.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from bcd.lab.scenario import Group
from bcd.lab.tour.marks import Marks
from bcd.lab.tour.result import Result

_MARK_COLUMNS = 2
_TITLE_COLUMNS = 31
_ENDED_COLUMNS = 31
_TIME_COLUMNS = 8
_FIXED_COLUMNS = _MARK_COLUMNS + _TITLE_COLUMNS + _ENDED_COLUMNS + 2 * _TIME_COLUMNS
_LEAST_PROVES_COLUMNS = 40
_MOST_PROVES_COLUMNS = 82


def table(groups: Sequence[Group], results: Mapping[str, Result], marks: Marks, width: int) -> Iterator[Text]:
    """The lines of the table, none wider than `width` (80 or more)."""
    beside = min(width - _FIXED_COLUMNS, _MOST_PROVES_COLUMNS)
    beside = beside if beside >= _LEAST_PROVES_COLUMNS else 0
    yield _row("", "what happens", "what it proves", "how it ended", "took", "offline", beside, "dim")
    for group in groups:
        yield Text()
        yield Text(group.title, "bold")
        for scenario in group.scenarios:
            yield from _result(results[scenario.name], marks, beside, width)


def failures(results: Sequence[Result], marks: Marks) -> Iterator[Text]:
    """For each result that is not as the rules say: what was expected, what was seen, and the log's last lines."""
    for result in results:
        if result.as_ruled:
            continue
        yield Text()
        yield Text.assemble((f"{marks.bad} {result.scenario.name}", "bold red"), f": {result.scenario.title}")
        for mismatch in result.mismatches:
            yield Text(f"  {mismatch.what}")
            yield from _labelled("expected", mismatch.expected)
            yield from _labelled("saw", mismatch.seen)
        yield Text(f"  the last lines of {result.log}")
        for line in result.log_tail:
            yield Text(f"    {line}", "dim")


def _result(result: Result, marks: Marks, beside: int, width: int) -> Iterator[Text]:
    proves = textwrap.wrap(result.scenario.proves, beside - 2 if beside else width - _MARK_COLUMNS - 1)
    took = f"{result.took_seconds:.1f} s"
    offline = "" if result.offline_seconds is None else f"{result.offline_seconds:.1f} s"
    mark = Text(marks.good, "green") if result.as_ruled else Text(marks.bad, "bold red")
    row = _row("", result.scenario.title, proves[0], result.ended, took, offline, beside, "")
    yield Text.assemble(mark, row[len(mark) :])
    indent = _MARK_COLUMNS + (_TITLE_COLUMNS if beside else 0)
    for line in proves[1:] if beside else proves:
        yield Text(" " * indent + line, "dim")


def _row(mark: str, title: str, proves: str, ended: str, took: str, offline: str, beside: int, style: str) -> Text:
    cells = [
        (f"{mark:<{_MARK_COLUMNS}}{title:<{_TITLE_COLUMNS}}", style),
        (f"{proves:<{beside}}" if beside else "", "dim"),
        (f"{ended:<{_ENDED_COLUMNS}}", style),
        (f"{took:>{_TIME_COLUMNS}}{offline:>{_TIME_COLUMNS}}", style),
    ]
    row = Text.assemble(*cells)
    row.rstrip()
    return row


def _labelled(label: str, value: str) -> Iterator[Text]:
    first, *more = value.splitlines() or [""]
    yield Text(f"    {label:<9}{first}")
    for line in more:
        yield Text(f"    {'':<9}{line}")
