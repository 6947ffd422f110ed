"""The service's log, followed: journalctl where systemd keeps it, a file otherwise. For a thread of its own."""

import os
import subprocess
import time
from collections.abc import Iterator
from typing import Protocol

from bcd.core.text import clean

_FIRST_LINES = 200
_CHUNK_BYTES = 1024 * 1024
_LINE_BYTES = 64 * 1024


class Journal(Protocol):
    """Where a service's log comes from."""

    def source(self) -> str:
        """What it is, for people."""

    def follow(self) -> Iterator[list[str]]:
        """Lines as they come, made safe to show; ends when there is nothing to follow."""

    def close(self) -> None:
        """Leave nothing running behind."""


class NoJournal:
    """There is no log to be had here, and why."""

    def __init__(self, why: str) -> None:
        self._why = why

    def source(self) -> str:
        """The reason."""
        return self._why

    def follow(self) -> Iterator[list[str]]:
        """Nothing."""
        yield from ()

    def close(self) -> None:
        """Nothing runs."""


class SystemdJournal:
    """`journalctl -f` of a unit."""

    def __init__(self, unit: str) -> None:
        self._command = ["journalctl", "--no-pager", "-o", "short-iso", "-n", str(_FIRST_LINES), "-f", "-u", unit]
        self._running: subprocess.Popen[str] | None = None

    def source(self) -> str:
        """The command."""
        return " ".join(self._command)

    def follow(self) -> Iterator[list[str]]:
        """Its lines, one at a time."""
        try:
            self._running = running = subprocess.Popen(  # noqa: S603  # a fixed command
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        except OSError as error:
            yield [f"journalctl could not be started: {error.strerror}"]
            return
        assert running.stdout is not None  # noqa: S101  # it is a pipe
        for line in running.stdout:
            yield [clean(line.rstrip("\n"))]

    def close(self) -> None:
        """End journalctl, which would go on until its next line."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()


class LogFile:
    """A log file's tail, across its being cut or replaced."""

    def __init__(self, path: str, *, pause_seconds: float = 0.5) -> None:
        self._path = path
        self._pause_seconds = pause_seconds

    def source(self) -> str:
        """The path."""
        return self._path

    def follow(self) -> Iterator[list[str]]:
        """What is in it, then what comes."""
        at, rest, identity = 0, b"", (0, 0)
        while True:
            try:
                found = os.stat(self._path)
                # Another file, or one that was cut: from its beginning.
                if (found.st_dev, found.st_ino) != identity or found.st_size < at:
                    at, rest, identity = 0, b"", (found.st_dev, found.st_ino)
                data = self._from(at) if found.st_size > at else b""
            except OSError:
                data = b""
            at += len(data)
            # What has no newline yet is half of a line: its other half comes, or it is too long for one.
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > _LINE_BYTES:
                lines, rest = [*lines, rest], b""
            if lines:
                yield [clean(line.decode("utf-8", "replace").rstrip("\r")) for line in lines[-_FIRST_LINES:]]
            if len(data) < _CHUNK_BYTES:
                time.sleep(self._pause_seconds)

    def _from(self, at: int) -> bytes:
        # O_NONBLOCK: a FIFO in its place must hang nobody.
        handle = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.pread(handle, _CHUNK_BYTES, at)
        finally:
            os.close(handle)

    def close(self) -> None:
        """The file is open only while it is read."""
