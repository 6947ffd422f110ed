"""What a disk holds, as one value: for the tests that say that nothing changed."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    """One name in a tree."""

    kind: str
    """`file`, `dir`, `link`, `fifo`, `socket` or `device`."""
    mode: int
    """Permission bits; 0 for a link, which has none of its own."""
    content: bytes
    """A file's bytes, or a link's target."""


_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "dir",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def entry(path: str | Path) -> Entry:
    """What has this name; nothing is followed."""
    found = os.lstat(path)
    kind = _KINDS[stat.S_IFMT(found.st_mode)]
    if kind == "link":
        return Entry(kind, 0, os.fsencode(os.readlink(path)))
    return Entry(kind, stat.S_IMODE(found.st_mode), _read(Path(path)) if kind == "file" else b"")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except PermissionError:  # a file without rights, looked at without root's
        return b"(unreadable)"


def snapshot(root: Path) -> dict[str, Entry]:
    """Everything below `root` and itself, by the path relative to it."""
    found = {".": entry(root)}
    for directory, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(directory, name)
            found[os.path.relpath(path, root)] = entry(path)
    return found


@contextmanager
def unchanged(root: Path) -> Iterator[None]:
    """What happens inside leaves everything below `root` as it is."""
    before = snapshot(root)
    yield
    assert snapshot(root) == before


def open_files() -> list[str]:
    """What this process has open, for the tests that say that nothing stays so."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:  # the listing's own
            continue
    return sorted(found)
