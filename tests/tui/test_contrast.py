"""Text can be read: the contrast of all that is drawn, on every screen, in every theme, and with no or few colours."""

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from bcd.core.errors import UsageError
from bcd.core.records import Json
from bcd.core.text import Foreign
from bcd.doctor.finding import Finding, Level
from bcd.tui.app import ConsoleApp
from tests.tui import states
from tests.tui.consoles import World, report_of, until
from tests.tui.drawn import contrast, grey, is_text, pieces
from tests.tui.fake_lab import FakeLab

THEMES = {"bcd-dark": 4.5, "bcd-light": 4.5, "bcd-contrast": 7.0}
REPORT = report_of(
    *(
        Finding(id=f"slots.{level.value}", level=level, message="what it is", evidence=("saw",), hint="sudo bcd update")
        for level in Level
    )
)
EVENTS: tuple[Json, ...] = tuple(
    {"at": int(states.NOW) - n, "event": "refused", "version": "1.4.1", "reason": Foreign("why")} for n in range(9)
)
STATES = ("at-rest", "downloading", "pending", "overdue", "rolled-back", "config-broken", "records-unreadable")
TROUBLE = UsageError("bad-manifest", "this is no manifest", "name its file")


def faint(app: ConsoleApp, least: float) -> set[str]:
    """The text on the screen that has less contrast than this, in its colours or under NO_COLOR."""
    found = set()
    for piece in pieces(app):
        for ink, paper in ((piece.ink, piece.paper), (grey(piece.ink), grey(piece.paper))):
            if is_text(piece.text) and contrast(ink, paper) < least:
                found.add(f"{piece.text.strip()!r} {contrast(ink, paper):.2f}: {ink} on {paper} {piece.marks}")
    return found


async def see_everything(look: Callable[[ConsoleApp, str], None], app: ConsoleApp, pilot: Pilot[int]) -> None:
    """Lead a console through its screens, states and questions, and look at each."""
    for name in (*app.MODES, "lab"):
        await app.switch_mode(name)
        for state in STATES if name == "overview" else STATES[2:3]:
            app.snapshot = states.EVERY[state]()
            await pilot.pause()
            look(app, f"{name}, {state}")
    await app.switch_mode("doctor")
    await until(pilot, lambda: app.report is not None)
    for _ in range(len(Level) + 1):
        await pilot.press("down")
        await pilot.pause()
        look(app, "doctor, a finding")
    await app.switch_mode("history")
    await pilot.press("slash", "w")
    await pilot.pause()
    look(app, "history, its filter")
    await pilot.press("escape")
    await app.switch_mode("check")
    app.acceptance = TROUBLE
    await pilot.press("slash", "x", "shift+left")
    await pilot.pause()
    look(app, "check, its field")
    await pilot.press("escape")
    app.snapshot = states.rolled_back()
    await app.switch_mode("failed")
    await pilot.press("c")
    await pilot.pause()
    look(app, "the question, Cancel focused")
    await pilot.press("right")
    await pilot.pause()
    look(app, "the question, Clear focused")
    await pilot.press("escape")
    app.snapshot = states.clear_not_permitted()
    await pilot.pause()
    look(app, "failed, clearing not permitted")
    await pilot.press("e")
    await pilot.pause()
    look(app, "evidence")
    await pilot.press("escape")
    for severity in ("information", "warning", "error"):
        app.notify("something changed", title="bcd", severity=severity, markup=False)
    await pilot.pause()
    look(app, "toasts")
    await pilot.press("colon")
    await until(pilot, lambda: len(app.screen.query("CommandList")) > 0)
    await pilot.pause(0.1)
    look(app, "commands")
    await pilot.press("escape")
    await pilot.press("question_mark")
    await pilot.pause()
    look(app, "help")


def console(monkeypatch: pytest.MonkeyPatch, theme: str) -> ConsoleApp:
    """A console in a theme, its looks at the disk out of the way."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    world = World(states.rolled_back(), events=EVENTS, report=REPORT)
    world.lab = FakeLab()
    for who in ("you", "gateway", "releases", "supervisor", "lab", "node"):
        world.lab.tell(who, "something was done")
    app = world.app(theme=theme)
    monkeypatch.setattr(app, "_keep_looking", lambda: None)
    return app


@pytest.mark.slow
@pytest.mark.parametrize("theme", list(THEMES))
async def test_all_text_can_be_read(monkeypatch: pytest.MonkeyPatch, theme: str) -> None:
    """C14."""
    app = console(monkeypatch, theme)
    said: list[str] = []
    seen: set[str] = set()

    def look(app: ConsoleApp, where: str) -> None:
        said.extend(f"{where}: {text}" for text in faint(app, THEMES[theme]) if text not in seen)
        seen.update(faint(app, THEMES[theme]))

    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await see_everything(look, app, pilot)
    assert not said, "\n".join(said)


def test_the_measure_is_the_known_one() -> None:
    assert contrast((255, 255, 255), (0, 0, 0)) == pytest.approx(21)
    assert contrast((0x77, 0x77, 0x77), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)


async def test_the_measure_sees_faint_text(monkeypatch: pytest.MonkeyPatch) -> None:
    app = console(monkeypatch, "bcd-dark")
    async with app.run_test() as pilot:
        await pilot.pause()
        app.screen.styles.color = "#333333"
        app.screen.query_one("#facts").styles.color = "#333333"
        await pilot.pause()
        assert any("pins, 2 must sign" in text for text in faint(app, 4.5))
