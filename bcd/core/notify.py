"""Telling systemd how a service fares: one datagram (sd_notify(3)), nothing where none is awaited.

A service that execs its next binary keeps its pid and stays `active`: systemd never waits for that binary as it waits
for one that it starts itself. A binary that hangs before its first line has no timer of its own yet, and would stay
for ever. So the exec gets a start's time limit too: `leaving` has systemd end the process unless the next binary says
`ready` in time. From there on it is a failed start like any other (spec/self-update.md section 9).
"""

import os
import socket
from contextlib import suppress

from bcd.core.text import clean

START_SECONDS = 60
"""From the exec to `ready`; what `TimeoutStartSec=` in bcd.service gives a start."""
_NO_LIMIT = "WATCHDOG_USEC=0"


def ready(status: str) -> None:
    """The service does its work; whatever limit the binary before set is lifted."""
    notify("READY=1", _NO_LIMIT, f"STATUS={clean(status)}")


def leaving() -> None:
    """An exec comes: what it starts has `START_SECONDS` to be ready."""
    notify(f"WATCHDOG_USEC={START_SECONDS * 1_000_000}", "STATUS=replaced by the entrypoint's program")


def staying() -> None:
    """The exec failed: no limit any more."""
    notify(_NO_LIMIT)


def notify(*lines: str) -> None:
    """Send `READY=1` or the like to whoever started this service. A failure to is none of the service's."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.settimeout(1)  # a manager that reads nothing must not hold up an update
        sender.sendto("\n".join(lines).encode(), "\0" + path[1:] if path.startswith("@") else path)
