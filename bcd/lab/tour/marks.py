"""The few signs that the tour draws with, and their plain spelling for streams that cannot write them."""

from dataclasses import dataclass
from typing import TextIO


@dataclass(frozen=True, kw_only=True)
class Marks:
    """Signs of one style; the ones that stand for a scenario are one column wide in a row of them."""

    good: str
    bad: str
    playing: str
    to_come: str
    bar_done: str
    bar_left: str


_SIGNS = Marks(good="✓", bad="✗", playing="◦", to_come="·", bar_done="━", bar_left="─")
_ASCII = Marks(good="+", bad="x", playing="o", to_come=".", bar_done="=", bar_left="-")


def marks_for(stream: TextIO) -> Marks:
    """The signs that `stream` can write."""
    try:
        "".join(vars(_SIGNS).values()).encode(stream.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return _ASCII
    return _SIGNS


def clock(seconds: float) -> str:
    """Minutes and seconds: `2:05`."""
    whole = max(0, round(seconds))
    return f"{whole // 60}:{whole % 60:02}"
