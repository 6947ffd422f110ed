"""The keys that people know, and no mouse unless it is asked for."""

import pytest
from textual.command import CommandPalette

from bcd.tui.app import ConsoleApp
from bcd.tui.screens.help import HelpScreen
from tests.tui import states
from tests.tui.consoles import World, flat, opened, until

PLACES = [(str(number), name) for number, name in enumerate(ConsoleApp.MODES, start=1)]


@pytest.mark.parametrize("start_at", ["overview", "check"])
async def test_every_digit_leads_to_its_screen_from_every_other(start_at: str) -> None:
    async with opened(World(states.rolled_back()), start_at) as (app, pilot):
        assert app.current_mode == start_at
        for key, name in PLACES:
            await pilot.press(key)
            await until(pilot, lambda name=name: app.current_mode == name)  # type: ignore[misc]
            await pilot.pause()
            assert f"{key} {name.capitalize()}" in flat(app)


@pytest.mark.parametrize("start_at", list(ConsoleApp.MODES))
async def test_q_quits_from_every_screen(start_at: str) -> None:
    async with opened(World(states.rolled_back()), start_at) as (app, pilot):
        await pilot.press("q")
        await pilot.pause()
        assert app._exit
    assert app.return_code == 0


async def test_q_while_a_question_is_open_clears_nothing() -> None:
    world = World(states.rolled_back())
    async with opened(world, "failed") as (_, pilot):
        await pilot.press("c", "q")
        await pilot.pause()
    assert world.cleared == []


async def test_digits_while_a_question_is_open_clear_nothing() -> None:
    world = World(states.rolled_back())
    async with opened(world, "failed") as (app, pilot):
        await pilot.press("c", *"1234567")
        await pilot.pause()
        assert world.cleared == []
        assert app.is_running


async def test_the_question_mark_opens_the_help_with_the_real_bindings() -> None:
    async with opened(World(states.rolled_back()), "failed", (120, 40)) as (app, pilot):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await until(pilot, lambda: "Clear all" in flat(app))


async def test_the_colon_opens_the_commands_and_escape_closes_them() -> None:
    async with opened(World(states.rolled_back())) as (app, pilot):
        await pilot.press("colon")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, CommandPalette))


async def test_ctrl_c_quits() -> None:
    """Textual's own only says how: operators press it."""
    async with opened(World(states.pending())) as (app, pilot):
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert app._exit
    assert app.return_code == 0
