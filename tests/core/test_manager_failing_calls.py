"""A disk that refuses: whichever call that changes it fails, once or until it is well again, the process that met it
says so by a code, leaves links and records that fit together, and goes on by itself (field reports 05, 29, 35).
"""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bcd.core.answers import Settled
from bcd.core.errors import HostError
from bcd.core.manager import Manager
from tests.core.faulty_os import Refusals, each_call
from tests.core.node_root import Entry, quick_directory
from tests.core.update_stories import STORIES, Scene

ERRORS = (errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO, errno.EDQUOT)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where recovery's own fsync, which is not what is tested, takes no time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    with quick_directory(tmp_path) as made:
        yield made / "node"


def met(scene: Scene, manager: Manager) -> HostError | None:
    """Act; what went wrong, whether raised or returned."""
    try:
        made = scene.story.act(manager)
    except HostError as error:
        return error
    return made.stayed if isinstance(made, Settled) else None


@pytest.mark.parametrize("once", [True, False], ids=["once", "until well"])
@pytest.mark.parametrize("name", STORIES)
def test_whatever_the_disk_refuses_can_be_tried_again(root: Path, name: str, once: bool) -> None:
    """By the same process, which need not be started anew for it; then by whoever starts next."""
    scene = Scene(root, STORIES[name])
    met_before: set[frozenset[tuple[str, Entry]]] = set()
    first, refused, disk = 0, 0, None
    while disk is None or len(disk.calls) >= first:
        first += 1
        number = ERRORS[first % len(ERRORS)]
        manager = scene.begin()
        disk = Refusals(number, first, once=once)
        try:
            with each_call(disk):
                error = met(scene, manager)
                disk.well = True
                scene.sane()
                if error is not None:
                    refused += 1
                    assert error.code == ("no-space" if number in (errno.ENOSPC, errno.EDQUOT) else "io-error")
                    assert error.retryable
                    goes_on(scene, manager)
            # Most calls leave one of a few states: each of them is gone on from once.
            lies = frozenset(scene.node.tree().items())
            if lies not in met_before:
                met_before.add(lies)
                scene.go_on()
        except BaseException as failure:
            failure.add_note(f"call {first} of {disk.calls} refused with {os.strerror(number)}")
            raise
    assert refused > 0


def goes_on(scene: Scene, manager: Manager) -> None:
    """The same process asks again on a disk that is well: the work is done, or was done already."""
    try:
        made = scene.story.act(manager)
    except HostError as error:
        if error.code != "update-in-progress":
            raise
        # A swap that can't be undone either: the next start settles it, since it runs what `current` names.
        assert scene.node.runs() == scene.story.target.version
    else:
        assert scene.story.again(made)
        assert not isinstance(made, Settled) or made.stayed is None
