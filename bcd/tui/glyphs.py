"""The signs that are drawn where only ASCII can be: one table, one filter over every line, chosen once at the start.

The screens, and Textual's own borders, scroll bars and markers, are written in Unicode. Where the terminal or the locale
can't show that, each line is turned into ASCII on its way out, cell by cell, so that no column moves.
"""

import os
import sys
from collections.abc import Mapping

from rich.cells import get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_FONTLESS = ("linux", "vt", "ansi", "cons25")
"""How the names (TERM) of terminals begin whose font is too small for the console's signs."""

_ROWS = (
    # Lines, thin and heavy.
    ("-", "─━┄┅┈┉╌╍╴╶╸╺═▔▁"),
    ("|", "│┃┆┇┊┋╎╏╵╷╹╻║▎▏▍▌▐▕▊▋▉"),
    ("+", "┌┍┎┏┐┑┒┓└┕┖┗┘┙┚┛├┝┞┟┠┡┢┣┤┥┦┧┨┩┪┫┬┭┮┯┰┱┲┳┴┵┶┷┸┹┺┻┼╋╭╮╯╰╔╗╚╝╠╣╦╩╬"),
    # Bars.
    ("#", "█▇▆▅▄▃▂▀▛▜▙▟"),
    (".", "░▒▓"),
    # Marks: done, at, still to come, failed, nothing to say.
    ("*", "●⬤"),
    ("@", "◉"),
    ("o", "○"),
    ("x", "✗✕✖╳×"),
    ("v", "✓✔▼▽▾↓"),
    (".", "·•∙"),
    # Arrows; what was cut off.
    ("^", "▲△▴↑"),
    (">", "▶▷▸►→❯›"),
    ("<", "◀◁◂◄←❮‹"),
    ("~", "…"),
    # Writing.
    ("-", "–—−"),
    ("'", "‘’"),
    ('"', "“”"),
    (" ", "\u00a0"),
)
ASCII = {sign: plain for plain, signs in _ROWS for sign in signs}
"""A sign of one cell to its ASCII one."""
_UNKNOWN = "?"


def to_ascii(text: str) -> str:
    """The same in as many cells and in ASCII alone: a wide character is `??`, and one of no width is left out."""
    if text.isascii():
        return text
    return "".join(c if c.isascii() else ASCII.get(c) or _UNKNOWN * get_character_cell_size(c) for c in text)


class AsciiFilter(LineFilter):
    """Turns each drawn line into ASCII."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002  # LineFilter's
        """The same segments, their text in ASCII."""
        return [Segment(to_ascii(text), style, control) for text, style, control in segments]


def ascii_only(environ: Mapping[str, str], encoding: str | None) -> bool:
    """Whether what is drawn has to be ASCII.

    `environ` is what the process was started with, `encoding` that of the stream that is drawn on. A locale that is not
    installed here still says what the terminal at the other end of an SSH session speaks.
    """
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or "C"
    speaks = "utf8" in locale.lower().replace("-", "")
    draws = (encoding or "").lower().replace("-", "") == "utf8"
    return not (speaks and draws) or environ.get("TERM", "").startswith(_FONTLESS)


def terminal_is_ascii_only() -> bool:
    """Whether what is drawn on this process's standard error has to be ASCII.

    Python puts LC_CTYPE=C.UTF-8 over a C locale as it starts (PEP 538). That says nothing about the terminal, so it is
    taken out of the environment again, also for a console that this one starts.
    """
    given = _started_with()
    if given.get("LC_CTYPE") is None:
        os.environ.pop("LC_CTYPE", None)
    else:
        os.environ["LC_CTYPE"] = given["LC_CTYPE"]
    return ascii_only(given, getattr(sys.__stderr__, "encoding", None))


def _started_with() -> dict[str, str]:
    """The environment as the kernel got it; Python's where /proc is not to be read."""
    try:
        with open("/proc/self/environ", "rb") as file:
            block = file.read()
    except OSError:
        return dict(os.environ)
    pairs = (os.fsdecode(entry).partition("=") for entry in block.split(b"\0") if entry)
    return {name: value for name, _, value in pairs}
