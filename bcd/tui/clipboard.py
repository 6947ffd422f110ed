"""Copying through the terminal: OSC 52, which reaches the clipboard of whoever sits at the other end of an SSH session.

Whether the terminal takes it can't be known: what is said afterwards claims no more than that it was sent.
"""

import base64
from collections.abc import Mapping

from bcd.core.errors import UsageError
from bcd.core.text import clean

LIMIT_BYTES = 74_994
"""What base64 makes of this still passes terminals that take no longer sequence than 100 000 bytes."""

_DEAF = ("linux", "vt", "ansi", "cons25")
"""How the names (TERM) of terminals begin that have no clipboard and may draw the sequence instead."""
_SCREEN_CHUNK = 68
"""GNU screen passes on no longer string in one piece."""


def osc52(text: str, environ: Mapping[str, str]) -> str:
    """What to write so that the terminal copies `text`: wrapped for tmux, and for screen in pieces.

    Controls in the text are made visible first, and nothing ends in a line break, so that what is pasted into a shell
    runs nothing by itself.

    Raises:
        UsageError: `no-clipboard` where the terminal has none; `too-long-to-copy`.
    """
    term = environ.get("TERM", "")
    if term.startswith(_DEAF):
        raise UsageError("no-clipboard", f"a terminal of type {term} has no clipboard", "select the text by hand")
    shown = "\n".join(clean(line, len(line)) for line in text.rstrip("\n").split("\n"))
    data = shown.encode("utf-8", "replace")
    if len(data) > LIMIT_BYTES:
        raise UsageError(
            "too-long-to-copy",
            f"not copied: {len(data)} bytes are more than the {LIMIT_BYTES} that terminals take",
            "`bcd doctor --json > FILE` has all of it",
        )
    encoded = base64.b64encode(data).decode("ascii")
    plain = f"\x1b]52;c;{encoded}\x07"
    if environ.get("TMUX") or term.startswith("tmux"):
        # tmux takes the plain sequence where set-clipboard is on, and the wrapped one where allow-passthrough is.
        return f"{plain}\x1bPtmux;\x1b{plain}\x1b\\"
    if environ.get("STY") or term.startswith("screen"):
        pieces = [plain[at : at + _SCREEN_CHUNK] for at in range(0, len(plain), _SCREEN_CHUNK)]
        return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
    return plain
