"""The Lab screen over a lab of values: what it asks for, what it says, what it refuses, and that it waits for nothing."""

from dataclasses import replace

from bcd.lab.desk import ACTS
from bcd.tui import lab_port
from tests.tui import states
from tests.tui.consoles import NARROW, WIDE, World, flat, lines_of, opened, until
from tests.tui.fake_lab import AT_REST, FakeLab


def world_of(lab: FakeLab, *, read_only: bool = False) -> World:
    world = World(states.rolled_back())
    world.lab, world.read_only = lab, read_only
    return world


def test_the_acts_that_have_keys_are_acts_of_the_lab() -> None:
    keyed = {value for name, value in vars(lab_port).items() if name.isupper() and isinstance(value, str)}
    assert len(keyed) == 6
    assert keyed <= {act.name for act in ACTS}


def test_every_act_says_what_happens_and_what_to_watch_in_a_sentence() -> None:
    for act in ACTS:
        assert act.happens.endswith("."), act
        assert act.watch.endswith("."), act
    assert len({act.name for act in ACTS}) == len(ACTS)


async def test_the_screen_and_its_digit_are_there_only_with_a_lab() -> None:
    async with opened(World(states.rolled_back())) as (app, pilot):
        await pilot.press("8")
        await pilot.pause()
        assert app.current_mode == "overview"
        assert "Lab" not in flat(app)
    async with opened(world_of(FakeLab())) as (app, pilot):
        assert "8 Lab" in flat(app)
        await pilot.press("8")
        await until(pilot, lambda: app.current_mode == "lab")
        await pilot.press("1")
        await until(pilot, lambda: app.current_mode == "overview")


async def test_enter_pushes_what_is_under_the_cursor_and_the_screen_says_what_comes_of_it() -> None:
    lab = FakeLab()
    async with opened(world_of(lab), "lab") as (app, pilot):
        await until(pilot, lambda: "runs and is confirmed" in flat(app))
        await pilot.press("enter")
        await until(pilot, lambda: lab.done == ["good"])
        await pilot.press("j", "down", "j", "enter")  # over a heading
        await until(pilot, lambda: lab.done == ["good", "exits-at-once"])
        assert "is swapped back at the start" in flat(app)


async def test_the_keys_cut_and_mend_and_the_footer_says_which() -> None:
    lab = FakeLab()
    async with opened(world_of(lab), "lab", WIDE) as (app, pilot):
        await until(pilot, lambda: "g Cut gateway" in flat(app))
        await pilot.press("g", "x", "s", "t")
        wanted = {"cut-gateway", "kill-agent", "restart-agent", "clock-hour"}
        await until(pilot, lambda: set(lab.done) == wanted)  # threads: in whichever order
        lab.now = replace(AT_REST, gateway_cut=True, clock_ahead_seconds=3600, next_download="too long")
        await until(pilot, lambda: "g Mend gateway" in flat(app))
        for said in ("gateway cut", "next download: too long", "node's clock 1 hour ahead", "t Clock true"):
            assert said in flat(app)
        await pilot.press("g")
        await until(pilot, lambda: "mend-gateway" in lab.done)


async def test_an_act_that_blocks_holds_up_nothing_and_a_refusal_is_a_sentence() -> None:
    lab = FakeLab()
    lab.free.clear()
    async with opened(world_of(lab), "lab") as (app, pilot):
        await pilot.press("enter")
        await pilot.press("1")
        await until(pilot, lambda: app.current_mode == "overview")
        assert lab.done == []
        lab.free.set()
        await until(pilot, lambda: lab.done == ["good"])
        await pilot.press("8")
        app.screen._do("again")  # type: ignore[attr-defined]
        await until(pilot, lambda: len(app._notifications) == 1)
        (toast,) = app._notifications
        assert toast.message.startswith("nothing was pushed [/yet] (nothing-pushed)")


async def test_read_only_shows_the_lab_and_does_nothing_to_it() -> None:
    lab = FakeLab()
    async with opened(world_of(lab, read_only=True), "lab") as (app, pilot):
        await until(pilot, lambda: "read-only" in flat(app))
        await pilot.press("enter", "g", "x", "s", "t")
        await pilot.pause(0.2)
        assert lab.done == []


async def test_the_journal_is_followed_and_brackets_in_it_are_text() -> None:
    lab = FakeLab()
    lab.tell("gateway", "1.4.1 is welcomed [/b]")
    async with opened(world_of(lab), "lab") as (app, pilot):
        await until(pilot, lambda: "1.4.1 is welcomed [/b]" in flat(app))
        lab.tell("supervisor", "start 2 of the entrypoint")
        await until(pilot, lambda: "start 2 of the entrypoint" in flat(app))


async def test_n_does_not_start_a_program_of_a_lab_that_ends_with_this_console() -> None:
    world = world_of(FakeLab())
    world.snapshot = replace(world.snapshot, running_slot_moved=True)
    async with opened(world, "lab") as (app, pilot):
        await pilot.press("N")
        await pilot.pause()
        assert app.start_anew_at is None
        assert app.is_running


async def test_the_deadline_and_the_slots_are_read_at_every_size() -> None:
    for size in (NARROW, WIDE, (40, 12)):
        world = world_of(FakeLab())
        world.snapshot = states.pending()
        async with opened(world, "lab", size) as (app, pilot):
            await until(pilot, lambda app=app: "87 s left" in flat(app))  # type: ignore[misc]
            assert "good" in flat(app)
            if size != (40, 12):
                assert "current ▶ slot" in flat(app)
            assert all(len(line) <= size[0] for line in lines_of(app))
