"""Who may change the way to a place: each directory on it, links resolved step by step (section 10).

The attack: whoever may write one directory on the way to the slots, the entrypoint, root's configuration or the
helper's socket puts another in its place, and so chooses what root reads or starts.
"""

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

_OTHERS_MAY_WRITE = 0o022
_LINKS_LIMIT = 40


class Step(NamedTuple):
    """One thing on the way."""

    path: str
    uid: int
    mode: int
    """As stat gives it."""

    @property
    def is_roots_alone(self) -> bool:
        """Owner root, not writable by group or others; a link has no mode of its own."""
        return self.uid == 0 and (stat.S_ISLNK(self.mode) or not self.mode & _OTHERS_MAY_WRITE)


def way_to(path: str) -> Iterator[Step]:
    """Yield every directory and link on the way to an absolute `path`, itself included, as far as it exists.

    Raises:
        OSError: a step can't be looked at, or is a file where a directory should be; ELOOP for links without end.
    """
    done, todo, links = "/", [part for part in path.split("/") if part], 0
    yield _look("/")
    while todo:
        part = todo.pop(0)
        if part in (".", ""):
            continue
        if part == "..":
            done = os.path.dirname(done)
            continue
        here = os.path.join(done, part)
        try:
            step = _look(here)
        except FileNotFoundError:
            return
        yield step
        if not stat.S_ISLNK(step.mode):
            done = here
            continue
        links += 1
        if links > _LINKS_LIMIT:
            os.stat(path)  # the kernel's own ELOOP, or an end that moved meanwhile
            return
        target = os.readlink(here)
        if target.startswith("/"):
            done = "/"
        todo = [*target.split("/"), *todo]


def _look(path: str) -> Step:
    found = os.lstat(path)
    return Step(path, found.st_uid, found.st_mode)
