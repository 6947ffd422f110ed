"""Whose file system a descriptor leads to: one that a user mounted answers when that user likes, or never.

The attack: the node's user mounts a file system of its own (FUSE needs no root) over staging or the staged file, and
root, asking it for a byte, waits for ever. `O_PATH` asks it nothing, so whoever opens that way first can look here
before the first question.
"""

import os
from typing import NamedTuple

_INFO, _MOUNTS = "/proc/self/fdinfo", "/proc/self/mountinfo"


class Mount(NamedTuple):
    """One line of the kernel's table."""

    point: str
    kind: str
    """The file system's type: `ext4`, `fuse.sshfs`."""
    options: str
    """The file system's own."""

    @property
    def user(self) -> int | None:
        """The uid that mounted it and answers for it; None where that was root."""
        if not self.kind.startswith("fuse"):
            return None
        told = dict(option.partition("=")[::2] for option in self.options.split(","))
        uid = told.get("user_id", "0")
        return int(uid) if uid.isdecimal() and uid != "0" else None


def mount_of_handle(handle: int) -> Mount | None:
    """The mount that an open descriptor, `O_PATH` too, is on; None where it is none of this process's mounts.

    Raises:
        OSError: the kernel's tables can't be read.
    """
    with open(f"{_INFO}/{handle}", encoding="ascii") as info:
        wanted = next((line.split()[1] for line in info if line.startswith("mnt_id:")), None)
    with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            fields = line.split()
            if fields[0] == wanted:
                mark = fields.index("-")
                return Mount(os.path.normpath(fields[4]), fields[mark + 1], fields[mark + 3])
    return None
