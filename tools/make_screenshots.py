"""Make screenshots/ from real runs: a lab's node, its real commands, their real output, as SVG and PNG.

`--tour` plays the lab's whole tour for its picture too, which takes a little over two minutes. PNGs need rsvg-convert
(librsvg2-bin) and look best with Fira Code (fonts-firacode).
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from bcd.lab.labnode import LabNode
from bcd.lab.world import World

FOLDER = Path(__file__).parent.parent / "screenshots"

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


@dataclass(frozen=True, kw_only=True)
class Shot:
    """One picture, in every theme."""

    name: str
    command: Sequence[str]
    width: int
    """Columns."""
    begins: str = ""
    """Where the picture begins in what was printed; at its beginning where empty."""


def main() -> int:
    """Make every picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tour", action="store_true", help="the tour's picture too")
    with_tour: bool = parser.parse_args().tour
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bcd-") as directory:
        world = World(Path(directory))
        try:
            _node_pictures(world)
        finally:
            world.close()
    if with_tour:
        bcd = str(Path(sys.executable).parent / "bcd")
        tour = [bcd, "lab", "tour", "--color", "always"]
        _take(Shot(name="lab-tour", command=tour, width=170, begins="  what happens"))
    return 0


def _node_pictures(world: World) -> None:
    node = world.node("node-17")
    node.supervisor.start()
    node.wait_welcome("1.4.0")
    good = world.publisher.publish("1.4.1", 15, shelf="node-17")
    node.wait_section(node.push(good), "READY")
    _wait(lambda: _says(node, "1.4.1"))
    for width in (80, 140):
        _take(Shot(name=f"doctor-well-{width}", command=_bcd(node, "doctor"), width=width))
    _take(Shot(name="doctor-verbose", command=_bcd(node, "doctor", "-v"), width=140))
    _take(Shot(name="update", command=_bcd(node, "update"), width=80))
    (node.root.slots / "bcd-a").chmod(0o777)
    (node.root.slots / "previous").unlink()
    (node.root.slots / "previous").symlink_to("/usr/bin/bcd-old")
    (node.root.records / "update.json.corrupt-1790000000").write_text("{asd")
    for width in (80, 140):
        _take(Shot(name=f"doctor-trouble-{width}", command=_bcd(node, "doctor"), width=width))


def _bcd(node: LabNode, *words: str) -> list[str]:
    form = ["--format", "rich"] if words[0] == "doctor" else []
    return [str(node.root.entrypoint), *words, "--config", str(node.root.config), "--color", "always", *form]


def _says(node: LabNode, word: str) -> bool:
    return word in subprocess.run(_bcd(node, "update"), capture_output=True, text=True, check=False).stdout


def _wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not until():
        if time.monotonic() > deadline:
            raise SystemExit("the node did not get where the picture needs it")
        time.sleep(0.1)


def _take(shot: Shot) -> None:
    environ = {**os.environ, "COLUMNS": str(shot.width), "TERM": "xterm-256color"}
    ran = subprocess.run(shot.command, capture_output=True, text=True, check=False, env=environ)
    printed = ran.stdout[max(0, ran.stdout.find(shot.begins)) :]
    shown = " ".join(["bcd", *[w for w in shot.command[1:] if w not in ("--color", "always", "--format", "rich")]])
    title = shown.partition(" --config")[0]
    for theme, colors in THEMES.items():
        console = Console(record=True, width=shot.width, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
        console.print(Text.from_ansi(printed.rstrip("\n")))
        path = FOLDER / f"{shot.name}-{theme}.svg"
        path.write_text(
            console.export_svg(
                title=title,
                theme=colors,
                code_format=_FRAME,
                font_aspect_ratio=_FIRA_CODE_ASPECT,
                unique_id=f"{shot.name}-{theme}",
            )
        )
        png = path.with_suffix(".png")
        subprocess.run(["rsvg-convert", "--zoom", "1.5", "--output", str(png), str(path)], check=True)
        sys.stdout.write(f"{path.relative_to(FOLDER.parent)}\n")


if __name__ == "__main__":
    raise SystemExit(main())
