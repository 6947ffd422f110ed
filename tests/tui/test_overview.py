"""The overview: what runs, from which slot, where the update is, how long it has, what failed and why."""

import asyncio

import pytest

from bcd.tui.app import ConsoleApp
from tests.tui import states
from tests.tui.consoles import NARROW, WIDE, World, change, flat, lines_of, opened, text_of

SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "200x50"])


@SIZES
async def test_the_first_frame_of_a_pending_update_says_everything(size: tuple[int, int]) -> None:
    async with opened(World(states.pending()), size=size) as (app, _):
        shown = flat(app)
        for part in (
            "bcd 1.4.2",
            "slot a",
            "current: bcd runs from here",
            "◉ waiting",
            "87 s",
            "failed here: 1.4.1",
            states.REASON,
            "gateway refused: not today",
            "if welcomed",
            "swaps back to 1.4.0",
        ):
            assert part in shown, part


SAID = {
    "never-updated": ("no update has run here yet", "empty"),
    "at-rest": ("1.4.0 was welcomed and is confirmed", "written 2 days ago", "floor 14"),
    "downloading": ("◉ downloading", "50%", "16.3 MiB of 32.6 MiB", "2.0 MiB/s", "8 s to go"),
    "pending": ("87 s left to be welcomed",),
    "overdue": ("14 s overdue, not swapped back yet", "no agent answers"),
    "swapped-back": ("swapped back", "bcd 1.4.0", "settled at the agent's next start"),
    "current-malformed": ("current",),
    "rolled-back": ("the last update failed", "failed here: 1.4.1", states.REASON),
    "many-failed": ("failed here: 1.5.31",),
    "odd-failed": ("failed here: 1.6.",),
    "config-broken": (f"{states.CONFIG_PATH}: [update] relase_pins is no key", "did you mean release_pins?"),
    "records-unreadable": ("unreadable: /var/lib/bcd/update/update.json (this user may not read it)",),
    "record-broken": ("the update record is corrupt", "moved aside: /var/lib/bcd/update/update.json.broken-1"),
    "old-binary": ("old binary",),
    "agent-down": ("no agent answers", "bcd 1.4.0"),
    "clear-not-permitted": ("failed here: 1.4.1",),
}


@SIZES
@pytest.mark.parametrize("name", list(states.EVERY))
async def test_every_state_says_what_it_is(name: str, size: tuple[int, int]) -> None:
    async with opened(World(states.EVERY[name]()), size=size) as (app, _):
        shown = flat(app)
        for part in SAID[name]:
            assert part in shown, part


async def test_the_links_move_when_the_update_swaps() -> None:
    """At rest, downloading, pending, confirmed: the console follows by itself, without a key."""
    world = World(states.at_rest())
    async with opened(world) as (app, pilot):
        assert app.screen.query_one("#slot-b").has_class("-current")
        await change(pilot, world, states.downloading())
        assert "◉ downloading" in text_of(app)
        await change(pilot, world, states.pending())
        assert app.screen.query_one("#slot-a").has_class("-current")
        assert app.screen.query_one("#slot-b").has_class("-previous")
        assert "waits for its welcome" in text_of(app)
        assert "87 s" in text_of(app)
        await change(pilot, world, states.pending(12.2))
        assert "12 s" in text_of(app)
        await change(pilot, world, states.at_rest())
        assert "left to be welcomed" not in text_of(app)
        assert "if welcomed" not in text_of(app)


async def test_a_configuration_that_breaks_and_mends_while_open() -> None:
    world = World(states.pending())
    async with opened(world) as (app, pilot):
        await change(pilot, world, states.config_broken())
        assert "relase_pins" in text_of(app)
        assert "87 s" not in text_of(app)
        await change(pilot, world, states.pending(50.0))
        assert "50 s" in text_of(app)
        assert "relase_pins" not in text_of(app)


