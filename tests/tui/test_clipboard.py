"""Copying through the terminal (field report C15): the bytes that are written, and what is said about them."""

import base64
import re

import pytest

from bcd.core.errors import UsageError
from bcd.core.text import Foreign
from bcd.doctor.finding import Finding, Level
from bcd.tui.clipboard import LIMIT_BYTES, osc52
from tests.tui import states
from tests.tui.consoles import WIDE, World, flat, opened, report_of, until
from tests.tui.terminals import Terminal

DIGEST = "3f9c" * 16
PLAIN = f"\x1b]52;c;{base64.b64encode(DIGEST.encode()).decode()}\x07"


def copied(sequence: str) -> bytes:
    """What a terminal would put on its clipboard."""
    found = re.search("52;c;([^\x07]*)\x07", sequence)
    assert found is not None
    return base64.b64decode(found[1], validate=True)


def test_a_terminal_gets_it_plain() -> None:
    assert osc52(DIGEST, {"TERM": "xterm-256color", "SSH_TTY": "/dev/pts/1"}) == PLAIN


@pytest.mark.parametrize("environ", [{"TERM": "screen-256color", "TMUX": "/tmp/x"}, {"TERM": "tmux-256color"}])
def test_tmux_gets_it_for_itself_and_wrapped_for_the_terminal_outside(environ: dict[str, str]) -> None:
    assert osc52(DIGEST, environ) == f"{PLAIN}\x1bPtmux;\x1b{PLAIN}\x1b\\"


@pytest.mark.parametrize("environ", [{"TERM": "xterm", "STY": "1.x"}, {"TERM": "screen.linux"}])
def test_screen_gets_it_in_pieces_that_it_passes_on(environ: dict[str, str]) -> None:
    written = osc52(DIGEST * 20, environ)
    pieces = re.findall("\x1bP(.*?)\x1b\\\\", written, re.DOTALL)
    assert "".join(f"\x1bP{piece}\x1b\\" for piece in pieces) == written
    assert all(len(piece) <= 76 for piece in pieces)
    assert copied("".join(pieces)) == (DIGEST * 20).encode()


@pytest.mark.parametrize("term", ["linux", "vt220"])
def test_a_terminal_without_a_clipboard_gets_nothing(term: str) -> None:
    with pytest.raises(UsageError) as error:
        osc52(DIGEST, {"TERM": term})
    assert error.value.code == "no-clipboard"


def test_more_than_terminals_take_is_refused_whole() -> None:
    assert len(copied(osc52("x" * LIMIT_BYTES, {}))) == LIMIT_BYTES
    for text in ("x" * (LIMIT_BYTES + 1), "ä" * (LIMIT_BYTES // 2 + 1), "x" * 200_000):
        with pytest.raises(UsageError) as error:
            osc52(text, {})
        assert error.value.code == "too-long-to-copy"


@pytest.mark.parametrize("text", [*states.CONTROLS, "\ud800", "\x07\x1b\\", "rm -rf /\r\n", "a\tb"])
def test_no_control_is_copied(text: str) -> None:
    got = copied(osc52(f"one {text}", {})).decode()
    assert got.startswith("one ")
    assert got.isprintable()


def test_lines_are_kept_and_a_last_line_break_is_not() -> None:
    """It would run what is pasted into a shell."""
    assert copied(osc52("one\ntwo\n\n", {})) == b"one\ntwo"


async def test_what_can_not_be_copied_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    finding = Finding(id="slots.x", level=Level.FAIL, message="broken", hint=f"cat {'x' * 99_996}")
    async with opened(World(states.at_rest(), report=report_of(finding)), "doctor", WIDE) as (app, pilot):
        await until(pilot, lambda: app.report is not None)
        await pilot.press("down", "down", "y")
        await until(pilot, lambda: "not copied: 100000 bytes are more than the 74994" in flat(app))
        assert app.clipboard == ""
        monkeypatch.setenv("TERM", "linux")
        app.copy_to_clipboard("sudo bcd")
        await until(pilot, lambda: "a terminal of type linux has no clipboard" in flat(app))


@pytest.mark.parametrize(("extra", "before"), [({}, b""), ({"TMUX": "/tmp/none"}, b"\x1bPtmux;\x1b")])
def test_the_bytes_on_a_real_terminal(extra: dict[str, str], before: bytes) -> None:
    hint = str(Foreign("sudo bcd \x1b[2J"))
    act = f"app.action_send = lambda: app.copy_to_clipboard({hint!r})\napp.bind('x', 'send')"
    terminal = Terminal(100, 30, after=act, environment={"TMUX": "", "STY": "", **extra})
    try:
        terminal.wait_for(b"reason number 31")
        terminal.send(b"x")
        terminal.wait_for(b"\x1b]52;c;" + base64.b64encode(hint.encode()) + b"\x07")
        terminal.wait_for(before)
        terminal.wait_for(b"sent to the terminal")
    finally:
        terminal.close()
