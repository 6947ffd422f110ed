"""Screens that nobody sees: nothing is drawn for them, and they are right when they are seen again."""

import pytest
from textual.widgets import DataTable

from bcd.tui.app import ConsoleApp
from bcd.tui.screens.base import ConsoleScreen
from bcd.tui.screens.failed import FailedScreen
from bcd.tui.screens.history import HistoryScreen
from bcd.tui.snapshot import Snapshot
from tests.tui import states
from tests.tui.consoles import World, change, opened, text_of, until


def drawn(app: ConsoleApp, place: type[FailedScreen] | type[HistoryScreen]) -> int:
    """Rows in a screen's table, seen or not."""
    screen = next(stack[0] for stack in app._screen_stacks.values() if stack and isinstance(stack[0], place))
    return screen.query_one(DataTable).row_count


async def test_a_screen_behind_another_is_not_drawn_and_catches_up_when_it_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node that fails once a second must not have eight screens drawn for it."""
    taken: list[Snapshot] = []
    take = FailedScreen.take

    def noted(screen: FailedScreen, snapshot: Snapshot) -> None:
        taken.append(snapshot)
        take(screen, snapshot)

    monkeypatch.setattr(FailedScreen, "take", noted)
    world = World(states.at_rest())
    async with opened(world, "failed") as (app, pilot):
        await pilot.press("1")
        await until(pilot, lambda: app.current_mode == "overview")
        before = len(taken)
        for count in (1, 2, 3):
            await change(pilot, world, states.many_failed(count))
        assert (len(taken) - before, drawn(app, FailedScreen)) == (0, 0)
        await pilot.press("2")
        await until(pilot, lambda: drawn(app, FailedScreen) == 3)
        await pilot.pause()
        assert "1.5.2" in text_of(app)
        await pilot.press("1", "2", "1", "2")
        await pilot.pause()
        assert len(taken) - before == 1  # seen again, with nothing new


@pytest.mark.parametrize("place", [*ConsoleApp.MODES])
async def test_a_screen_that_is_seen_draws_a_change_once(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual calls `on_mount` of every class: what a class follows by its parent's too must not be followed twice."""
    taken: list[Snapshot] = []
    world = World(states.at_rest())
    async with opened(world, place) as (app, pilot):
        assert isinstance(app.screen, ConsoleScreen)
        monkeypatch.setattr(app.screen, "take", taken.append)
        await change(pilot, world, states.many_failed(1))
        assert len(taken) == 1


async def test_the_history_takes_only_the_newest_when_it_is_seen_again() -> None:
    world = World(states.at_rest())
    async with opened(world, "history") as (app, pilot):
        await pilot.press("1")
        await until(pilot, lambda: app.current_mode == "overview")
        world.events = tuple({"at": n, "event": "refused", "version": f"1.4.{n}"} for n in range(7))
        await until(pilot, lambda: len(app.events) == 7)
        assert drawn(app, HistoryScreen) == 0
        await pilot.press("5")
        await until(pilot, lambda: drawn(app, HistoryScreen) == 7)


async def test_a_question_over_a_screen_stops_no_countdown_behind_it() -> None:
    world = World(states.pending(90.0))
    async with opened(world, "failed") as (app, pilot):
        await pilot.press("question_mark")
        await pilot.pause()
        await change(pilot, world, states.pending(42.0))
        await until(pilot, lambda: "42" in text_of(app))
