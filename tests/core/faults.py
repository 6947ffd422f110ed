"""System calls that fail when they are told to, and a list of those that were made."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

Call = tuple[str, str]
"""A system call's name, and the name of the file that it was about."""


def _named(name: str, args: tuple[Any, ...]) -> str:
    if name in {"fsync", "write", "fchmod", "close"}:
        return os.path.basename(os.readlink(f"/proc/self/fd/{args[0]}"))
    path: str = args[1] if name in {"rename", "symlink"} else args[0]
    return os.path.basename(path)


@contextmanager
def recorded(*names: str) -> Iterator[list[Call]]:
    """Note each call of these functions of `os`, in order."""
    calls: list[Call] = []

    def noting(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            calls.append((name, _named(name, args)))
            return real(*args, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(os, name, noting(name, getattr(os, name)))
        yield calls


@contextmanager
def failing(
    name: str, number: int = errno.ENOSPC, *, on: int = 1, first: Callable[..., Any] | None = None
) -> Iterator[None]:
    """Let the `on`th call of one function of `os` fail; `first` is done before it does."""
    real, calls = getattr(os, name), 0

    def call(*args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls != on:
            return real(*args, **more)
        if first is not None:
            first(*args, **more)
        raise OSError(number, os.strerror(number))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, name, call)
        yield
    assert calls >= on, f"{name} was called {calls} times"


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """Under another umask."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
