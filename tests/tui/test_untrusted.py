"""Text from outside is shown literally everywhere, and never acts on the terminal (field reports C05, C06)."""

import json
import unicodedata
from collections.abc import Sequence

import pytest
from rich.text import Text
from textual.widgets import Input

from bcd.core.config import Config, HelperConfig, NodeConfig, UpdateConfig
from bcd.core.errors import HostError, UsageError
from bcd.core.layout import layout_of
from bcd.core.records import Failed, Json
from bcd.core.status import Problem
from bcd.core.text import Foreign, raw
from bcd.doctor.finding import Finding, Level
from bcd.tui.app import ConsoleApp
from bcd.tui.screens import confirm_clear
from bcd.tui.snapshot import Snapshot
from tests.tui import states
from tests.tui.consoles import WIDE, World, flat, lines_of, opened, report_of, until

NASTY = (
    " ".join(states.BRACKETS),
    " ".join(states.CONTROLS),
    f"{states.WIDE} {states.COMBINING}",
    "\ud800",
    "",
    "x" * 10_000,
)
NAMES = ("overview", "failed", "doctor", "check", "history", "journal", "config")


def some(texts: Sequence[str], count: int) -> list[object]:
    """All of them, of which only the first `count` are tried every day."""
    return [*texts[:count], *(pytest.param(text, marks=pytest.mark.slow) for text in texts[count:])]


