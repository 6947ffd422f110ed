"""A disk that goes wrong at a chosen call: core's calls that change the disk, counted, and what happens at the n-th.

Three kinds of fault. `cut`: the process is gone at that call, and so is every call after it. `fail`: the call is
refused with an errno, once or until the disk is well again. And `Powerless`: a cut, after which only what was fsynced
is on the disk. fsync itself does nothing here but count: what it is for is modelled, and a real one is slow.
"""

import errno
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


class Cut(BaseException):
    """The process ends here."""


Fault = Callable[[str], None]
"""Told the call at which it is its turn; raises."""


def cut(_call: str) -> None:
    """The process ends."""
    raise Cut


def failing(number: int) -> Fault:
    """The call is refused with an errno."""

    def fail(call: str) -> None:
        raise OSError(number, os.strerror(number), f"<{call}>")

    return fail


class Disk:
    """What core did to the disk."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.faulty = True


@contextmanager
def faults(first: int, fault: Fault, *, once: bool = False, watch: "Power | None" = None) -> Iterator[Disk]:
    """Let `fault` happen at the `first` call (counted from 1), and, unless `once`, at every later one."""
    disk = Disk()
    real = {name: getattr(os, name) for name in (*CALLS, "open")}

    def turn(name: str) -> None:
        disk.calls.append(name)
        count = len(disk.calls)
        if disk.faulty and (count == first or (count > first and not once)):
            fault(name)

    def wrapped(name: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            turn(name)
            if name == "fsync":
                if watch is not None:
                    watch.synced(given[0])
                return None
            made = real[name](*given, **named)
            if name == "symlink" and watch is not None:
                watch.made(str(given[1]))
            return made

        return call

    def open_(path: Any, flags: int, *given: Any, **named: Any) -> int:
        if not flags & os.O_CREAT:
            return int(real["open"](path, flags, *given, **named))
        turn("open")
        handle = int(real["open"](path, flags, *given, **named))
        if watch is not None:
            watch.opened(handle)
        return handle

    with pytest.MonkeyPatch.context() as patched:
        for name in CALLS:
            patched.setattr(os, name, wrapped(name))
        patched.setattr(os, "open", open_)
        yield disk
