"""The console's themes: dark, light, and high contrast. Colour says again what words and marks already said.

Text drawn in them has a contrast of at least 4.5 : 1, and 7 : 1 in the high-contrast theme (WCAG 2.2, 1.4.3 and 1.4.6):
tests/tui/test_contrast.py measures it on what is really drawn.
"""

from rich.terminal_theme import TerminalTheme
from textual.color import Color
from textual.theme import Theme

THEMES = (
    Theme(
        name="bcd-dark",
        primary="#6ca4f0",
        secondary="#62c6ce",
        accent="#cb8ce8",
        foreground="#d6d9de",
        background="#16181d",
        surface="#1d2026",
        panel="#262a32",
        success="#7ec880",
        warning="#ecbe62",
        error="#fa8080",
        dark=True,
    ),
    Theme(
        name="bcd-light",
        primary="#1854b0",
        secondary="#006874",
        accent="#7a2e96",
        foreground="#222428",
        background="#fcfcfa",
        surface="#f2f2ee",
        panel="#e6e6e0",
        success="#18702c",
        warning="#865600",
        error="#b21c24",
        dark=False,
    ),
    Theme(
        name="bcd-contrast",
        primary="#8cc8ff",
        secondary="#00ffff",
        accent="#ffb0ff",
        foreground="#ffffff",
        background="#000000",
        surface="#000000",
        panel="#1a1a1a",
        success="#60ff60",
        warning="#ffe000",
        error="#ff9090",
        dark=True,
    ),
)


def palette(theme: Theme) -> TerminalTheme:
    """The colours that `red`, `green`, `yellow` and the like stand for in a theme, here and in the doctor's report.

    Textual's own are one palette for every dark theme and one for every light, whatever the theme's colours are.
    """
    names = (
        theme.background, theme.error, theme.success, theme.warning,
        theme.primary, theme.accent, theme.secondary, theme.foreground,
    )  # fmt: skip
    colors = [Color.parse(name or "black").rgb for name in names]
    return TerminalTheme(colors[0], colors[-1], colors)
