"""Where only ASCII can be shown, only ASCII is drawn (field report C12)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, get_character_cell_size

from bcd.tui.app import ConsoleApp
from bcd.tui.glyphs import ASCII, ascii_only, to_ascii
from tests.tui import states
from tests.tui.consoles import World, lines_of, text_of
from tests.tui.terminals import Terminal


@pytest.mark.parametrize(
    ("environ", "encoding", "plain"),
    [
        ({"LANG": "C.UTF-8"}, "utf-8", False),
        ({"LC_CTYPE": "C.UTF-8"}, "utf-8", False),  # refused by some, though it is a valid set-up
        ({"LANG": "de_DE.utf8", "TERM": "xterm-256color"}, "UTF-8", False),
        ({"LC_CTYPE": "UTF-8"}, "utf-8", False),  # what a Mac sends over SSH
        ({"LANG": "C.UTF-8", "TERM": "linux"}, "utf-8", True),
        ({"LANG": "C.UTF-8", "TERM": "vt220"}, "utf-8", True),
        ({"LANG": "C.UTF-8"}, "ascii", True),
        ({"LANG": "C.UTF-8"}, None, True),
        ({"LANG": "C"}, "utf-8", True),
        ({"LANG": "C.UTF-8", "LC_ALL": "POSIX"}, "utf-8", True),
        ({"LANG": "C.UTF-8", "LC_ALL": ""}, "utf-8", False),
        ({"LANG": "en_US.ISO-8859-1"}, "iso8859-1", True),
        ({}, "utf-8", True),
    ],
)
def test_when(environ: dict[str, str], encoding: str | None, *, plain: bool) -> None:
    assert ascii_only(environ, encoding) is plain


def test_each_sign_of_the_table_is_one_cell_and_one_of_ascii() -> None:
    assert all(len(sign) == cell_len(sign) == 1 and not sign.isascii() for sign in ASCII)
    assert all(len(plain) == 1 and plain.isascii() and plain.isprintable() for plain in ASCII.values())


def test_what_tells_states_apart_still_does() -> None:
    assert len({ASCII[sign] for sign in "●◉○✗"}) == 4
    assert ASCII["█"] != ASCII["░"]


@given(st.text())
def test_no_column_moves(text: str) -> None:
    shown = to_ascii(text)
    assert shown.isascii()
    assert len(shown) == sum(1 if c.isascii() else get_character_cell_size(c) for c in text)


async def test_every_screen_in_ascii_keeps_its_columns() -> None:
    app = World(states.pending()).app()
    async with app.run_test(size=(80, 24)) as pilot:
        for name in ConsoleApp.MODES:
            await app.switch_mode(name)
            for make in (states.pending, states.odd_failed):
                app.snapshot = make()
                await pilot.pause(0)
                app._ascii.enabled = False
                before = lines_of(app)
                app._ascii.enabled = True
                after = lines_of(app)
                assert "".join(after).isascii()
                assert [cell_len(line) for line in before] == [len(line) for line in after]
        await pilot.press("question_mark", "colon")
        await pilot.pause(0.1)
        assert text_of(app).isascii()


@pytest.mark.parametrize("extra", [{"TERM": "linux"}, {"LC_ALL": "C", "NO_COLOR": "1"}])
def test_no_byte_but_ascii_reaches_such_a_terminal(extra: dict[str, str]) -> None:
    """In a real one: Python says that standard error is UTF-8 even in a C locale."""
    terminal = Terminal(100, 30, after=_CHOOSE, environment=extra)
    try:
        terminal.wait_for(b"reason number 31")
        terminal.settle(0.2)
        terminal.send(b"2")
        terminal.wait_for(b"Clear all")
        terminal.send(b"q")
        assert terminal.wait_end(5.0) == 0
    finally:
        terminal.close()
    assert terminal.seen.isascii()
    assert b"* agent up" in terminal.seen
    assert b"\\u" not in terminal.seen


_CHOOSE = """
from bcd.tui.glyphs import AsciiFilter, terminal_is_ascii_only
app._ascii = AsciiFilter(enabled=terminal_is_ascii_only())
"""
