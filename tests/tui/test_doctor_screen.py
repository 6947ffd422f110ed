"""The doctor's screen: findings by category, worst first, the one under the cursor whole, run again on demand."""

import threading
import time

from textual.widgets import Tree

from bcd.doctor.finding import Finding, Level, Report
from bcd.tui.app import ConsoleApp
from bcd.tui.view import View
from tests.tui import states
from tests.tui.consoles import WIDE, World, flat, opened, report_of, until

FAILING = Finding(
    id="slots.current",
    level=Level.FAIL,
    message="current names no slot",
    evidence=("/usr/local/lib/bcd/current: somewhere/else",),
    hint="when its cause is mended: sudo bcd doctor --only slots; then look again",
)
OK = Finding(id="slots.files", level=Level.OK, message="both slots hold what is recorded")
NOTE = Finding(id="host.clock", level=Level.NOTE, message="the clock is not synchronised")
REPORT = report_of(OK, FAILING, NOTE)


def ill(report: Report = REPORT) -> World:
    """A node whose doctor says this."""
    return World(states.at_rest(), report=report)


def under_cursor(app: ConsoleApp) -> str:
    """The id of the finding that the cursor is on."""
    node = app.screen.query_one("#doctor-tree", Tree).cursor_node
    return "" if node is None or node.data is None else node.data.id


async def test_opening_it_looks_and_says_the_verdict() -> None:
    world = ill()
    async with opened(world, "doctor", WIDE) as (app, pilot):
        await until(pilot, lambda: "this node needs someone now" in flat(app))
        assert world.examined
        assert "slots: 1 failure " in flat(app)
        assert "host: 1 note" in flat(app)


async def test_the_finding_under_the_cursor_is_shown_whole() -> None:
    async with opened(ill(), "doctor", WIDE) as (app, pilot):
        await until(pilot, lambda: app.report is not None)
        await pilot.press("down", "down")
        await until(pilot, lambda: under_cursor(app) == FAILING.id)
        await pilot.pause()
        for part in (FAILING.message, FAILING.evidence[0], FAILING.hint, FAILING.link):
            assert part in flat(app), part


async def test_again_looks_again_and_keeps_the_cursor_on_its_finding() -> None:
    world = ill()
    async with opened(world, "doctor", WIDE) as (app, pilot):
        await until(pilot, lambda: app.report is not None)
        await pilot.press("down", "down")
        await until(pilot, lambda: under_cursor(app) == FAILING.id)
        await pilot.pause(0.1)
        before = world.examined
        worse = Finding(id="configuration.file", level=Level.FAIL, message="broken")
        world.report = report_of(worse, OK, FAILING, NOTE)
        await pilot.press("r")
        await until(pilot, lambda: app.report is world.report)
        await until(pilot, lambda: under_cursor(app) == FAILING.id)
        assert world.examined == before + 1


async def test_a_finding_that_is_gone_takes_its_detail_and_its_command_along() -> None:
    world = ill()
    async with opened(world, "doctor", WIDE) as (app, pilot):
        await until(pilot, lambda: app.report is not None)
        await pilot.press("down", "down")
        await until(pilot, lambda: "y Copy the command" in flat(app))
        world.report = report_of(OK, NOTE)
        await pilot.press("r")
        await until(pilot, lambda: app.report is world.report)
        await until(pilot, lambda: "Copy the command" not in flat(app))
        assert FAILING.message not in flat(app)


async def test_a_report_cut_short_says_so() -> None:
    cut = Report(findings=(FAILING,), complete=False, started_at=1, seconds=5.0, looked_as="uid 0", about="here")
    async with opened(ill(cut), "doctor", WIDE) as (app, pilot):
        await until(pilot, lambda: "(cut short)" in flat(app))


async def test_the_command_of_the_finding_is_copied_and_where_there_is_none_nothing_is() -> None:
    async with opened(ill(), "doctor", WIDE) as (app, pilot):
        await until(pilot, lambda: app.report is not None)
        await pilot.press("y")
        await pilot.pause()
        assert app.clipboard == ""
        assert "Copy the command" not in flat(app)
        await pilot.press("down", "down")
        await until(pilot, lambda: under_cursor(app) == FAILING.id)
        await until(pilot, lambda: "y Copy the command" in flat(app))
        await pilot.press("y")
        await until(pilot, lambda: "sent to the terminal" in flat(app))
        assert app.clipboard == "sudo bcd doctor --only slots"  # and no sentence


async def test_a_slow_look_blocks_no_key_and_is_not_started_twice() -> None:
    """C10: a check that hangs must not hang the console."""
    world, go_on, looks = ill(), threading.Event(), []

    def hang() -> Report:
        looks.append(1)
        go_on.wait(20)
        return REPORT

    app = ConsoleApp(**{**arguments(world), "examine": hang})  # type: ignore[arg-type]
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        await until(pilot, lambda: looks)
        begun = time.monotonic()
        await pilot.press("r", "r", "1")
        await pilot.pause()
        assert time.monotonic() - begun < 5
        assert "slot b" in flat(app)
        assert len(looks) == 1
        go_on.set()
        await until(pilot, lambda: app.report is REPORT)


def arguments(world: World) -> dict[str, object]:
    """What a console over `world` that opens at the doctor is made with."""
    made = world.app("doctor")
    names = ("read", "read_events", "examine", "clear", "judge", "journal")
    return {**{name: getattr(made, f"_{name}") for name in names}, "view": View(screen="doctor"), "signals": False}
