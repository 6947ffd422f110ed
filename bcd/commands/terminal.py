"""Asking the person at the terminal: a secret without echo, a yes or no. Never through stdin, which is for data.

Guarantees: however the question ends, by an answer, Ctrl-C, SIGTERM or a lost terminal, the echo is back on.
"""

import os
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from bcd.core.errors import UsageError
from bcd.core.exits import ExitStatus
from bcd.core.text import clean

TERMINAL = "/dev/tty"
_LINE_BYTES = 4_096
"""A terminal's own limit for one line."""


def ask_secret(question: str, instead: str) -> bytes:
    """A line as it was typed, unseen; empty where the person ended the input.

    Args:
        question: what is shown.
        instead: what to do where there is no terminal.

    Raises:
        UsageError: `no-terminal`.
    """
    with _terminal(instead) as handle, _unseen(handle):
        return _answer(handle, question)


def ask_yes(question: str, instead: str) -> bool:
    """Whether the person said yes; whatever else is a no.

    Raises:
        UsageError: `no-terminal`.
    """
    with _terminal(instead) as handle:
        # What was typed before the question was there is no answer to it.
        termios.tcflush(handle, termios.TCIFLUSH)
        return _answer(handle, f"{question} [y/N] ").strip().lower() in (b"y", b"yes")


def _answer(handle: int, question: str) -> bytes:
    os.write(handle, clean(question).encode())
    line = b""
    while not line.endswith(b"\n") and (chunk := os.read(handle, _LINE_BYTES)):
        line += chunk
    return line.removesuffix(b"\n")


@contextmanager
def _terminal(instead: str) -> Iterator[int]:
    try:
        handle = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError("no-terminal", "there is no terminal to ask on", instead) from error
    try:
        yield handle
    except (OSError, termios.error) as error:
        raise UsageError("no-terminal", "the terminal went away", instead) from error
    finally:
        os.close(handle)


@contextmanager
def _unseen(handle: int) -> Iterator[None]:
    before = termios.tcgetattr(handle)
    hidden = list(before)
    hidden[3] &= ~termios.ECHO
    hidden[3] |= termios.ECHONL | termios.ICANON
    with _ending_in_order():
        try:
            termios.tcsetattr(handle, termios.TCSAFLUSH, hidden)
            yield
        finally:
            termios.tcsetattr(handle, termios.TCSAFLUSH, before)


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let a signal that ends the process unwind it first: left to itself it would leave the terminal without echo."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(_ENDED_BY[signal.Signals(number)])

    before = {number: signal.signal(number, end) for number in _ENDED_BY}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_ENDED_BY = {signal.SIGTERM: ExitStatus.TERMINATED, signal.SIGHUP: ExitStatus.HANGUP}
