"""The first code of the lab's binaries: put right what the packing changed, arm the lab's power cut, be bcd.

A power cut strikes at a named step (`bcd.core.steps`), armed from outside: the environment names a file, and a process
that reaches the step in the file's first line takes that line away (with the last one the file) and kills itself with
SIGKILL. So it cuts the same in the agent that swaps, in the new binary that confirms and in whichever process rolls
back, and each line cuts once. The wall clock is stepped from outside in the same way (see `bcd.lab.clock`).
"""

import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from bcd.core import steps
from bcd.lab.clock import CLOCK_FILE_VARIABLE, step_this_process

FAULT_FILE_VARIABLE = "BCD_LAB_FAULT_FILE"
_ARCHIVE = 9
"""The descriptor by which the launcher hands the open binary to Python (see `packing`)."""


def run() -> NoReturn:
    """Be the `bcd` command; ends the process with its exit status."""
    del sys.argv[0]  # the archive's descriptor; what follows is argv as bcd was started with it
    os.set_inheritable(_ARCHIVE, False)
    fault_file = os.environ.get(FAULT_FILE_VARIABLE)
    if fault_file:
        cut_power_by(Path(fault_file))
    clock_file = os.environ.get(CLOCK_FILE_VARIABLE)
    if clock_file:
        step_this_process(Path(clock_file))
    from bcd.cli import main  # noqa: PLC0415  # only after the fault is in place

    sys.exit(main(sys.argv[1:]))


def cut_power_by(fault_file: Path) -> None:
    """From now on, die at the step in the first line of `fault_file`."""
    told = steps.reached

    def reached(step: str) -> None:
        told(step)
        try:
            armed = fault_file.read_text(encoding="ascii").split()
        except OSError:
            return
        if armed[:1] == [step]:
            if armed[1:]:
                fault_file.write_text("\n".join(armed[1:]), encoding="ascii")
            else:
                fault_file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    steps.reached = reached
