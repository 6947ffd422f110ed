"""The history: newest first, filtered as it is typed."""

from textual.widgets import DataTable, Input

from bcd.core.records import Json
from tests.tui import states
from tests.tui.consoles import WIDE, World, flat, opened, until

EVENTS: tuple[Json, ...] = (
    {"at": int(states.NOW), "event": "rolled-back", "version": "1.4.1", "way": "deadline", "reason": states.REASON},
    {"at": int(states.NOW) - 120, "event": "swapped", "version": "1.4.1", "slot": "a", "sequence": 15},
    {"at": int(states.NOW) - 9000, "event": "confirmed", "version": "1.4.0", "sequence": 14},
    {"at": int(states.NOW) - 9999, "event": "cleared", "versions": "1.3.9"},
)


async def test_every_event_is_told_with_its_version_and_more() -> None:
    async with opened(World(states.at_rest(), events=EVENTS), "history", WIDE) as (app, _):
        shown = flat(app)
        for part in (
            "rolled-back",
            "1.4.1",
            "way deadline",
            states.REASON,
            "sequence 15; slot a",
            "confirmed",
            "1.3.9",
        ):
            assert part in shown, part
        assert shown.index("rolled-back") < shown.index("swapped") < shown.index("confirmed")


async def test_nothing_happened() -> None:
    async with opened(World(states.never_updated()), "history") as (app, pilot):
        assert "Nothing happened here yet." in flat(app)
        await pilot.press("1")
        await pilot.pause()
        assert "slot b" in flat(app)


async def test_keys_are_not_swallowed_by_the_hidden_field() -> None:
    async with opened(World(states.at_rest(), events=EVENTS), "history") as (app, pilot):
        await pilot.press("x")
        await pilot.pause()
        assert app.screen.query_one(Input).value == ""
        await pilot.press("q")
        await pilot.pause()
    assert app.return_code == 0


async def test_a_filter_is_typed_kept_and_taken_away() -> None:
    async with opened(World(states.at_rest(), events=EVENTS), "history", WIDE) as (app, pilot):
        table = app.screen.query_one(DataTable)
        await pilot.press("slash", *"SWAP")
        await until(pilot, lambda: table.row_count == 1)
        await pilot.press("enter")
        await pilot.pause()
        assert app.focused is table
        assert table.row_count == 1
        await pilot.press("escape")
        await until(pilot, lambda: table.row_count == 4)
        assert not app.screen.query_one(Input).display


async def test_a_filter_that_nothing_passes_and_back() -> None:
    async with opened(World(states.at_rest(), events=EVENTS), "history", WIDE) as (app, pilot):
        table = app.screen.query_one(DataTable)
        await pilot.press("slash", *"zzz")
        await until(pilot, lambda: table.row_count == 0)
        await pilot.press("backspace", "backspace", "backspace")
        await until(pilot, lambda: table.row_count == 4)
        assert table.display


async def test_what_happens_while_it_is_open_comes_by_itself_and_through_the_filter() -> None:
    world = World(states.at_rest(), events=EVENTS[1:])
    async with opened(world, "history", WIDE) as (app, pilot):
        table = app.screen.query_one(DataTable)
        await pilot.press("slash", *"1.4.1")
        await until(pilot, lambda: table.row_count == 1)
        world.events = EVENTS
        await until(pilot, lambda: table.row_count == 2)
