"""Telling systemd that a service is ready: one datagram (sd_notify(3)), nothing where none is awaited."""

import os
import socket
from contextlib import suppress


def notify(state: str) -> None:
    """Send `READY=1` or the like to whoever started this service. A failure to is none of the service's."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto(state.encode(), "\0" + path[1:] if path.startswith("@") else path)