@pytest.mark.slow
@pytest.mark.parametrize(
    "order", [tuple(states.EVERY.values()), tuple(reversed(states.EVERY.values()))], ids=["there", "back"]
)
async def test_every_state_after_another_on_every_screen(order: tuple[states.Make, ...]) -> None:
    """No order of states leaves a screen that raises."""
    world = World(states.at_rest())
    async with opened(world) as (app, pilot):
        for name in app.MODES:
            await app.switch_mode(name)
            for make in order:
                app.snapshot = make()
                await pilot.pause()
                assert "bcd" in text_of(app)


async def test_the_two_clocks_say_so_when_they_part() -> None:
    async with opened(World(states.pending(87.5, wall=-3000.0)), size=(100, 24)) as (app, _):
        assert "87 s  left" in text_of(app)
        assert "the wall clock was stepped and says -3000 s" in text_of(app)
    async with opened(World(states.pending(60.0, same_boot=False)), size=(100, 24)) as (app, _):
        assert "wall clock: it was swapped in before this boot" in text_of(app)


async def test_a_console_that_runs_the_old_binary_says_so() -> None:
    async with opened(World(states.changed(states.at_rest(), running_slot_moved=True)), size=WIDE) as (app, _):
        assert "this console runs the old binary" in text_of(app)


@pytest.mark.parametrize(
    "live",
    [
        {},
        {"phase": 7, "session": "up", "target": None},
        {"phase": "downloading", "target": "1.4.2", "bytes_done": 5, "bytes_total": 0, "rate": 1.0},
        {"phase": "downloading", "target": "1.4.2", "bytes_done": 10**30, "bytes_total": 1, "rate": float("nan")},
        {"phase": "downloading", "target": "1.4.2", "bytes_done": -5, "bytes_total": 10, "rate": float("inf")},
        {"phase": "downloading", "target": "1.4.2", "bytes_done": 1, "bytes_total": 10**400, "rate": 1e-300},
        {"phase": "downloading", "target": "1.4.2", "bytes_done": True, "bytes_total": True, "rate": 10**400},
    ],
)
async def test_an_agent_that_talks_nonsense_is_shown_and_crashes_nothing(live: dict[str, object]) -> None:
    async with opened(World(states.changed(states.at_rest(), agent=live))) as (app, _):
        assert "bcd 1.4.0" in text_of(app)


@pytest.mark.parametrize("name", ["pending", "odd-failed", "config-broken"])
async def test_a_storm_of_sizes_raises_nothing_and_comes_back(name: str) -> None:
    """C04: 80x24, 30x8, 1x1 and back: the same screen."""
    async with opened(World(states.EVERY[name]())) as (app, pilot):
        before = lines_of(app)
        for size in [(30, 8), (1, 1), (200, 50), (2, 100), (40, 12), (80, 1), NARROW]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            lines_of(app)
        await asyncio.sleep(0.1)  # a resize is drawn by a timer
        await pilot.pause()
        assert lines_of(app) == before


async def test_q_quits_at_a_size_that_shows_next_to_nothing() -> None:
    """C04."""
    async with opened(World(states.pending()), size=(30, 8)) as (app, pilot):
        assert "1.4.2" in text_of(app)
        await pilot.press("q")
        await pilot.pause()
    assert app.return_code == 0


async def test_a_reading_that_breaks_ends_the_console_rather_than_freezing_it() -> None:
    """A countdown that stands still on a screen that looks alive is the worst that could be shown."""
    app = World(states.pending()).app()
    with pytest.raises(ZeroDivisionError):  # the test's driver hands it on; a terminal's gets status 1
        await _break_its_reading(app)
    assert app.return_code == 1


async def _break_its_reading(app: ConsoleApp) -> None:
    async with app.run_test() as pilot:
        await pilot.pause()
        app._read = lambda: 1 // 0  # type: ignore[assignment, return-value]
        await pilot.pause(2.0)
