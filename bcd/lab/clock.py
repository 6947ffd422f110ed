"""The lab's wall clock: the machine's, stepped by as many seconds as a file says.

Only the lab has it: the first code of the lab's own binaries (`bcd.lab.binary`) and the console over a lab. Nothing in
`bcd.core` or `bcd.node` asks a file or a variable for the time. The boot clock is never stepped: no machine steps it.
"""

import os
from pathlib import Path

from bcd.core.clock import SystemClock

CLOCK_FILE_VARIABLE = "BCD_LAB_CLOCK_FILE"


def set_step(file: Path, seconds: int) -> None:
    """Have every clock that reads `file` be `seconds` ahead of the machine's from now on; 0 makes it true again."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(str(seconds), encoding="ascii")
    os.replace(new, file)


def stepped_by(file: Path) -> int:
    """How many seconds ahead a clock that reads `file` is; 0 where nothing was stepped."""
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


class SteppedClock(SystemClock):
    """The clock of a lab's node, for whoever looks at it from outside."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def wall(self) -> float:
        """Unix seconds, stepped."""
        return super().wall() + stepped_by(self._file)


def step_this_process(file: Path) -> None:
    """From now on, let the system's clock in this process be the stepped one: for the lab's binaries alone."""
    true = SystemClock.wall
    SystemClock.wall = lambda self: true(self) + stepped_by(file)  # type: ignore[method-assign]  # that is the purpose
