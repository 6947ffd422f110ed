"""One agent a data directory: a lock that the kernel frees when its holder ends, however it ends.

The fault: a second `bcd node`, started by hand beside the service, takes over the socket, answers the same commands
and swaps under the first one's feet. The update lock is no help, since it is held for seconds only.

Across an update the lock must have no gap, in which a second agent could come first and the new binary would then
refuse to start, and no deadlock, in which the new binary is kept out by its own process. So the very descriptor is
handed over by exec: it is closed on exec like any other (no child holds the lock on), but for the moment of the
exec itself. The next binary finds it among its own, whatever the environment says; one that knows nothing of it just
keeps it open, and so holds the lock all the same.
"""

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bcd.core.errors import HostError

LOCK_NAME = "node.lock"
_WAIT_SECONDS = 1.0
"""For an agent that is just ending."""
_POLL_SECONDS = 0.05
_MOST_DESCRIPTORS = 1024
"""How many are tried where there is no /proc to list them."""

_log = logging.getLogger(__name__)


class AgentLock:
    """The lock of one data directory, held until `close` or the end of the process."""

    def __init__(self, data_dir: str, *, wait_seconds: float = _WAIT_SECONDS) -> None:
        """Take it.

        Raises:
            HostError: `agent-running`, another agent holds it.
        """
        path = os.path.join(data_dir, LOCK_NAME)
        self._handle: int | None = None
        try:
            # Its owner's alone: whoever may read a file may lock it, and so keep an agent from starting.
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            # A disk that can't be written is a reason not to update, and none not to run (field report 35).
            _log.warning("whether another agent runs on %s can't be told: %s", data_dir, error.strerror)
            return
        inherited = _inherited(os.fstat(handle))
        if inherited is not None:
            os.close(handle)
            handle = inherited
            os.set_inheritable(handle, False)
        try:
            _lock(handle, data_dir, wait_seconds)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        with suppress(OSError):  # only words for whoever comes second
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)

    @contextmanager
    def handed_over(self) -> Iterator[None]:
        """Let an exec in here keep the lock; whoever comes out of here alive, since the exec failed, has it still."""
        if self._handle is not None:
            os.set_inheritable(self._handle, True)
        try:
            yield
        finally:
            if self._handle is not None:
                os.set_inheritable(self._handle, False)

    def close(self) -> None:
        """Let go of it."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _lock(handle: int, data_dir: str, wait_seconds: float) -> None:
    until = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < until:
                time.sleep(_POLL_SECONDS)
                continue
            raise HostError(
                "agent-running",
                f"another agent{_whose(handle)} runs on {data_dir}, and two would undo each other's updates",
                "stop that one first (systemctl stop bcd.service), or give this one a [node] data_dir of its own",
            ) from None
        except OSError as error:
            _log.warning("whether another agent runs on %s can't be told: %s", data_dir, error.strerror)
        return


def _whose(handle: int) -> str:
    try:
        said = os.pread(handle, 32, 0).strip()
    except OSError:
        return ""
    return f" (process {int(said)})" if said.isdigit() else ""


def _inherited(lock: os.stat_result) -> int | None:
    """The descriptor of this file that an exec handed over: the only ones of this process that survive another."""
    try:
        found = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    except OSError:
        found = list(range(_MOST_DESCRIPTORS))
    for handle in found:
        with suppress(OSError):
            there = os.fstat(handle)
            if (there.st_dev, there.st_ino) == (lock.st_dev, lock.st_ino) and os.get_inheritable(handle):
                return handle
    return None
