"""How the console is used: help, footer and palette from the real bindings, toasts, starting anew, the log's tail."""

import pytest
from textual.binding import Binding
from textual.widgets import Footer, Input
from textual.widgets._footer import FooterKey

from bcd.commands import console as command
from bcd.commands.console import Asked, anew
from bcd.commands.root import run_click
from bcd.core.exits import ExitStatus
from bcd.tui.app import ConsoleApp
from bcd.tui.journal import LogFile
from bcd.tui.keys import rows_of
from bcd.tui.palette import commands_of
from bcd.tui.places import screen_class
from bcd.tui.view import View
from tests.tui import states
from tests.tui.consoles import World, change, flat, opened, until

PLACES = list(ConsoleApp.MODES)
EVENTS = tuple({"at": 1_700_000_000 + n, "event": "refused", "version": f"1.4.{n}"} for n in range(9))


@pytest.mark.parametrize("place", PLACES)
async def test_help_footer_and_keys_agree(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(World(states.rolled_back()), place) as (app, pilot):
        await pilot.pause()
        rows = rows_of(app, app.screen.active_bindings.values())
        listed = {row.action: row.what for row in rows}
        footer = {key.action: key.description for key in app.screen.query(FooterKey)}
        assert footer
        assert footer.items() <= listed.items()
        done: list[str] = []

        async def note(action: str, *_: object, **__: object) -> bool:
            done.append(action)
            return True

        monkeypatch.setattr(app, "run_action", note)
        for row in rows:
            for key in row.keys:
                done.clear()
                await pilot.press(key)
                assert done == [row.action], key


async def test_the_footer_follows_the_focus() -> None:
    async with opened(World(states.at_rest(), events=EVENTS), "history") as (app, pilot):
        await pilot.press("slash")
        await pilot.pause(0.1)
        shown = {key.description: key.key for key in app.screen.query(FooterKey)}
        assert isinstance(app.focused, Input)
        assert shown["No filter"] == "escape"
        assert shown["Help"] == "f1"
        assert "Filter" not in shown  # a slash is typed into the field now
        await pilot.press("escape")
        await pilot.pause(0.1)
        assert "Filter" in {key.description for key in app.screen.query(FooterKey)}


async def test_the_palette_holds_every_action_of_every_screen() -> None:
    async with opened(World(states.rolled_back())) as (app, pilot):
        names = {each.name for each in commands_of(app)}
        for place in ConsoleApp.MODES:
            assert f"Go to {place.capitalize()}" in names
            for binding in screen_class(place).BINDINGS:
                assert isinstance(binding, Binding)
                if not binding.action.startswith("app."):
                    assert f"{place.capitalize()}: {binding.description}" in names
        assert {"Quit", "Help", "Evidence", "Start anew"} <= names
        run = next(each.run for each in commands_of(app) if each.name == "Failed: Clear")
        await run()  # type: ignore[misc]
        await until(pilot, lambda: "Clear 1.4.1?" in flat(app))
        assert app.current_mode == "failed"


async def test_what_changed_elsewhere_is_told_once_with_the_key_to_look() -> None:
    world = World(states.at_rest())
    async with opened(world, "config", (120, 40)) as (app, pilot):
        await change(pilot, world, states.pending())
        await change(pilot, world, states.changed(states.pending(80.0), taken_at=states.NOW + 8))
        said = [each.message for each in app._notifications]
        assert len([text for text in said if "waits for its welcome" in text and "(1: look)" in text]) == 1
        assert len([text for text in said if "1.4.1 failed here" in text and "(2: look)" in text]) == 1


async def test_a_node_that_fails_over_and_over_does_not_cover_the_screen() -> None:
    world = World(states.at_rest())
    async with opened(world, "config", (120, 40)) as (app, pilot):
        app._keep_looking = lambda: None  # type: ignore[method-assign]
        for number in range(30):
            app._take(states.with_failed(states.failed_entry(f"1.5.{number}")), ())
            await pilot.pause()
            assert len(app._notifications) <= 5
        assert len(app._notifications) == 5


async def test_what_the_visible_screen_shows_is_not_told() -> None:
    world = World(states.at_rest())
    async with opened(world) as (app, pilot):
        await change(pilot, world, states.pending())
        assert not list(app._notifications)


async def test_starting_anew_keeps_the_place_all_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(states.changed(states.at_rest(), running_slot_moved=True), events=EVENTS)
    async with opened(world, "history") as (app, pilot):
        await pilot.press(
            "slash", *"-1.4", "backspace", "backspace", "backspace", "backspace", *"1.4", "enter", "j", "j"
        )
        await pilot.pause()
        await pilot.press("N")
        await pilot.pause()
    left = app.start_anew_at
    assert left is not None
    assert (left.filter, "1.4.2" in left.cursor) == ("1.4", True)
    asked = Asked(config_path="/etc/x.toml", theme="light", read_only=True, mouse=True, log="/l", color="never")
    parsed: list[Asked] = []

    def take(given: Asked) -> ExitStatus:
        parsed.append(given)
        return ExitStatus.OK

    monkeypatch.setattr(command, "run_console", take)
    monkeypatch.setenv("NO_COLOR", "1")
    # Through the one root there is: click keeps a command's help option as the first context made it.
    run_click(anew(asked, left, "bcd-light"))
    assert parsed[0].view == left
    assert (parsed[0].read_only, parsed[0].mouse, parsed[0].log, parsed[0].color) == (True, True, "/l", "never")
    app = World(world.snapshot, events=EVENTS).app(view=parsed[0].view)
    async with app.run_test() as pilot:
        await pilot.pause(0.2)
        screen = app.screen
        assert getattr(screen, "view", None) == left


async def test_starting_anew_is_not_offered_to_the_console_that_runs_the_current_binary() -> None:
    async with opened(World(states.at_rest())) as (app, pilot):
        await pilot.press("N")
        await pilot.pause()
        assert app.start_anew_at is None


def test_a_view_with_controls_makes_arguments_that_an_exec_takes() -> None:
    given = anew(Asked(config_path="/c"), View(screen="history", filter="--x\0\ud800", cursor="\x1b"), "bcd-dark")
    assert all(part.encode().isascii() and "\0" not in part for part in given)


async def test_a_node_that_never_updated_shows_no_version_that_is_not_known() -> None:
    """The console's own build is another file than the one that runs."""
    silent = states.changed(states.never_updated(), agent=states.agent(version=None))  # an agent from before it told
    async with opened(World(silent)) as (app, _):
        assert "what runs is not known, no slot in use" in flat(app)
        assert "1.4.0" not in flat(app)
    told = states.changed(states.never_updated(), agent=states.agent(version="1.3.9"))
    async with opened(World(told)) as (app, _):
        assert "1.3.9 runs, no slot in use" in flat(app)


async def test_opening_at_the_doctor_runs_the_checks_once() -> None:
    world = World(states.at_rest())
    async with opened(world, "doctor") as (_, pilot):
        await pilot.pause(0.3)
    assert world.examined == 1


def test_a_half_written_last_line_is_one_line(tmp_path: object) -> None:
    path = f"{tmp_path}/log"
    with open(path, "w", encoding="utf-8") as file:
        file.write("one\nhal")
        file.flush()
        lines = LogFile(path, pause_seconds=0.01).follow()
        assert next(lines) == ["one"]
        file.write("f\n")
        file.flush()
        assert next(lines) == ["half"]


async def test_keys_that_came_and_went_are_let_go_of() -> None:
    """Textual's footer keeps each key that it ever drew."""
    async with opened(World(states.at_rest()), "failed") as (app, pilot):
        footer = app.screen.query_one(Footer)
        for _ in range(20):
            app.refresh_bindings()
            await pilot.pause()
            await pilot.pause()
        watching = [watcher for each in getattr(footer, "__watchers", {}).values() for watcher, _ in each]
        assert len(watching) <= 3 * len(footer.query(FooterKey))
