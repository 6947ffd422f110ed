"""The two links, `current` and `previous`, and the one way to move them.

The crash (field report 28): a link that is removed and made anew leaves, for a moment, no launcher at all. Here a
temporary link is renamed over the old one, so that at every instant `current` names one slot or the other.
"""

import os
from typing import Literal, NamedTuple

from bcd.core.durable import remove_if_there, sync_directory, temporary_name

Slot = Literal["a", "b"]

SLOTS: tuple[Slot, Slot] = ("a", "b")

CURRENT = "current"
PREVIOUS = "previous"


def other_slot(slot: Slot) -> Slot:
    """The slot that `slot` is not."""
    return "b" if slot == "a" else "a"


def slot_file(slot: Slot) -> str:
    """The name of a slot's file in the slots directory."""
    return f"bcd-{slot}"


class Link(NamedTuple):
    """Where a link points."""

    slot: Slot | None
    """The slot it names; None where it is absent, no link, or names something else."""
    target: str | None
    """Its text; None where there is no link."""
    present: bool
    """Whether anything has this name."""


def read_link(slots_dir: str, name: str) -> Link:
    """Read one of the two links. Only the relative name of a slot is ours; nothing else is followed.

    Raises:
        OSError: it could not be looked at (not permitted, say).
    """
    path = os.path.join(slots_dir, name)
    try:
        target = os.readlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return Link(None, None, present=False)
    except OSError:
        os.lstat(path)
        return Link(None, None, present=True)
    for slot in SLOTS:
        if target == slot_file(slot):
            return Link(slot, target, present=True)
    return Link(None, target, present=True)


def switch_link(path: str, target: str) -> None:
    """Make `path` a link to `target`, by one atomic rename over whatever file or link is there; durable.

    Raises:
        OSError: it is not known to have moved. `path` is as it was, or, where only the directory's fsync failed, names
            `target`, which a crash may take back. No temporary link stays.
    """
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, temporary_name(name))
    os.symlink(target, temporary)
    try:
        os.rename(temporary, path)
    except OSError:
        remove_if_there(temporary)
        raise
    sync_directory(directory)
