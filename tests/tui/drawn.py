"""What is really drawn, read from the screen: each piece of text with its two colours, and their contrast (WCAG 2.2)."""

from collections.abc import Iterator
from typing import NamedTuple

from rich.color import Color, ColorSystem
from rich.terminal_theme import TerminalTheme
from textual.color import Color as TextualColor

from bcd.tui.app import ConsoleApp

Rgb = tuple[int, int, int]
VGA = TerminalTheme(
    (0, 0, 0),
    (170, 170, 170),
    [(0, 0, 0), (170, 0, 0), (0, 170, 0), (170, 85, 0), (0, 0, 170), (170, 0, 170), (0, 170, 170), (170, 170, 170)],
    [
        *((85, 85, 85), (255, 85, 85), (85, 255, 85), (255, 255, 85)),
        *((85, 85, 255), (255, 85, 255), (85, 255, 255), (255, 255, 255)),
    ],
)
"""The sixteen colours of the Linux console."""


class Piece(NamedTuple):
    """Text of one style."""

    text: str
    ink: Rgb
    paper: Rgb
    marks: str
    """Bold, dim, struck and the like, as words."""


def pieces(app: ConsoleApp, *, sixteen: bool = False) -> Iterator[Piece]:
    """What the screen shows, in order; with `sixteen`, in the colours that a terminal of sixteen would use."""
    for strip in app.screen._compositor.render_strips():
        yield from (piece for _, piece in row(strip, sixteen=sixteen))


def row(strip: object, *, sixteen: bool = False) -> Iterator[tuple[int, Piece]]:
    """One line's pieces, each with the column that it begins at."""
    column = 0
    for text, style, control in strip:  # type: ignore[attr-defined]
        if control or style is None:
            assert not text.strip(), text
            continue
        paper = _rgb(style.bgcolor, sixteen=sixteen)
        ink = paper if style.color is None and not text.strip() else _rgb(style.color, sixteen=sixteen)
        if style.reverse:
            ink, paper = paper, ink
        marks = ("bold", "dim", "italic", "underline", "strike", "reverse")
        yield column, Piece(text, ink, paper, " ".join(mark for mark in marks if getattr(style, mark)))
        column += len(text)


def _rgb(color: Color | None, *, sixteen: bool) -> Rgb:
    assert color is not None, "text in whatever colour the terminal happens to have"
    if sixteen:
        color = color.downgrade(ColorSystem.STANDARD)
    red, green, blue = color.get_truecolor(VGA)
    return red, green, blue


def contrast(one: Rgb, other: Rgb) -> float:
    """The contrast of two colours, 1 to 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: Rgb) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def grey(color: Rgb) -> Rgb:
    """A colour as NO_COLOR leaves it."""
    return TextualColor(*color).monochrome.rgb


def is_text(text: str) -> bool:
    """Whether there is something to read in it: lines, bars and blanks are no text."""
    return any(not c.isspace() and not "─" <= c <= "▟" for c in text)
