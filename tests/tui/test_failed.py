"""Failed versions: which, when, why; and clearing them only on purpose (field report C01)."""

import pytest
from rich.cells import cell_len
from textual.widgets import DataTable
from textual.widgets._footer import FooterKey

from bcd.core.errors import HostError, NotPermitted
from bcd.core.records import Failed
from bcd.core.text import Foreign
from bcd.tui.app import ConsoleApp
from bcd.tui.screens import confirm_clear
from bcd.tui.screens.confirm_clear import ConfirmClear
from tests.tui import states
from tests.tui.consoles import NARROW, WIDE, World, change, flat, lines_of, opened, text_of, until

TOO_EARLY_SECONDS = confirm_clear._TOO_EARLY_SECONDS


@pytest.fixture(autouse=True)
def read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question is read as soon as it is drawn, so that no test waits for its reader."""
    monkeypatch.setattr(confirm_clear, "_TOO_EARLY_SECONDS", 0)


def three() -> World:
    """1.4.1, 1.4.2 and 1.4.3 failed; the newest is the first row."""
    return World(
        states.with_failed(
            *(states.failed_entry(f"1.4.{n}", f"reason {n}", at=int(states.NOW) - 100 + n) for n in (1, 2, 3))
        )
    )


def under_cursor(app: ConsoleApp) -> str:
    """The version that the cursor is on."""
    table = app.screen.query_one(DataTable)
    return str(table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value)


def rows(app: ConsoleApp) -> list[str]:
    """The versions, from the top."""
    return [str(key.value) for key in app.screen.query_one(DataTable).rows]


def asking(app: ConsoleApp) -> bool:
    """Whether a confirmation is open."""
    return isinstance(app.screen, ConfirmClear)


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "200x50"])
async def test_each_is_shown_with_its_sequence_and_reason(size: tuple[int, int]) -> None:
    async with opened(World(states.rolled_back()), "failed", size) as (app, _):
        shown = flat(app)
        for part in ("1.4.1", "15", states.REASON, "Failed 1"):
            assert part in shown, part


async def test_none_failed() -> None:
    async with opened(World(states.at_rest()), "failed") as (app, pilot):
        assert "No version failed here." in text_of(app)
        await pilot.press("c", "C", "space", "enter")
        assert not asking(app)


async def test_what_may_not_be_read_is_not_none() -> None:
    """C13."""
    async with opened(World(states.records_unreadable()), "failed") as (app, _):
        assert "may not be read by this user: sudo bcd console" in text_of(app)
        assert "No version failed here." not in text_of(app)


async def test_the_question_names_the_version_and_what_follows_and_cancel_has_the_focus() -> None:
    async with opened(three(), "failed") as (app, pilot):
        await pilot.press("c")
        shown = flat(app)
        assert "Clear 1.4.3?" in shown
        assert "A rollout may then try 1.4.3 here again." in shown
        assert app.focused is not None
        assert app.focused.id == "cancel"


@pytest.mark.parametrize("keys", [["enter"], ["enter", "enter"], ["escape"], ["n"], ["escape", "y"]])
async def test_only_a_clear_yes_clears(keys: list[str]) -> None:
    """Enter, a double Enter and Escape change nothing, however long it was looked at."""
    world = three()
    async with opened(world, "failed") as (app, pilot):
        await pilot.press("c")
        await pilot.press(*keys)
        await pilot.pause(0.05)
        assert world.cleared == []
        assert not asking(app)


async def test_a_yes_typed_before_the_question_was_read_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.2 <= TOO_EARLY_SECONDS <= 1
    monkeypatch.setattr(confirm_clear, "_TOO_EARLY_SECONDS", 3600)
    world = three()
    async with opened(world, "failed") as (app, pilot):
        await pilot.press("c", "y")
        await pilot.pause(0.05)
        assert world.cleared == []
        assert asking(app)
        await pilot.press("right", "enter")  # the button is no way round it
        await pilot.pause(0.05)
        assert world.cleared == []


@pytest.mark.parametrize("keys", [["y"], ["tab", "enter"], ["right", "enter"], ["left", "enter"]])
async def test_a_yes_and_the_button_that_was_moved_to_clear(keys: list[str]) -> None:
    world = three()
    async with opened(world, "failed") as (app, pilot):
        await pilot.press("down", "c")
        await pilot.press(*keys)
        await until(pilot, lambda: world.cleared)
        assert world.cleared == [("1.4.2",)]
        await until(pilot, lambda: "cleared: 1.4.2" in flat(app))


async def test_escape_after_moving_to_the_button_clears_nothing() -> None:
    world = three()
    async with opened(world, "failed") as (_, pilot):
        await pilot.press("c")
        await pilot.press("tab", "escape")
        await pilot.pause(0.1)
        assert world.cleared == []


async def test_a_yes_twice_within_50_ms_clears_once() -> None:
    world = three()
    async with opened(world, "failed") as (_, pilot):
        await pilot.press("c")
        await pilot.press("y", "y", "enter")
        await until(pilot, lambda: world.cleared)
        await pilot.pause(0.1)
        assert world.cleared == [("1.4.3",)]


async def test_the_question_holds_its_version_while_the_list_changes_beneath() -> None:
    """The attack: another failure comes in while the operator reads, and takes the row that was asked about."""
    world = three()
    async with opened(world, "failed") as (app, pilot):
        await pilot.press("down", "c")
        newer = [states.failed_entry(f"1.5.{n}", at=int(states.NOW) + n) for n in range(3)]
        await change(pilot, world, states.with_failed(states.failed_entry("1.4.2"), *newer))
        assert "Clear 1.4.2?" in flat(app)
        await pilot.press("y")
        await until(pilot, lambda: world.cleared)
        assert world.cleared == [("1.4.2",)]


async def test_marks_clear_several_and_all_clears_all() -> None:
    world = three()
    async with opened(world, "failed") as (app, pilot):
        await pilot.press("space", "down", "down", "space", "up", "c")
        assert "Clear 2 versions?" in flat(app)
        assert "1.4.3, 1.4.1" in flat(app)
        await pilot.press("y")
        await until(pilot, lambda: world.cleared)
        await pilot.press("C")
        assert "Clear 3 versions?" in flat(app)
        await pilot.press("y")
        await until(pilot, lambda: len(world.cleared) == 2)
        assert [set(versions) for versions in world.cleared] == [{"1.4.1", "1.4.3"}, {"1.4.1", "1.4.2", "1.4.3"}]


async def test_a_mark_taken_away_and_a_mark_on_a_version_that_went_mark_nothing() -> None:
    world = three()
    async with opened(world, "failed") as (app, pilot):
        await pilot.press("space", "space", "down", "space")  # 1.4.2 is marked
        await change(pilot, world, states.with_failed(states.failed_entry("1.4.1"), states.failed_entry("1.4.3")))
        await pilot.press("c")
        assert "Clear 1.4.2" not in flat(app)
        assert "2 versions" not in flat(app)


async def test_all_32_are_named_before_they_are_cleared() -> None:
    world = World(states.many_failed())
    async with opened(world, "failed") as (app, pilot):
        assert len(rows(app)) == 32
        await pilot.press("C")
        assert "Clear 32 versions?" in flat(app)
        assert "Cancel" in text_of(app)
        await pilot.press("y")
        await until(pilot, lambda: world.cleared)
        assert len(world.cleared[0]) == 32


async def test_the_cursor_stays_on_its_version_whatever_comes_and_goes() -> None:
    """A row is its version, never its place."""
    world = World(states.many_failed())
    async with opened(world, "failed") as (app, pilot):
        await pilot.press(*["down"] * 5)
        assert under_cursor(app) == "1.5.26"
        update = [states.failed_entry(f"1.5.{n}", f"reason number {n}") for n in (3, 26, 27, 31)]
        await change(pilot, world, states.with_failed(*update))  # rows above and below it go
        assert (under_cursor(app), rows(app).index("1.5.26")) == ("1.5.26", 2)
        more = [states.failed_entry(f"1.7.{n}") for n in range(4)]
        await change(pilot, world, states.with_failed(*update, *more))  # newer ones come above it
        assert (under_cursor(app), rows(app).index("1.5.26")) == ("1.5.26", 6)
        assert "reason number 26" in flat(app)
        await pilot.press("c")
        assert "Clear 1.5.26?" in flat(app)


async def test_the_version_under_the_cursor_goes() -> None:
    world = three()
    async with opened(world, "failed") as (app, pilot):
        await pilot.press("down")
        await change(pilot, world, states.with_failed(states.failed_entry("1.4.1")))
        assert under_cursor(app) == "1.4.1"
        await change(pilot, world, states.at_rest())
        assert "No version failed here." in text_of(app)
        await pilot.press("c", "C", "space")
        assert not asking(app)


async def test_without_the_right_it_is_shown_disabled_with_the_reason_and_the_command() -> None:
    """C13."""
    world = World(states.clear_not_permitted())
    async with opened(world, "failed", WIDE) as (app, pilot):
        shown = flat(app)
        assert states.REFUSED in shown
        assert "c Clear" in shown
        await pilot.press("c", "C")
        assert not asking(app)
        assert app.screen.check_action("clear", ()) is None


async def test_the_right_comes_back_while_open() -> None:
    world = World(states.clear_not_permitted())
    async with opened(world, "failed") as (app, pilot):
        await pilot.press("c")
        assert not asking(app)
        await change(
            pilot, world, states.changed(states.rolled_back(), crash_loop_rollback=True, taken_at=states.NOW + 99)
        )
        assert states.REFUSED not in flat(app)
        await pilot.press("c")
        assert asking(app)


@pytest.mark.parametrize(
    "error", [NotPermitted("no", "not permitted"), HostError("io-error", "the [disk] \x1b[2J is full")]
)
async def test_a_clearing_that_fails_says_why_and_the_console_goes_on(error: NotPermitted | HostError) -> None:
    world = three()

    def clear(versions: tuple[str, ...]) -> tuple[Failed, ...]:
        raise error

    world.clear = clear
    async with opened(world, "failed", WIDE) as (app, pilot):
        await pilot.press("c")
        await pilot.press("y")
        await until(pilot, lambda: f"({error.code})" in flat(app))
        assert "\x1b" not in text_of(app)
        assert len(rows(app)) == 3


async def test_clearing_does_not_make_the_console_look_ever_more_often() -> None:
    world = three()
    looks = 0
    async with opened(world, "failed") as (app, pilot):
        for _ in range(4):
            await pilot.press("c")
            await pilot.press("y")
            await pilot.pause(0.05)
        await pilot.pause(0.3)
        read = app._read

        def counted() -> object:
            nonlocal looks
            looks += 1
            return read()

        app._read = counted  # type: ignore[assignment]
        await pilot.pause(2.1)
        assert looks <= 5  # every half second


@pytest.mark.parametrize("size", [(40, 12), (80, 24)], ids=["40x12", "80x24"])
async def test_32_versions_with_long_reasons_can_all_be_reached(size: tuple[int, int]) -> None:
    """The cursor holds its version while the list moves under it, and the last row can be seen."""
    entries = [states.failed_entry(f"1.5.{n}", f"{n}: {states.LONG}", at=int(states.NOW) + n) for n in range(32)]
    world = World(states.with_failed(*entries))
    async with opened(world, "failed", size) as (app, pilot):
        await pilot.press("end")
        await pilot.pause()
        assert "1.5.0" in text_of(app)
        assert "0: the gateway said no" in flat(app)
        await pilot.press("up", "up")
        assert "2: the gateway said no" in flat(app)
        newer = states.failed_entry("1.6.0", "new", at=int(states.NOW) + 99)
        await change(pilot, world, states.with_failed(*entries[1:], newer))
        assert "2: the gateway said no" in flat(app)
        await pilot.press("home")
        await pilot.pause()
        assert "1.6.0" in text_of(app)
        assert all(cell_len(line) == size[0] for line in lines_of(app))


async def test_wide_and_combining_text_keeps_every_line_as_wide_as_the_screen() -> None:
    words = (states.WIDE, states.COMBINING, "a\u200bb\u200d", "\U0001f468\u200d\U0001f469")
    entries = [states.failed_entry(f"1.5.{n}", text * 3) for n, text in enumerate(words)]
    events = tuple({"at": n, "event": "refused", "reason": Foreign(text)} for n, text in enumerate(words))
    async with opened(World(states.with_failed(*entries), events=events), "failed") as (app, pilot):
        for name in ("failed", "history", "config", "overview"):
            await app.switch_mode(name)
            await pilot.pause()
            assert {cell_len(line) for line in lines_of(app)} == {80}, name


async def test_the_footer_offers_clearing_as_soon_as_there_is_something_to_clear_and_the_right_to() -> None:
    world = World(states.at_rest())

    def offered(app: ConsoleApp) -> list[bool]:
        return [not key.has_class("-disabled") for key in app.screen.query(FooterKey) if key.key in "cC"]

    async with opened(world, "failed") as (app, pilot):
        await until(pilot, lambda: offered(app) == [False, False])
        await change(pilot, world, states.rolled_back())
        await until(pilot, lambda: offered(app) == [True, True])
        await change(pilot, world, states.clear_not_permitted())
        await until(pilot, lambda: offered(app) == [False, False])
