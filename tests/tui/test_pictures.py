"""What every screen looks like, against tests/tui/pictures/: text and styles, in all themes, with a fixed clock.

After a change of looks: `BCD_WRITE_PICTURES=1 pytest tests/tui/test_pictures.py`, then read the diff.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from bcd.tui.app import ConsoleApp
from tests.tui.consoles import World, until
from tests.tui.pictures import EVENTS, REPORT, STATES, THEMES, Looks, Picture, looks

FOLDER = Path(__file__).parent / "pictures"
SIZES = ((80, 24), (120, 36), (200, 50))


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same wall clock everywhere."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def assert_same(name: str, shown: str) -> None:
    """The picture is the one that was looked at."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("BCD_WRITE_PICTURES"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8")
    assert path.read_text("utf-8") == shown, f"{path.name} looks different: {__doc__}"


async def still(app: ConsoleApp, pilot: Pilot[int]) -> Looks:
    """The screen once all of it is drawn: its footer is there, and nothing moves any more."""
    before: Looks = []
    while True:
        await pilot.pause()
        now = looks(app)
        if now == before and "Quit" in "".join(piece.text for _, piece in now[-1]):
            return now
        before = now


def console(monkeypatch: pytest.MonkeyPatch) -> ConsoleApp:
    """A console that looks at the disk once."""
    app = World(STATES["rolled-back"](), events=EVENTS, report=REPORT).app()
    monkeypatch.setattr(app, "_keep_looking", lambda: None)
    return app


@pytest.mark.parametrize(
    "size", [SIZES[0], *(pytest.param(size, marks=pytest.mark.slow) for size in SIZES[1:])], ids=str
)
async def test_the_overview_in_every_state(monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    app = console(monkeypatch)
    seen: dict[str, dict[str, Looks]] = {state: {} for state in STATES}
    async with app.run_test(size=size) as pilot:
        for theme in THEMES:
            app.theme = theme
            for state, make in STATES.items():
                app.snapshot, app.events = make(), () if state == "first-run" else EVENTS
                seen[state][theme] = await still(app, pilot)
    texts = {"".join(piece.text for line in shown[THEMES[0]] for _, piece in line) for shown in seen.values()}
    assert len(texts) == len(STATES), "two states that only colour tells apart"
    for state, shown in seen.items():
        assert_same(f"overview-{state}-{size[0]}x{size[1]}", Picture(shown).text)


async def test_every_other_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    app = console(monkeypatch)
    names = [name for name in app.MODES if name not in ("overview", "lab")]
    seen: dict[str, dict[str, Looks]] = {name: {} for name in names}
    async with app.run_test(size=(80, 24)) as pilot:
        await app.switch_mode("doctor")
        await until(pilot, lambda: app.report is not None)
        await pilot.press("down", "down")
        for theme in THEMES:
            app.theme = theme
            for name in names:
                await app.switch_mode(name)
                seen[name][theme] = await still(app, pilot)
    for name, shown in seen.items():
        assert_same(f"{name}-80x24", Picture(shown).text)
