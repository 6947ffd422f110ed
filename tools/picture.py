"""A terminal's contents as a picture: SVG that needs no font from a network, and a PNG of it with few colours."""

import os
import re
import subprocess
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

FOLDER = Path(__file__).parent.parent / "screenshots"
_COLOURS = "128"
"""Of a PNG: enough for text with smooth edges in every colour of a theme, few enough to be small."""

_DARK = TerminalTheme(
    (22, 24, 29),
    (214, 217, 222),
    [
        (22, 24, 29),
        (244, 108, 108),
        (126, 200, 128),
        (236, 190, 98),
        (108, 164, 240),
        (203, 140, 232),
        (98, 198, 206),
        (190, 194, 200),
    ],
    [
        (118, 124, 134),
        (255, 138, 138),
        (150, 220, 150),
        (250, 208, 120),
        (138, 186, 255),
        (220, 166, 248),
        (126, 218, 226),
        (255, 255, 255),
    ],
)
_LIGHT = TerminalTheme(
    (252, 252, 250),
    (34, 36, 40),
    [
        (34, 36, 40),
        (178, 28, 36),
        (24, 112, 44),
        (134, 86, 0),
        (24, 84, 176),
        (122, 46, 150),
        (0, 104, 116),
        (90, 94, 100),
    ],
)
_FIRA_CODE_ASPECT = 1200 / 1950
"""Advance over em of the font: a renderer without `textLength` would clip the last columns otherwise."""
THEMES = {"dark": _DARK, "light": _LIGHT}

# Rich's own frame names a font on the network; a picture in a repository should need none.
_FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "Fira Code", "DejaVu Sans Mono", monospace; font-size: {char_height}px;
line-height: {line_height}px; font-variant-east-asian: full-width; font-variant-ligatures: none; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""


def recorder(width: int) -> Console:
    """A console that remembers what it is given."""
    return Console(
        record=True,
        width=width,
        file=open(os.devnull, "w"),
        force_terminal=True,
        color_system="truecolor",
    )


def save(console: Console, name: str, title: str, theme: TerminalTheme) -> Path:
    """Write what was recorded as `screenshots/<name>.svg` and `.png`; the path of the first."""
    svg = console.export_svg(
        title=title, theme=theme, code_format=_FRAME, font_aspect_ratio=_FIRA_CODE_ASPECT, unique_id=name
    )
    path = FOLDER / f"{name}.svg"
    # rsvg-convert keeps leading blanks only where the text itself says so.
    path.write_text(re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE).replace("<text ", '<text xml:space="preserve" '))
    png = path.with_suffix(".png")
    drawn = subprocess.run(["rsvg-convert", "--zoom", "0.9", str(path)], check=True, capture_output=True).stdout
    few = subprocess.run(
        ["pngquant", "--nofs", "--strip", _COLOURS, "-"],
        input=drawn,
        check=True,
        capture_output=True,
    )
    png.write_bytes(few.stdout)
    return path
