"""Who is at the other end of the socket: the kernel's word (SO_PEERCRED), never the peer's."""

import os
import select
import signal
import socket
import struct
from contextlib import suppress
from typing import NamedTuple

_CREDENTIALS = struct.Struct("3i")


class Peer(NamedTuple):
    """The process that connected, at that moment."""

    pid: int
    uid: int


def peer_of(connection: socket.socket) -> Peer:
    """Ask the kernel. Raises OSError."""
    pid, uid, _gid = _CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return Peer(pid, uid)


class Held:
    """A process held by a descriptor, so that its number can't come to mean another one."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @classmethod
    def of(cls, peer: Peer) -> "Held | None":
        """Hold the peer; None where it ended, or its number was somebody else's already."""
        try:
            handle = os.pidfd_open(peer.pid)
        except OSError:
            return None
        try:
            # The attack: connect from a child that ends, and have root's signal meet whatever took its number.
            if os.stat(f"/proc/{peer.pid}").st_uid == peer.uid and not _ended(handle):
                return cls(handle)
        except OSError:
            pass
        os.close(handle)
        return None

    def stop(self, number: signal.Signals) -> bool:
        """Send a signal, and say whether the process was there to get it."""
        try:
            signal.pidfd_send_signal(self._handle, number)
        except OSError:
            return False
        return True

    @property
    def ended(self) -> bool:
        """Whether it is gone."""
        return _ended(self._handle)

    def close(self) -> None:
        """Let go."""
        with suppress(OSError):
            os.close(self._handle)


def _ended(handle: int) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(0))
