"""The console in a real terminal: signals, a terminal that goes away, bytes that no decoder likes, a crash."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.tui.terminals import ALTERNATE_OFF, ALTERNATE_ON, CURSOR_SHOWN, Terminal

Open = Callable[..., Terminal]


@pytest.fixture
def open_terminal() -> Iterator[Open]:
    """Open a console in a terminal and wait for its first frame."""
    made: list[Terminal] = []

    def start(**options: str) -> Terminal:
        terminal = Terminal(**options)  # type: ignore[arg-type]
        made.append(terminal)
        terminal.wait_for(ALTERNATE_ON)
        terminal.wait_for(b"reason number 31")
        terminal.settle(0.3)
        return terminal

    yield start
    for terminal in made:
        terminal.close()


def assert_restored(terminal: Terminal) -> None:
    """The terminal is as it was: the main screen, a cursor, no mouse reports."""
    assert terminal.seen.rfind(ALTERNATE_OFF) > terminal.seen.rfind(ALTERNATE_ON)
    assert terminal.seen.rfind(CURSOR_SHOWN) > terminal.seen.rfind(b"\x1b[?25l")
    for mode in (b"1000", b"1003", b"1015", b"1006"):
        assert terminal.seen.rfind(b"\x1b[?" + mode + b"l") >= terminal.seen.rfind(b"\x1b[?" + mode + b"h")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_restores_the_screen_and_is_told(open_terminal: Open, number: signal.Signals, status: int) -> None:
    """C03."""
    terminal = open_terminal()
    os.kill(terminal.pid, number)
    assert terminal.wait_end() == status
    assert_restored(terminal)
    assert b"Traceback" not in terminal.seen


@pytest.mark.parametrize("keys", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_keys_that_end_it_restore_the_screen(open_terminal: Open, keys: bytes) -> None:
    terminal = open_terminal()
    terminal.send(keys)
    assert terminal.wait_end() == 0
    assert_restored(terminal)


def test_a_closed_window_ends_it(open_terminal: Open) -> None:
    """C03: the kernel sends SIGHUP, and there is nothing left to write to."""
    terminal = open_terminal()
    terminal.hang_up()
    assert terminal.wait_end() in (129, -signal.SIGHUP)


def test_a_lost_terminal_ends_it_even_where_hangups_are_ignored(open_terminal: Open) -> None:
    """C03: under nohup the orphan would run on at full speed."""
    terminal = open_terminal(after="app.on_mount_before = signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + _IGNORING)
    terminal.hang_up()
    assert terminal.wait_end(3.0) != 0


_IGNORING = """
import asyncio
add = asyncio.unix_events._UnixSelectorEventLoop.add_signal_handler
def without_hangup(loop, number, *rest):
    if number != signal.SIGHUP:
        add(loop, number, *rest)
asyncio.unix_events._UnixSelectorEventLoop.add_signal_handler = without_hangup
"""


def test_mouse_bytes_past_column_95_do_not_kill_it(open_terminal: Open) -> None:
    """C02: after a re-attach the terminal reports in X10 bytes, which are no UTF-8."""
    terminal = open_terminal()
    terminal.send(b"\x1b[M\x43\xa1\x30")
    terminal.settle(0.5)
    terminal.seen = b""
    terminal.send(b"3")
    terminal.wait_for(b"all is well", 5.0)
    terminal.send(b"q")
    assert terminal.wait_end() == 0
    assert_restored_after(terminal)


def assert_restored_after(terminal: Terminal) -> None:
    """The main screen came back."""
    assert ALTERNATE_OFF in terminal.seen


def test_a_crash_is_no_success_and_restores_the_screen(open_terminal: Open) -> None:
    """Textual ends a crashed app with status 0 by itself."""
    terminal = open_terminal(after="app.action_boom = lambda: 1 / 0\napp.bind('x', 'boom')")
    terminal.send(b"x")
    assert terminal.wait_end(5.0) == 70
    assert_restored(terminal)
    assert b"ZeroDivisionError" in terminal.seen
