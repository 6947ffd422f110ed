"""Cut off at every single call that changes the disk, an update ends idle, confirmed or failed, and can go on.

Three times over: the process is gone and everything it did is there; the power is gone and only what was fsynced is
there; the power is gone and all names are there, but of the bytes only what was fsynced (field reports 01, 03, 11, 28).
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.faulty_os import Cut, Power, cut, faults
from tests.core.node_root import Entry, quick_directory
from tests.core.update_stories import STORIES, End, Scene

LOSSES = ("process", "power", "bytes")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where recovery's own fsync, which is not what is tested, takes no time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    with quick_directory(tmp_path) as made:
        yield made


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", STORIES)
def test_wherever_it_is_cut_off_it_can_go_on(root: Path, name: str, loss: str) -> None:
    """From the first call to the one after the last; every end that the story allows is met."""
    scene = Scene(root / "node", STORIES[name])
    met: dict[frozenset[tuple[str, Entry]], End] = {}
    first, done = 0, False
    while not done:
        first += 1
        manager = scene.begin()
        power = Power(scene.node.root)
        with faults(first, cut, power=power) as disk:
            try:
                scene.story.act(manager)
            except Cut:
                pass
            done = len(disk.calls) < first
        if loss != "process":
            scene.lay(power.lost_all() if loss == "power" else power.lost_data())
            scene.node.clock.reboots(3)
        lies = frozenset(scene.node.tree(history=True).items())
        if lies in met:
            continue
        try:
            met[lies] = scene.go_on()
        except BaseException as error:
            error.add_note(f"cut off at call {first}: {disk.calls}")
            raise
    assert first > 2
    assert set(met.values()) == scene.story.ends
