"""The Linux console has sixteen colours: what the themes become there can still be read."""

import pytest

from bcd.tui.app import ConsoleApp
from tests.tui import states
from tests.tui.consoles import World
from tests.tui.drawn import contrast, is_text, pieces
from tests.tui.fake_lab import FakeLab
from tests.tui.test_contrast import REPORT


@pytest.mark.parametrize(
    "theme", ["bcd-dark", *(pytest.param(name, marks=pytest.mark.slow) for name in ("bcd-light", "bcd-contrast"))]
)
async def test_sixteen_colours(theme: str) -> None:
    """C14: `TERM=linux`. 3 : 1 is what its palette allows."""
    world = World(states.pending(), report=REPORT)
    world.lab = FakeLab()
    app = world.app(theme=theme)
    faint = set()
    async with app.run_test(size=(120, 36)) as pilot:
        for name in (*ConsoleApp.MODES, "lab"):
            await app.switch_mode(name)
            await pilot.pause()
            faint |= {
                f"{name}: {piece.text.strip()!r} {contrast(piece.ink, piece.paper):.2f} {piece.ink} on {piece.paper}"
                for piece in pieces(app, sixteen=True)
                if is_text(piece.text) and contrast(piece.ink, piece.paper) < 3
            }
    assert not faint, "\n".join(faint)
