"""From this process into whatever the entrypoint leads to now: same arguments, same environment, same pid.

Through the entrypoint, never through the path of the running file: that one names the old slot (field report 18). The
packed binary adds nothing to the environment (ADR 0008), so there is nothing to take out of it.
"""

import os
import sys
from contextlib import suppress
from typing import NoReturn


def exec_entrypoint(entrypoint: str) -> NoReturn:
    """Become the entrypoint's program. Returns only by raising OSError, when that could not be done."""
    for stream in (sys.stdout, sys.stderr):
        # A log that nobody reads any more, or a full disk under it, must not pass for a program that can't be started:
        # that would roll a good release back, and fail it for good.
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os.execve(entrypoint, [entrypoint, *sys.argv[1:]], os.environ)  # noqa: S606  # the point of it
