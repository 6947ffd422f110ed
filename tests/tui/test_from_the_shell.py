"""`bcd console` as it is started: from a real bundle, and again as the program that `current` names."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tui.terminals import ALTERNATE_ON, Terminal

BCD = "import sys; from bcd.cli import main; sys.exit(main(sys.argv[1:]))"
NEXT = """#!/bin/sh
echo "started anew with $*"
"""
Run = Callable[..., Terminal]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A node that runs from slot a, beside one in slot b that is newer."""
    slots, records = tmp_path / "slots", tmp_path / "data" / "update"
    slots.mkdir()
    records.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    for slot in "ab":
        (slots / f"bcd-{slot}").write_text(NEXT)
        (slots / f"bcd-{slot}").chmod(0o755)
    (slots / "current").symlink_to("bcd-a")
    (tmp_path / "bin" / "bcd").symlink_to(slots / "current")
    path = tmp_path / "config.toml"
    path.write_text(
        f'[node]\ndata_dir = "{tmp_path}/data"\nnode_id = "node-9"\n'
        f'[update]\nslots_dir = "{slots}"\nentrypoint = "{tmp_path}/bin/bcd"\n'
    )
    return path


@pytest.fixture
def run() -> Iterator[Run]:
    """Starts `bcd` in a terminal."""
    made: list[Terminal] = []

    def start(*words: str) -> Terminal:
        terminal = Terminal(command=[sys.executable, "-c", BCD, *words])
        made.append(terminal)
        return terminal

    yield start
    for terminal in made:
        terminal.close()


def test_a_real_bundle_opens_and_what_is_none_is_refused(config: Path, tmp_path: Path, run: Run) -> None:
    bundle = tmp_path / "b.tar.gz"
    command = [sys.executable, "-c", BCD, "doctor", "bundle", str(bundle), "--config", str(config), "--offline"]
    collected = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert collected.returncode in (0, 1), collected.stderr
    terminal = run("console", "--bundle", str(bundle))
    terminal.wait_for(b"BUNDLE of")
    terminal.wait_for(b"Commands")
    terminal.send(b"3")
    terminal.wait_for(b"warning")
    terminal.send(b"q")
    assert terminal.wait_end(5.0) == 0
    bundle.write_bytes(bundle.read_bytes()[:200])
    torn = run("console", "--bundle", str(bundle))
    assert torn.wait_end(20.0) == 2
    assert b"unreadable-bundle" in torn.seen
    assert ALTERNATE_ON not in torn.seen
    assert b"Traceback" not in torn.seen


@pytest.mark.parametrize("known", [True, False], ids=["newer", "of an unknown age"])
def test_n_starts_what_current_names_now(config: Path, run: Run, known: bool) -> None:
    """One that may be older is given no option that it may not know."""
    terminal = run("console", "--config", str(config), "--screen", "check", "--filter=x y", "--read-only")
    terminal.wait_for(b"Commands")
    slots = config.parent / "slots"
    record = {"version": "1.9.9", "sequence": 99, "sha256": "ab" * 32, "size": 9, "written_at": 1}
    (slots / "slots.json").write_text(json.dumps({"format": 1, "a": None, "b": record if known else None}))
    (slots / "new").symlink_to("bcd-b")
    os.rename(slots / "new", slots / "current")
    terminal.wait_for(b"old binary")
    terminal.send(b"N")
    assert terminal.wait_end(5.0) == 0
    said = terminal.seen[terminal.seen.rindex(b"started anew with") :]
    expected = f"console --config {config} --screen check --theme dark"
    assert expected.encode() in said
    assert (b"--filter=x y" in said) == known
    assert b"--read-only" in said
