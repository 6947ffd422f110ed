"""A console in a real terminal: a pseudo-terminal of ours, and a process whose controlling terminal it is."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALTERNATE_ON, ALTERNATE_OFF = b"\x1b[?1049h", b"\x1b[?1049l"
CURSOR_SHOWN = b"\x1b[?25h"
SCRIPT = """
import signal, sys
{before}
from bcd.core.exits import ExitStatus
from bcd.tui.app import ConsoleApp
from tests.tui import states
from tests.tui.consoles import World
world = World(states.many_failed())
app = world.app({start_at!r}, signals=True)
{after}
app.run(mouse=False)
code = app.return_code
sys.exit(ExitStatus.CRASH if code == 1 else code or 0)
"""
"""What `run_console` does, over a world of values."""


class Terminal:
    """A console in a terminal of `columns`x`rows`."""

    def __init__(
        self,
        columns: int = 160,
        rows: int = 40,
        *,
        before: str = "",
        after: str = "",
        start_at: str = "overview",
        environment: dict[str, str] | None = None,
        command: list[str] | None = None,
    ) -> None:
        code = SCRIPT.format(before=before, after=after, start_at=start_at)
        self.pid, self.master = pty.fork()
        if self.pid == 0:  # pragma: no cover  # another process
            os.chdir(ROOT)
            usual = {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
            given = {**os.environ, **usual, **(environment or {})}
            line = command or [sys.executable, "-c", code]
            os.execve(line[0], line, given)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.seen = b""
        self.status: int | None = None
        """How it ended; negative for a signal that killed it."""

    def read(self, seconds: float = 0.05) -> bool:
        """Take what was written; False when nobody can write any more."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return False
            self.seen += data
            return bool(data)
        return True

    def wait_for(self, part: bytes, seconds: float = 20.0) -> None:
        """Wait until `part` was written since the last look."""
        end = time.monotonic() + seconds
        while part not in self.seen:
            assert self.read(), f"it ended: {self.seen[-2000:]!r}"
            assert time.monotonic() < end, f"{part!r} did not come: {self.seen[-2000:]!r}"

    def send(self, data: bytes) -> None:
        """Type."""
        os.write(self.master, data)

    def settle(self, seconds: float = 0.5) -> None:
        """Read on for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self.read():
                return

    def wait_end(self, seconds: float = 2.0) -> int:
        """Wait until the process is gone, which it must be within `seconds`, and return how it ended."""
        end = time.monotonic() + seconds
        while not self._ended():
            assert time.monotonic() < end, "it runs on"
            if self.master < 0 or not self.read(0.02):
                time.sleep(0.02)
        if self.master >= 0:
            self.settle(0.1)
        assert self.status is not None
        return self.status

    def _ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def hang_up(self) -> None:
        """Close the terminal's other end."""
        os.close(self.master)
        self.master = -1

    def close(self) -> None:
        """End it, whatever it does."""
        if not self._ended():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.master >= 0:
            self.hang_up()
