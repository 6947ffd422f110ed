"""What was said to be done is on disk: fsynced, bytes before names, names before whatever relies on them (report 03)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bcd.core import steps
from bcd.core.settle import Outcome
from tests.core.faulty_os import Power, each_call
from tests.core.node_root import Node, Tree, quick_directory
from tests.core.update_stories import STORIES, TWO, Scene

NOT_RELIED_ON = ("history.jsonl", "update.lock")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where fsync is counted, and takes no time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    with quick_directory(tmp_path) as made:
        yield made / "node"


def relied_on(tree: Tree) -> Tree:
    """Less what decides nothing."""
    return {path: entry for path, entry in tree.items() if os.path.basename(path) not in NOT_RELIED_ON}


@pytest.mark.parametrize("name", STORIES)
def test_when_an_operation_returns_all_of_it_survives_the_power(root: Path, name: str) -> None:
    """Each name, each mode, each byte, but of the history and the lock."""
    scene = Scene(root, STORIES[name])
    manager = scene.begin()
    power = Power(root)
    with each_call(lambda _: None, power):
        scene.story.act(manager)
    assert relied_on(power.lost_all()) == relied_on(scene.node.tree(history=True))


@pytest.mark.parametrize("name", STORIES)
def test_when_a_step_is_told_it_survives_the_power(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """`reached` says that it is on disk: nothing of it is only in memory."""
    scene = Scene(root, STORIES[name])
    manager = scene.begin()
    power = Power(root)
    told: list[str] = []

    def reached(step: str) -> None:
        told.append(step)
        assert relied_on(power.lost_all()) == relied_on(scene.node.tree()), step

    monkeypatch.setattr(steps, "reached", reached)
    with each_call(lambda _: None, power):
        scene.story.act(manager)
    assert (told == []) == (name in ("clear", "refused"))


def test_no_name_stands_for_bytes_that_are_not_on_disk(root: Path) -> None:
    """At no call of a swap is there a slot's file or a record, under its own name, that a power cut would empty."""
    scene = Scene(root, STORIES["first swap"])
    manager = scene.begin()
    power = Power(root)
    names = ("bcd", "bcd-a", "bcd-b", "slots.json", "update.json", "upgrade.json")
    looked = 0

    def look(_call: str) -> None:
        nonlocal looked
        lost, there = power.lost_data(), scene.node.tree()
        for path, entry in there.items():
            if os.path.basename(path) in names:
                looked += 1
                assert lost[path] == entry, path

    with each_call(look, power):
        scene.story.act(manager)
    assert looked > 100


def test_the_swaps_files_become_durable_in_order(root: Path) -> None:
    """The slot's file, its record, the pending record, `previous`, `current`: none before the one it relies on."""
    scene = Scene(root, STORIES["swap"])
    manager = scene.begin()
    before = scene.node.tree()
    power = Power(root)
    order: list[str] = []

    def look(_call: str) -> None:
        lost = power.lost_all()
        changed = {os.path.basename(path) for path, entry in lost.items() if before.get(path) != entry}
        order.extend(sorted(name for name in changed if name not in order and not name.endswith(".tmp")))

    with each_call(look, power):
        scene.story.act(manager)
    look("")
    assert [name for name in order if name not in NOT_RELIED_ON] == [
        "slots.json",  # the old record of the slot goes first
        "bcd-a",
        "upgrade.json",
        "previous",
        "current",
    ]
    assert (scene.node.json(scene.node.layout.slots_record) or {})["a"] is not None


def test_a_rollback_killed_before_its_fsync_is_made_durable_by_who_settles_it(root: Path) -> None:
    """Else the record would be gone and the link back on the failed release when the power goes after it."""
    scene = Scene(root, STORIES["rollback"])
    manager = scene.begin()
    power = Power(root)

    class Killed(BaseException):
        pass

    def kill(call: str) -> None:
        if call == "fsync" and scene.node.link("current") == "bcd-b":
            raise Killed

    with each_call(kill, power), pytest.raises(Killed):
        scene.story.act(manager)
    assert scene.node.runs() == "1.1.0"
    assert power.lost_all()["lib/bcd/current"].content == b"bcd-a"
    with each_call(lambda _: None, power):
        assert scene.node.start()[-1].outcome is Outcome.ROLLED_BACK
    scene.lay(power.lost_all())
    scene.node.clock.reboots(5)
    assert scene.node.runs() == "1.1.0"
    assert scene.node.start()[-1].outcome is Outcome.SETTLED
    assert [failed.version for failed in scene.node.manager().clear_failed()] == [TWO.version]


@pytest.mark.parametrize("torn", [b"", b'{"at":1800000000,"eve', b"\0" * 200])
def test_a_torn_history_loses_nothing_that_decides(tmp_path: Path, torn: bytes) -> None:
    """It is for people: an update goes on over it, and what is appended can be read."""
    node = Node(tmp_path)
    node.start()
    Path(node.layout.history).write_bytes(torn)
    node.update(TWO)
    assert node.runs() == "1.2.0"
    assert b'"event":"confirmed","version":"1.2.0"' in Path(node.layout.history).read_bytes()
