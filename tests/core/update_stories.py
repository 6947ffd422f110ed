"""The operations that the crash tests cut off, what must hold wherever they are cut, and the way on from there.

A story begins with a node at some point of an update and acts once. However that act ends, `sane` must hold of the
disk as it lies, `come_up` must find one of three ends with a single start, and `try_again` must then bring the target
to run, or be refused it as failed until somebody clears it.
"""

import json
import os
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from bcd.core import steps
from bcd.core.answers import Settled
from bcd.core.errors import Refusal
from bcd.core.manager import Manager
from bcd.core.records import read_pending, read_slots, read_update
from bcd.core.settle import Outcome
from bcd.core.slotfile import is_whole
from tests.core.node_root import Node, Release, Tree, make_release, write_tree

ONE = make_release("1.1.0", 11)
TWO = make_release("1.2.0", 12)

End = Literal["idle", "confirmed", "failed"]


@dataclass(frozen=True, kw_only=True)
class Story:
    """An operation, and where it begins."""

    begin: Callable[[Node], None]
    act: Callable[[Manager], object]
    ends: frozenset[End]
    """How it may end when it is cut off and settled, at whatever point."""
    target: Release = TWO
    old: str = "1.1.0"
    """What runs where the target does not."""
    by: str = "1.1.0"
    """What the acting process is."""
    lost: bool = False
    """Whether `current` is lost at first."""
    again: Callable[[object], bool] = lambda _: True
    """What it must say when it is asked again after it said that it had not happened."""


def _staged(node: Node, release: Release) -> None:
    node.start()
    node.stage(release)


def _on_one(node: Node) -> None:
    node.update(ONE)


def _ready(node: Node) -> None:
    _on_one(node)
    _staged(node, TWO)


def _swapped(node: Node) -> None:
    _on_one(node)
    node.swap(TWO)


def _launched(node: Node) -> None:
    _swapped(node)
    node.start()


def _overdue(node: Node) -> None:
    _launched(node)
    node.clock.passes(121)


def _rolled_back(node: Node) -> None:
    _overdue(node)
    node.manager().rollback(way="deadline")


def _never_started(node: Node) -> None:
    _swapped(node)
    node.manager("1.1.0").rollback(way="exec", said="Exec format error")


def _interrupted(node: Node) -> None:
    _swapped(node)
    os.unlink(node.layout.current)
    os.symlink("bcd-b", node.layout.current)


def _lost(node: Node) -> None:
    _launched(node)
    os.unlink(node.layout.current)


def _half_confirmed(node: Node) -> None:
    _launched(node)
    record = Path(node.layout.pending_record)
    pending = record.read_bytes()
    assert node.manager().confirm() is not None
    record.write_bytes(pending)


def _reusable(node: Node) -> None:
    _on_one(node)
    node.fail(TWO)
    node.manager().clear_failed()


def _failed(node: Node) -> None:
    _on_one(node)
    node.fail(TWO)


def _installed_anew(node: Node) -> None:
    _ready(node)
    node.install("1.1.5")


def _without_floor(node: Node) -> None:
    _ready(node)
    Path(node.layout.update_record).write_bytes(b'{"sequence": 11, "fai')


def _swap(release: Release) -> Callable[[Manager], object]:
    return lambda manager: manager.swap(release.section, server_time=None, command_id="cmd-1")


_UNDECIDED: frozenset[End] = frozenset({"idle", "confirmed"})

STORIES = {
    "first swap": Story(
        begin=lambda node: _staged(node, ONE), act=_swap(ONE), ends=_UNDECIDED, target=ONE, old="1.0.0", by="1.0.0"
    ),
    "swap": Story(begin=_ready, act=_swap(TWO), ends=_UNDECIDED),
    "swap after an install": Story(begin=_installed_anew, act=_swap(TWO), ends=_UNDECIDED, old="1.1.5"),
    "swap by reuse": Story(begin=_reusable, act=_swap(TWO), ends=_UNDECIDED),
    "swap without a floor": Story(begin=_without_floor, act=_swap(TWO), ends=_UNDECIDED),
    "launch": Story(begin=_swapped, act=Manager.settle, ends=frozenset({"confirmed"}), by="1.2.0"),
    "refused": Story(
        begin=_launched, act=lambda m: m.note_gateway_refused("busy"), ends=frozenset({"confirmed"}), by="1.2.0"
    ),
    "confirm": Story(begin=_launched, act=Manager.confirm, ends=frozenset({"confirmed"}), by="1.2.0"),
    "finish confirm": Story(begin=_half_confirmed, act=Manager.settle, ends=frozenset({"confirmed"}), by="1.2.0"),
    "rollback": Story(
        begin=_overdue,
        act=lambda m: m.rollback(way="deadline"),
        ends=frozenset({"failed"}),
        by="1.2.0",
        again=lambda moved: moved is True,
    ),
    "failed exec": Story(
        begin=_swapped,
        act=lambda m: m.rollback(way="exec", said="Exec format error"),
        ends=frozenset({"confirmed", "failed"}),
        again=lambda moved: moved is True,
    ),
    "late start": Story(
        begin=_overdue,
        act=Manager.settle,
        ends=frozenset({"failed"}),
        by="1.2.0",
        again=lambda settled: isinstance(settled, Settled) and settled.restart,
    ),
    "settle a rollback": Story(begin=_rolled_back, act=Manager.settle, ends=frozenset({"failed"})),
    "settle a failed exec": Story(begin=_never_started, act=Manager.settle, ends=frozenset({"failed"})),
    "settle an interruption": Story(begin=_interrupted, act=Manager.settle, ends=frozenset({"idle"})),
    "restore": Story(begin=_lost, act=Manager.settle, ends=frozenset({"failed"}), lost=True),
    "clear": Story(begin=_failed, act=lambda m: m.clear_failed(), ends=frozenset({"idle", "failed"})),
}


