"""Ended at each named step, by an exception that unwinds everything or by SIGKILL, an update can go on.

The exception runs every `finally` and `except` on its way out, as Ctrl-C does: they must not make it worse. SIGKILL
runs none, and frees the lock all the same (field reports 11, 21).
"""

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from bcd.core import steps
from tests.core.node_root import Process, quick_directory
from tests.core.update_stories import STORIES, Scene

_SWAPPED = ("recorded", "previous-linked", "current-linked")
_STAGED = ("staged", *_SWAPPED)
_ADOPTED = ("adopt-slot-written", "adopt-current-linked", "adopted", *_STAGED)
_BACK = ("rollback-marked", "rollback-linked")
_FAILED = ("failure-recorded", "settled")

REACHED: dict[str, tuple[str, ...]] = {
    "first swap": _ADOPTED,
    "swap": _STAGED,
    "swap after an install": _ADOPTED,
    "swap by reuse": _SWAPPED,
    "swap without a floor": _STAGED,
    "launch": ("launched",),
    "refused": (),
    "confirm": ("floor-raised", "confirmed"),
    "finish confirm": ("settled",),
    "rollback": _BACK,
    "failed exec": _BACK,
    "late start": _BACK,
    "settle a rollback": _FAILED,
    "settle a failed exec": _FAILED,
    "settle an interruption": ("settled",),
    "restore": _FAILED,
    "clear": (),
}
"""Story -> the steps that it reaches, in order."""


class Cut(BaseException):
    """The end."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where fsync, which is not what is tested, takes no time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    with quick_directory(tmp_path) as made:
        yield made / "node"


def test_every_step_is_reached_by_a_story() -> None:
    """But for the download's, which happens before the manager's work."""
    assert REACHED.keys() == STORIES.keys()
    met = {step for reached in REACHED.values() for step in reached}
    assert met == set(steps.STEPS) - {"download-started", "downloaded"}


@pytest.mark.parametrize("name", STORIES)
def test_the_steps_come_in_order(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Each once, when what it says is done."""
    scene = Scene(root, STORIES[name])
    manager = scene.begin()
    met: list[str] = []
    monkeypatch.setattr(steps, "reached", met.append)
    scene.story.act(manager)
    assert tuple(met) == REACHED[name]


PLACES = [(name, step) for name, reached in REACHED.items() for step in reached]


@pytest.mark.parametrize(("name", "step"), PLACES)
def test_an_exception_at_a_step_leaves_what_can_go_on(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, step: str
) -> None:
    """Idle, pending and then confirmed, or failed: one of these, and the same update again."""
    scene = Scene(root, STORIES[name])
    manager = scene.begin()

    def reached(at: str) -> None:
        if at == step:
            raise Cut

    with monkeypatch.context() as patched:
        patched.setattr(steps, "reached", reached)
        with pytest.raises(Cut):
            scene.story.act(manager)
    scene.go_on()


@pytest.mark.parametrize(("name", "step"), PLACES)
def test_a_process_killed_at_a_step_leaves_what_another_can_settle(root: Path, name: str, step: str) -> None:
    """The lock is free at once, and a third process can go on."""
    scene = Scene(root, STORIES[name])
    manager = scene.begin()

    def killed(at: str) -> None:
        if at == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def act() -> None:
        pytest.MonkeyPatch().setattr(steps, "reached", killed)
        scene.story.act(manager)

    assert Process(act).ended() == -signal.SIGKILL
    scene.node.clock.passes(1)
    assert Process(scene.go_on).ended() == 0


@pytest.mark.parametrize("name", ["first swap", "swap", "confirm", "rollback", "settle a rollback"])
def test_a_process_killed_at_any_instant_leaves_what_can_go_on(root: Path, name: str) -> None:
    """Not at a step but wherever it was after 0, 0.5, 1, … milliseconds, until it was too late for once."""
    scene = Scene(root, STORIES[name])
    for delay in range(30):
        manager = scene.begin()
        process = Process(partial(scene.story.act, manager))
        time.sleep(delay / 2000)
        status = process.killed()
        scene.go_on()
        if status == 0:
            return
        assert status == -signal.SIGKILL
