"""Make screenshots/ from real runs: a lab's node, its real commands, their real output, as SVG and PNG.

`--tour` plays the lab's whole tour for its picture too, which takes a little over two minutes. PNGs need rsvg-convert
(librsvg2-bin) and pngquant, and look best with Fira Code (fonts-firacode).
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

from console_pictures import console_pictures
from picture import FOLDER, THEMES, recorder, save
from rich.text import Text

from bcd.lab.labnode import LabNode
from bcd.lab.world import World


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
    parser.add_argument("--only-console", action="store_true", help="the console's alone")
    given = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    console_pictures()
    if given.only_console:
        return 0
    with tempfile.TemporaryDirectory(prefix="bcd-") as directory:
        world = World(Path(directory))
        try:
            _node_pictures(world)
        finally:
            world.close()
    if given.tour:
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
        console = recorder(shot.width)
        console.print(Text.from_ansi(printed.rstrip("\n")))
        path = save(console, f"{shot.name}-{theme}", title, colors)
        sys.stdout.write(f"{path.relative_to(FOLDER.parent)}\n")


if __name__ == "__main__":
    raise SystemExit(main())