class Scene:
    """A story's node, brought back to its beginning as often as wanted."""

    def __init__(self, root: Path, story: Story) -> None:
        self.story = story
        self.node = Node(root)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(os, "fsync", lambda _: None)
            story.begin(self.node)
        self._tree: Tree = self.node.tree(history=True)
        self._clock = copy(self.node.clock)
        self.floor = self.node.floor()
        self.had_current = self.node.link("current") is not None

    def begin(self) -> Manager:
        """Put everything back, and return the acting process's manager."""
        self.lay(self._tree)
        self.node.clock = copy(self._clock)
        return self.node.manager(self.story.by)

    def lay(self, tree: Tree) -> None:
        """Make the disk be so."""
        write_tree(self.node.root, tree)

    def sane(self) -> None:
        """What holds of the disk at every instant, before anybody settles anything."""
        node, story = self.node, self.story
        layout = node.layout
        assert node.floor() >= self.floor
        if not story.lost:
            assert node.runs() in (story.old, story.target.version)
        if self.had_current:
            assert node.link("current") in ("bcd-a", "bcd-b")
        previous = node.link("previous")
        assert previous is None or os.path.isfile(os.path.join(layout.slots_dir, previous))
        if story.begin is not _without_floor:
            assert read_update(layout.update_record).state in ("good", "absent")
        assert read_pending(layout.pending_record).state in ("good", "absent")
        slots = read_slots(layout.slots_record)
        assert slots.state in ("good", "absent")
        for slot in ("a", "b"):
            record = None if slots.value is None else slots.value.of(slot)
            assert record is None or is_whole(layout.slots_dir, slot, record), slot

    def come_up(self) -> End:
        """Start the agent, let a gateway welcome what waits for it, and say how it ended."""
        node, target = self.node, self.story.target
        if self.story.lost and node.link("current") is None:
            last = node.manager(self.story.by).settle()
            if last.restart:
                last = node.start()[-1]
        else:
            last = node.start()[-1]
        if last.outcome is Outcome.PENDING:
            assert node.runs() == target.version
            assert node.manager().confirm() is not None
        failed = list(node.manager().look.failed())
        if last.outcome is Outcome.INTERRUPTED:
            assert failed == []  # what failed is never told as what may be tried again
        assert read_pending(node.layout.pending_record).state == "absent"
        assert not os.path.lexists(node.layout.rollback_marker)
        assert node.floor() >= self.floor
        assert all(settled.outcome is Outcome.SETTLED for settled in node.start())
        assert not [name for name in node.tree() if name.endswith(".tmp")]
        if node.runs() == target.version:
            assert failed == []
            assert node.floor() == target.sequence
            return "confirmed"
        assert node.runs() == self.story.old
        assert failed in ([], [target.version])
        return "failed" if failed else "idle"

    def try_again(self, end: End) -> None:
        """The same target once more: it runs, or was refused as failed until it was cleared."""
        node, target = self.node, self.story.target
        if end == "confirmed":
            assert node.manager().prepare(target.section, server_time=None) is None
            return
        if end == "failed":
            with pytest.raises(Refusal) as caught:
                node.manager().prepare(target.section, server_time=None)
            assert caught.value.code == "failed-version"
            assert [entry.version for entry in node.manager().clear_failed()] == [target.version]
        node.update(target)
        assert node.runs() == target.version
        assert node.floor() == target.sequence
        assert json.loads(Path(node.layout.update_record).read_bytes())["failed"] == []

    def go_on(self) -> End:
        """All of it, from wherever the disk stands."""
        self.sane()
        end = self.come_up()
        assert end in self.story.ends
        self.try_again(end)
        return end


def cut_at_step(step: str, cut: Callable[[], object]) -> pytest.MonkeyPatch:
    """Let `cut` be called when `step` is reached; the caller undoes it."""

    def reached(name: str) -> None:
        if name == step:
            cut()

    patched = pytest.MonkeyPatch()
    patched.setattr(steps, "reached", reached)
    return patched
