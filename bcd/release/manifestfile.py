"""A manifest's file while it is being signed: whole at every instant, and no signer's work lost to another's.

Two people may sign one file at once, on a shared directory say. A signature is over the body alone, so the second
writer puts theirs after the first one's, under a lock, provided the body is still the one that they looked at.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bcd.core.durable import host_error, remove_if_there, write_durably
from bcd.core.errors import HostError, NotPermitted, UsageError
from bcd.core.manifest import ENVELOPE_LIMIT_BYTES

_WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.02


def read_manifest_file(path: str) -> bytes:
    """The bytes of a manifest that is to be signed in its place: a plain file and no link to one.

    Raises:
        UsageError: `unreadable-manifest`.
        NotPermitted: `unreadable-manifest`, this user may not read it.
    """
    handle = _open(path)
    try:
        return _read(handle)
    finally:
        os.close(handle)


def require_no_manifest(path: str) -> None:
    """Make sure that a manifest can be made there, before anybody is asked for a passphrase.

    Raises:
        UsageError: `file-exists`.
    """
    if os.path.lexists(path):
        raise _taken(path)


def create_manifest_file(path: str, text: str) -> None:
    """Write a manifest where there was no file.

    Raises:
        UsageError: `file-exists`.
        HostError: `io-error`, `no-space`.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
    except FileExistsError as error:
        raise _taken(path) from error
    except OSError as error:
        raise _not_written(error) from error
    try:
        write_durably(os.path.abspath(path), text.encode())
    except BaseException as error:
        remove_if_there(path)
        if isinstance(error, OSError):
            raise _not_written(error) from error
        raise


def change_manifest_file(path: str, change: Callable[[bytes], str]) -> None:
    """Replace a manifest by what `change` makes of its bytes as they are now, with nobody writing in between.

    Raises:
        UsageError: `unreadable-manifest`; and what `change` raises, the file being left alone.
        HostError: `io-error`, `no-space`.
    """
    with _locked(path) as handle:
        text = change(_read(handle))
        try:
            write_durably(os.path.abspath(path), text.encode(), stat.S_IMODE(os.fstat(handle).st_mode))
        except OSError as error:
            raise _not_written(error) from error


@contextmanager
def _locked(path: str) -> Iterator[int]:
    until = time.monotonic() + _WAIT_SECONDS
    while True:
        handle = _open(path)
        try:
            if _try_lock(handle) and _is_still(path, handle):
                yield handle
                return
        finally:
            os.close(handle)
        # Held by another signer, or replaced by one while this one waited: then it is another file that is to be locked.
        if time.monotonic() >= until:
            raise HostError("io-error", f"{path}: another process holds it", "let the other signer finish")
        time.sleep(_POLL_SECONDS)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # A file system without locks, as on some sticks: there is nobody else on it either.
        if error.errno not in (errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS):
            raise _not_written(error) from error
    return True


def _is_still(path: str, handle: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except OSError:
        return False


def _open(path: str) -> int:
    # O_NONBLOCK: a FIFO in its place must hang nobody.
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError as error:
        raise NotPermitted("unreadable-manifest", f"{path}: this user may not read it", "ask its owner") from error
    except (OSError, ValueError) as error:
        if os.path.islink(path):
            raise UsageError("unreadable-manifest", f"{path} is a link", "name the file itself") from error
        said = getattr(error, "strerror", None) or "no name of a file"
        hint = "name the manifest's file; --new makes one"
        raise UsageError("unreadable-manifest", f"{path}: {said}", hint) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UsageError(
            "unreadable-manifest", f"{path} is no regular file", "name the manifest's file; --new makes one"
        )
    return handle


def _read(handle: int) -> bytes:
    data = b""
    while len(data) <= ENVELOPE_LIMIT_BYTES and (chunk := os.read(handle, ENVELOPE_LIMIT_BYTES + 1)):
        data += chunk
    return data


def _not_written(error: OSError) -> HostError:
    found = host_error(error, "write the manifest")
    # Of the node that tries again there is none here.
    found.hint = (
        "free some space there"
        if found.code == "no-space"
        else "name a file in a directory that is there and that you may write"
    )
    return found


def _taken(path: str) -> UsageError:
    hint = "name another file, or leave --new out to sign this one"
    return UsageError("file-exists", f"{path} is there already; --new writes over nothing", hint)
