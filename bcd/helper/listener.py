"""The helper's socket: made with the right owner and mode from the start, or taken over from systemd.

The attack: a socket that is bound first and restricted afterwards can be connected to in between. So it is bound under
a name that nobody knows yet, with no permissions at all, gets its group and mode, listens, and is then renamed into
place over whatever a dead helper left. The directory is root's alone (`guard`), so the names are nobody else's.
"""

import fcntl
import os
import socket
import stat
from contextlib import suppress

from bcd.core.durable import host_error, make_directories, remove_if_there, temporary_name
from bcd.core.errors import HostError, UsageError

MODE = 0o660
_BACKLOG = 64
_FIRST_FD = 3


class Listener:
    """A listening socket and, where it is ours, the lock that says that one helper serves it."""

    def __init__(self, listening: socket.socket, lock: int | None, path: str | None) -> None:
        self.socket = listening
        self._lock = lock
        self._path = path

    def close(self) -> None:
        """Stop listening; a socket that we made is removed."""
        if self._path is not None:
            with suppress(OSError):
                remove_if_there(self._path)
        self.socket.close()
        if self._lock is not None:
            os.close(self._lock)


def listen(path: str, gid: int) -> Listener:
    """Make the socket at `path`, for root and the group `gid`.

    Raises:
        HostError: `helper-running`, another helper serves it; `io-error`.
    """
    directory, name = os.path.split(path)
    try:
        make_directories(directory)
        lock = os.open(
            os.path.join(directory, f"{name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
    except OSError as error:
        raise host_error(error, "make the helper's socket") from error
    try:
        _take(lock, path)
        return Listener(_bind(path, os.path.join(directory, temporary_name(name)), gid), lock, path)
    except BaseException as error:
        os.close(lock)
        if isinstance(error, OSError):
            raise host_error(error, "make the helper's socket") from error
        raise


def _take(lock: int, path: str) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise HostError(
            "helper-running", f"another helper serves {path}", "stop it first: systemctl stop bcd-helper.service"
        ) from None


def _bind(path: str, temporary: str, gid: int) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        before = os.umask(0o777)
        try:
            made.bind(temporary)
        finally:
            os.umask(before)
        os.chown(temporary, 0, gid, follow_symlinks=False)
        os.chmod(temporary, MODE)
        made.listen(_BACKLOG)
        os.rename(temporary, path)
    except BaseException:
        made.close()
        with suppress(OSError):
            remove_if_there(temporary)
        raise
    return made


def inherited(path: str, gid: int) -> Listener | None:
    """The socket that systemd listens on for us, checked; None where it passed none.

    Raises:
        UsageError: `bad-socket`, it is none that only root and the node's group can reach, or has another path.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    count = os.environ.get("LISTEN_FDS")
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):
        os.environ.pop(name, None)  # no child of ours is meant
    hint = "in bcd-helper.socket: ListenStream= the configured path, SocketUser=root, SocketGroup= the node's, SocketMode=0660"
    if count != "1":
        raise UsageError("bad-socket", f"systemd passed {count} sockets, not one", hint)
    try:
        passed = socket.socket(fileno=_FIRST_FD)
        listens = passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise UsageError("bad-socket", f"what systemd passed is no socket: {error.strerror}", hint) from error
    passed.setblocking(False)
    os.set_inheritable(_FIRST_FD, False)
    bound = passed.getsockname() if passed.family == socket.AF_UNIX else ""
    if bound != path or passed.type != socket.SOCK_STREAM or not listens:
        raise UsageError("bad-socket", f"systemd's socket is {bound!r}, not {path} to listen on", hint)
    try:
        found = os.lstat(path)
    except OSError as error:
        raise UsageError("bad-socket", f"{path} can't be looked at: {error.strerror}", hint) from error
    if found.st_uid != 0 or found.st_gid != gid or stat.S_IMODE(found.st_mode) & ~MODE:
        raise UsageError(
            "bad-socket",
            f"{path} has uid {found.st_uid}, gid {found.st_gid}, mode {stat.S_IMODE(found.st_mode):04o}",
            hint,
        )
    return Listener(passed, None, None)
