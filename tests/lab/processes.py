"""Looking at processes from outside."""

import os
import time
from collections.abc import Callable
from pathlib import Path

SECONDS = 30.0


def until(happened: Callable[[], bool]) -> None:
    """Wait for something; a test that waits in vain has failed."""
    end = time.monotonic() + SECONDS
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def nodes_in(directory: Path) -> list[int]:
    """The processes that run anything from beneath `directory`, other than the lab itself."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(directory) in command and b"/nodes/" in command:
            found.append(int(entry.name))
    return found
