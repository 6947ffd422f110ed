"""Cut off between any two calls that change the disk, an update ends idle, confirmed or failed, and can go on.

Three times over: the process is gone and everything it did is there; the power is gone and only what was fsynced is
there; the power is gone and all names are there, but of the bytes only what was fsynced (field reports 01, 03, 11, 28).
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.faulty_os import Power, each_call
from tests.core.node_root import Entry, Tree, quick_directory, read_tree
from tests.core.update_stories import STORIES, Scene

State = tuple[bool, frozenset[tuple[str, Entry]]]
"""Whether the machine was off, and what lies on its disk."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where recovery's own fsync, which is not what is tested, takes no time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    with quick_directory(tmp_path) as made:
        yield made / "node"


def every_cut(scene: Scene) -> dict[State, str]:
    """Act once, undisturbed. Returns each state that a cut somewhere in it leaves -> where the first such is."""
    manager = scene.begin()
    root = scene.node.root
    power = Power(root)
    states: dict[State, str] = {}
    calls = 0

    def look(call: str) -> None:
        nonlocal calls
        calls += 1
        for loss, off, tree in (
            ("the process", False, read_tree(root)),
            ("the power", True, power.lost_all()),
            ("the bytes", True, power.lost_data()),
        ):
            states.setdefault((off, frozenset(tree.items())), f"{loss} lost before call {calls}, {call}")

    with each_call(look, power):
        scene.story.act(manager)
    look("none: it was done")
    return states


@pytest.mark.parametrize("name", STORIES)
def test_wherever_it_is_cut_off_it_can_go_on(root: Path, name: str) -> None:
    """From before the first call to after the last; every end that the story allows is met, and no other."""
    scene = Scene(root, STORIES[name])
    ends = set()
    for (off, entries), where in every_cut(scene).items():
        scene.begin()
        tree: Tree = dict(entries)
        scene.lay(tree)
        if off:
            scene.node.clock.reboots(3)
        try:
            ends.add(scene.go_on())
        except BaseException as error:
            error.add_note(where)
            raise
    assert ends == scene.story.ends