@pytest.fixture(autouse=True)
def read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question is read as soon as it is drawn."""
    monkeypatch.setattr(confirm_clear, "_TOO_EARLY_SECONDS", 0)


def assert_harmless(app: ConsoleApp) -> None:
    """Nothing on the screen or in its picture acts on a terminal or turns its text around."""
    seen = "".join(lines_of(app))
    acting = {c for c in seen if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\n"}
    assert not acting, [hex(ord(c)) for c in acting]


def assert_picture_harmless(app: ConsoleApp) -> None:
    """Neither does its SVG."""
    assert not {c for c in app.export_screenshot() if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\n"}


def everything_is(text: str) -> Snapshot:
    """A node all of whose texts from outside are `text`."""
    foreign = Foreign(text)
    pending = states.pending().status
    assert pending is not None
    assert pending.pending.value is not None
    assert pending.slots.value is not None
    update = UpdateConfig(
        release_pins=states.PINS, entrypoint=f"/usr/{text}", slots_dir=f"/lib/{text}", ca_file=f"/{text}"
    )
    config = Config(
        f"/etc/{text}",
        True,
        NodeConfig(node_id=text, gateway=f"wss://{text}", data_dir=f"/var/{text}"),
        update,
        HelperConfig(text),
    )
    slot = states.slot_record(text, 13)._replace(sha256=foreign)
    shown = pending._replace(
        config=config,
        layout=layout_of(config),
        slots=pending.slots._replace(value=pending.slots.value._replace(a=slot, b=slot)),
        update=pending.update._replace(
            value=pending.update.value._replace(failed=(states.failed_entry(text, text),))
            if pending.update.value
            else None
        ),
        pending=pending.pending._replace(
            value=pending.pending.value._replace(from_version=foreign, to_version=foreign)
        ),
        problems=(Problem(f"/var/{text}", "corrupt", f"it does not parse: {foreign}"),),
        aside=(f"/var/{text}",),
    )
    live = states.agent(phase=foreign, target=foreign, error=foreign, session={"state": foreign, "error": foreign})
    return states.changed(states.pending(), status=shown, agent=live)


@pytest.mark.parametrize(
    "text",
    some(NASTY, 3),
    ids=lambda text: ascii(text)[:20],
)
async def test_every_screen_takes_any_text_in_every_place(text: str) -> None:
    events: tuple[Json, ...] = (
        {"at": 1, "event": Foreign(text), "version": Foreign(text), "reason": Foreign(text), "slot": [Foreign(text)]},
        {"at": Foreign(text), "event": None, "versions": [text, Foreign(text)]},
    )
    finding = Finding(
        id="slots.x", level=Level.FAIL, message=Foreign(text), evidence=(Foreign(text),), hint=Foreign(text)
    )
    async with opened(World(everything_is(text), events=events, report=report_of(finding)), size=WIDE) as (app, pilot):
        for name in NAMES:
            await app.switch_mode(name)
            await pilot.pause()
            assert type(app.screen).__name__ == f"{name.capitalize()}Screen"
            if name == "doctor":
                await until(pilot, lambda: app.report is not None)
                await pilot.press("down", "down")
            await pilot.pause()
            assert_harmless(app)


@pytest.mark.parametrize("text", some(states.BRACKETS, 2))
async def test_brackets_are_shown_as_they_are(text: str) -> None:
    """C05: in the overview, the table, the question, the toast."""
    world = World(states.with_failed(states.failed_entry("1.4.1-[x]", text)))
    async with opened(world, size=WIDE) as (app, pilot):
        assert f"1.4.1-[x]: {text}" in flat(app)
        await pilot.press("2")
        await pilot.pause()
        assert flat(app).count(text) == 2  # in its row, and whole
        await pilot.press("c")
        await pilot.pause()
        assert "Clear 1.4.1-[x]?" in flat(app)
        await pilot.press("y")
        await until(pilot, lambda: "cleared: 1.4.1-[x]" in flat(app))


@pytest.mark.parametrize("text", some(states.CONTROLS, 3))
async def test_a_version_that_acts_on_a_terminal_is_asked_about_in_its_clean_form_and_cleared_in_its_own(
    text: str,
) -> None:
    version = f"1{text}"
    entry = Failed(Foreign(version), 1, Foreign(text), 1)
    world = World(states.with_failed(entry, states.failed_entry()))
    async with opened(world, "failed", WIDE) as (app, pilot):
        await pilot.press("down", "space", "c")
        await pilot.pause()
        assert_harmless(app)
        assert_picture_harmless(app)
        assert f"Clear {Foreign(version)}?" in flat(app)
        await pilot.press("y")
        await until(pilot, lambda: world.cleared)
        assert [raw(given) for given in world.cleared[0]] == [version]
        await pilot.pause(0.05)
        assert_harmless(app)


@pytest.mark.parametrize(
    "text",
    [NASTY[1], *(pytest.param(t, marks=pytest.mark.slow) for t in (NASTY[0], "\ud800"))],
    ids=lambda text: ascii(text)[:20],
)
async def test_errors(text: str) -> None:
    """The configuration's trouble on every screen, and a clearing's in a toast."""
    trouble = UsageError("bad-config", f"/etc/bcd: {Foreign(text)}", f"did you mean {Foreign(text)}?")
    async with opened(World(states.changed(states.config_broken(), trouble=trouble)), size=WIDE) as (app, pilot):
        for name in NAMES:
            await app.switch_mode(name)
            await pilot.pause()
            assert_harmless(app)
    world = World(states.rolled_back())

    def clear(_: tuple[str, ...]) -> tuple[Failed, ...]:
        raise HostError("io-error", text)

    world.clear = clear
    async with opened(world, "failed", WIDE) as (app, pilot):
        await pilot.press("c")
        await pilot.pause()
        await pilot.press("y")
        await until(pilot, lambda: "(io-error)" in flat(app))
        assert_harmless(app)


async def test_a_filter_with_brackets_filters_by_them() -> None:
    events: tuple[Json, ...] = tuple({"at": n, "event": "refused", "reason": Foreign(f"why [{n}")} for n in range(3))
    async with opened(World(states.at_rest(), events=events), "history", WIDE) as (app, pilot):
        await pilot.press("slash", *"[1")
        await pilot.pause()
        assert app.screen.query_one(Input).value == "[1"
        assert "why [1" in flat(app)
        assert "why [2" not in flat(app)


@pytest.mark.parametrize(
    "at",
    [
        0,
        10**30,
        "x",
        *(pytest.param(at, marks=pytest.mark.slow) for at in (-1, 2**53 - 1, -(10**18), None, True, 1.5, [1])),
    ],
)
async def test_times_that_no_calendar_has(at: object) -> None:
    entries = (Failed(Foreign("1.4.1"), 15, Foreign("why"), at if isinstance(at, int) else 0),)
    world = World(states.with_failed(*entries), events=({"at": at, "event": "refused"},))
    async with opened(world, "failed", WIDE) as (app, pilot):
        assert "1.4.1" in flat(app)
        await pilot.press("5")
        await pilot.pause()
        assert "refused" in flat(app)


async def test_what_is_copied_is_harmless_and_the_toast_claims_no_more_than_it_knows() -> None:
    """C15: whether the terminal took it can't be known."""
    hint = Foreign("sudo bcd \x1b]52;c;eA==\x07")
    finding = Finding(id="slots.x", level=Level.FAIL, message="broken", hint=hint)
    async with opened(World(states.at_rest(), report=report_of(finding)), "doctor", WIDE) as (app, pilot):
        await until(pilot, lambda: app.report is not None)
        await pilot.press("down", "down", "y")
        await until(pilot, lambda: "sent to the terminal" in flat(app))
        assert app.clipboard == str(hint)
        assert "\x1b" not in app.clipboard


def test_the_attacks_do_attack() -> None:
    """Rich lets each control through: these tests would see it."""
    assert all(json.loads(json.dumps(text)) == text for text in states.CONTROLS)
    assert all(
        any(unicodedata.category(c) in ("Cc", "Cf") for c in Text(text).plain) for text in ("\x1b[2J", "\x9b", "\u202e")
    )
