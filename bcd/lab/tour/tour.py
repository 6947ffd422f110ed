"""`bcd lab tour`: build the world, play all of it, show it, and say whether it ended as the rules say."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from bcd.core.exits import ExitStatus
from bcd.lab.directory import LabDirectory
from bcd.lab.scenario import Group
from bcd.lab.scenarios import GROUPS, SPLIT_GROUPS
from bcd.lab.signals import Ended, ending_by_signal
from bcd.lab.split import require_root
from bcd.lab.tour.board import Board
from bcd.lab.tour.live import LiveView
from bcd.lab.tour.marks import Marks, clock, marks_for
from bcd.lab.tour.result import Result, choose
from bcd.lab.tour.runner import Events, Runner
from bcd.lab.tour.table import failures, table
from bcd.lab.world import World

_PLAIN_COLUMNS = 162
"""Where there is no terminal: so wide that each scenario is one line."""
_FRAMES_A_SECOND = 5


def run_tour(
    *,
    directory: Path | None,
    only: Sequence[str],
    split: bool = False,
    color: bool,
    terminal: bool,
    out: TextIO,
    err: TextIO,
    groups: Sequence[Group] | None = None,
) -> ExitStatus:
    """Play the scenarios that match `only` (all for none).

    Args:
        directory: where the world lives and stays; None for a temporary one, which stays only when something failed.
        only: names of scenarios, or patterns.
        split: whether the nodes run under a user of their own, with a helper.
        color: whether colours may be used.
        terminal: whether `out` is a terminal that can be drawn on.
        out: gets the progress and the table.
        err: gets what is said when it is ended early.
        groups: what there is to play; None for all that there is.

    Returns:
        OK when each ended as the rules say, PROBLEM when one did not, or the status of the signal that ended it.

    Raises:
        UsageError: `unknown-scenario`, `bad-directory`, `lab-running` or `no-source`.
        NotPermitted: `needs-root`, for a split lab.
        HostError: `no-interpreter`, for a split lab.
    """
    if split:
        require_root()
    groups = choose(groups or (SPLIT_GROUPS if split else GROUPS), only)
    console = _Console(
        file=out,
        force_terminal=terminal,
        no_color=not color,
        color_system=("auto" if terminal else "standard") if color else None,  # rich finds none for a pipe
        width=None if terminal else _PLAIN_COLUMNS,
        highlight=False,
        markup=False,
        emoji=False,
    )
    claimed = LabDirectory(directory, split=split)
    results: list[Result] = []
    events: Events = SimpleQueue()
    try:
        with ending_by_signal(events.put):
            board = _play(claimed.path, groups, console, marks_for(out), results, events, split=split)
    except Ended as ended:
        with suppress(OSError):  # after SIGHUP nobody may be there to be told
            err.write(f"ended early, after {len(results)} scenarios; every process of the lab has ended\n")
        return ended.status
    finally:
        failed = any(not result.as_ruled for result in results)
        claimed.give_back(keep=failed)
    _show(console, groups, board, marks_for(out), where=_where(claimed, failed=failed))
    return ExitStatus.PROBLEM if failed else ExitStatus.OK


class _Console(Console):
    """Leaves a closed pipe to the command line, which knows that it is no failure; rich's own would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _play(
    directory: Path,
    groups: Sequence[Group],
    console: Console,
    marks: Marks,
    results: list[Result],
    events: Events,
    *,
    split: bool,
) -> Board:
    board = Board(groups)
    with World(directory, split=split) as world:
        runner = Runner(world, groups, board, events)
        try:
            if console.is_terminal and not console.is_dumb_terminal:
                _play_live(runner, LiveView(board, marks), console, results)
            else:
                _play_plain(runner, board.snapshot().total, console, marks, results)
        finally:
            world.halt()
            runner.join()
    return board


def _play_live(runner: Runner, view: LiveView, console: Console, results: list[Result]) -> None:
    live = Live(view, console=console, transient=True, refresh_per_second=_FRAMES_A_SECOND, redirect_stdout=False)
    live.start()
    try:
        runner.run(results.append)
    finally:
        with suppress(OSError):  # the terminal may be gone, and what ended the tour must not be lost over that
            live.stop()


def _play_plain(runner: Runner, total: int, console: Console, marks: Marks, results: list[Result]) -> None:
    count = "1 scenario" if total == 1 else f"{total} scenarios"
    console.print(f"bcd lab tour: {count}, each on a node of its own; a deadline takes its 120 s")

    def finished(result: Result) -> None:
        results.append(result)
        mark = marks.good if result.as_ruled else marks.bad
        console.print(
            f"{len(results):>3} of {total}  {mark} {result.scenario.title}: {result.ended}"
            f" ({result.took_seconds:.1f} s)"
        )

    runner.run(finished)


def _show(console: Console, groups: Sequence[Group], board: Board, marks: Marks, *, where: str) -> None:
    ended = board.snapshot()
    for line in table(groups, ended.results, marks, console.width):
        console.print(line, soft_wrap=True)
    for line in failures(list(ended.results.values()), marks):
        console.print(line, soft_wrap=True)
    good = sum(1 for result in ended.results.values() if result.as_ruled)
    verdict = f"{good} of {ended.total} ended as the rules say, in {clock(ended.elapsed_seconds)}."
    console.print()
    console.print(Text(verdict, "bold green" if good == ended.total else "bold red"), soft_wrap=True)
    console.print(where, soft_wrap=True)


def _where(claimed: LabDirectory, *, failed: bool) -> str:
    if claimed.temporary and not failed:
        return "Nothing is left behind; --dir keeps the nodes and their logs."
    return f"The nodes and their logs are in {claimed.path / 'nodes'}."
