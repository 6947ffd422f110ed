"""Small terminals: what runs and the deadline are never folded away, on whatever screen."""

import pytest

from bcd.tui.app import ConsoleApp
from tests.tui import states
from tests.tui.consoles import World, flat, lines_of, opened
from tests.tui.pictures import EVENTS, REPORT


@pytest.mark.parametrize("size", [(40, 12), pytest.param((30, 8), marks=pytest.mark.slow)], ids=["40x12", "30x8"])
@pytest.mark.parametrize(
    ("make", "said"),
    [(states.pending, "87 s left to be welcomed"), (states.overdue, "14 s overdue")],
    ids=["pending", "overdue"],
)
async def test_what_runs_and_the_deadline(make: states.Make, said: str, size: tuple[int, int]) -> None:
    async with opened(World(make(), events=EVENTS, report=REPORT), size=size) as (app, pilot):
        for name in ConsoleApp.MODES:
            await app.switch_mode(name)
            await pilot.pause()
            await pilot.pause()
            shown = flat(app)
            assert "1.4.2" in lines_of(app)[0], name
            assert said in shown, name
            if name == "failed":
                assert "1.4.1" in shown
            if name == "history":
                assert "2026-" in shown


async def test_the_deadline_stays_while_a_question_is_open() -> None:
    async with opened(World(states.pending()), "failed") as (app, pilot):
        await pilot.press("c")
        await pilot.pause()
        assert "Clear 1.4.1?" in flat(app)
        assert "87 s left to be welcomed" in flat(app)


async def test_the_deadline_takes_no_line_where_nothing_is_pending() -> None:
    async with opened(World(states.at_rest()), "failed") as (app, _):
        assert "No version failed here." in "".join(lines_of(app)[2:4])


@pytest.mark.parametrize("width", [64, 70, 80])
async def test_the_old_binary_is_told_however_narrow(width: int) -> None:
    async with opened(World(states.changed(states.pending(), running_slot_moved=True)), size=(width, 24)) as (app, _):
        assert "old binary" in lines_of(app)[0]
        assert "1 Overview" in lines_of(app)[1]
