"""The service's log, followed: journalctl where systemd keeps it, a file otherwise. For a thread of its own."""

import subprocess
import time
from collections.abc import Iterator
from typing import Protocol

from bcd.core.text import clean

_FIRST_LINES = 200


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
        at = 0
        while True:
            try:
                with open(self._path, encoding="utf-8", errors="replace") as file:
                    at = 0 if file.seek(0, 2) < at else at
                    file.seek(at)
                    lines = [clean(line.rstrip("\n")) for line in file]
                    at = file.tell()
            except OSError:
                lines = []
            if lines:
                yield lines[-_FIRST_LINES:]
            time.sleep(self._pause_seconds)

    def close(self) -> None:
        """The file is open only while it is read."""
