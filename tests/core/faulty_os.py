"""Core's calls that change the disk, one by one: what is there between two of them, and what if one is refused.

`each_call` tells of every such call before it happens. Whoever is told may look at the disk, which is how a process
that is killed there would leave it, or raise an error, which is how a disk that is full, read-only or broken answers.
`Power` knows what of it would be there still if the power went. fsync itself does nothing here but count: what it is
for is modelled, and a real one is slow.
"""

import itertools
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.core.node_root import Entry, Tree, read_tree

CALLS = ("write", "fsync", "fchmod", "chmod", "mkdir", "rmdir", "rename", "replace", "symlink", "unlink", "ftruncate")
"""`open` counts too, where it may make a file."""


class Refusals:
    """A disk that refuses calls: the n-th, counted from 1, or all from the n-th on until it is well again."""

    def __init__(self, number: int, first: int, *, once: bool) -> None:
        self._errno = number
        self._first = first
        self._once = once
        self.calls: list[str] = []
        self.well = False

    def __call__(self, call: str) -> None:
        self.calls.append(call)
        count = len(self.calls)
        if not self.well and (count == self._first or (count > self._first and not self._once)):
            raise OSError(self._errno, os.strerror(self._errno), f"<{call}>")


@contextmanager
def each_call(turn: Callable[[str], None], power: "Power | None" = None) -> Iterator[None]:
    """Tell `turn` of each call before it is made, and `power` what became durable."""
    real = {name: getattr(os, name) for name in (*CALLS, "open")}

    def wrapped(name: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            turn(name)
            if name != "fsync":
                return real[name](*given, **named)
            if power is not None:
                power.synced(given[0])
            return None

        return call

    def open_(path: Any, flags: int, *given: Any, **named: Any) -> int:
        if not flags & os.O_CREAT:
            return int(real["open"](path, flags, *given, **named))
        turn("open")
        fresh = not os.path.lexists(path)
        handle = int(real["open"](path, flags, *given, **named))
        if fresh and power is not None:
            power.made(handle)
        return handle

    with pytest.MonkeyPatch.context() as patched:
        for name in CALLS:
            patched.setattr(os, name, wrapped(name))
        patched.setattr(os, "open", open_)
        # The same every time, so that equal states of the disk are equal trees.
        numbers = itertools.count()
        patched.setattr(os, "urandom", lambda size: next(numbers).to_bytes(size))
        yield


class Power:
    """What of a tree is durable: a file's bytes and mode as of its last fsync, a directory's names as of its own.

    All that is there at first is. A new file is empty and a new directory has no names until it is fsynced.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files: dict[int, tuple[int, bytes]] = {}
        self._names: dict[int, dict[str, os.stat_result | str]] = {}
        for directory, _, files in os.walk(root):
            self._keep_names(directory)
            for name in files:
                self._keep_bytes(os.path.join(directory, name))

    def made(self, handle: int) -> None:
        """A file was made, empty, with the mode that it was opened with."""
        found = os.fstat(handle)
        self._files[found.st_ino] = (stat.S_IMODE(found.st_mode), b"")

    def synced(self, handle: int) -> None:
        """A file or a directory was fsynced."""
        path = os.readlink(f"/proc/self/fd/{handle}")
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            self._keep_names(path)
        else:
            self._keep_bytes(path)

    def _keep_names(self, directory: str) -> None:
        names: dict[str, os.stat_result | str] = {}
        for name in os.listdir(directory):
            found = os.lstat(os.path.join(directory, name))
            is_link = stat.S_ISLNK(found.st_mode)
            names[name] = os.readlink(os.path.join(directory, name)) if is_link else found
        self._names[os.stat(directory).st_ino] = names

    def _keep_bytes(self, path: str) -> None:
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode):
            self._files[found.st_ino] = (stat.S_IMODE(found.st_mode), Path(path).read_bytes())

    def lost_all(self) -> Tree:
        """What is there after the power went and nothing but what was fsynced survived."""
        tree: Tree = {}
        self._add(tree, "", os.stat(self._root).st_ino)
        return tree

    def _add(self, tree: Tree, prefix: str, directory: int) -> None:
        for name, found in self._names.get(directory, {}).items():
            path = prefix + name
            if isinstance(found, str):
                tree[path] = Entry("link", 0, os.fsencode(found))
            elif stat.S_ISDIR(found.st_mode):
                tree[path] = Entry("dir", stat.S_IMODE(found.st_mode), b"")
                self._add(tree, f"{path}/", found.st_ino)
            else:
                tree[path] = Entry("file", *self._files[found.st_ino])

    def lost_data(self) -> Tree:
        """What is there after the power went and every name survived, but of the bytes only what was fsynced."""
        tree = read_tree(self._root)
        for path, entry in tree.items():
            if entry.kind == "file":
                tree[path] = Entry("file", *self._files[os.lstat(self._root / path).st_ino])
        return tree
