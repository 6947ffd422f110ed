"""Writing so that power may fail at any moment: the one place where records reach the disk.

The crash (field reports 01, 03): a rename without fsync leaves an empty or old file under the new name. So: a
temporary file in the same directory, fsync, rename, fsync of the directory. The mode is set on the descriptor, since
a umask of 077 would hide a record from the people who look (field report 26).
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from bcd.core.errors import HostError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def host_error(error: OSError, doing: str) -> HostError:
    """What an OSError means for an update: `no-space` or `io-error`, with the path that it names."""
    where = f" {os.fsdecode(error.filename)}" if isinstance(error.filename, str | bytes) else ""
    sentence = f"could not {doing}:{where} {error.strerror or error}".replace(":  ", ": ")
    if error.errno in _NO_ROOM:
        return HostError("no-space", sentence, "free some space there; the node tries again by itself")
    hint = "run `bcd doctor`; the node tries again by itself"
    if error.errno == errno.EROFS:
        hint = "mount the file system read-write; the node tries again by itself"
    return HostError("io-error", sentence, hint)


@contextmanager
def as_host_error(doing: str) -> Iterator[None]:
    """Let no OSError leave core: raise the `HostError` that it means."""
    try:
        yield
    except OSError as error:
        raise host_error(error, doing) from error


def sync_directory(directory: str) -> None:
    """Make the names in `directory` durable."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_directories(directory: str, mode: int = 0o755) -> None:
    """Make `directory` and what is missing above it, with `mode` whatever the umask; existing ones stay as they are.

    Args:
        directory: absolute or relative to the working directory.
        mode: of those that are made.

    Raises:
        OSError: one could not be made, or not be made durable: those above it may be there.
    """
    missing = []
    # Absolute, since the parents of a relative path end in "", which is no directory and has itself for a parent.
    path = os.path.abspath(directory)
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for path in reversed(missing):
        os.mkdir(path, mode)
        os.chmod(path, mode)
        sync_directory(os.path.dirname(path))


def temporary_name(name: str) -> str:
    """A name beside `name` that no other writer has: two updaters never share one (field report 21)."""
    return f".{name}.{os.urandom(6).hex()}.tmp"


def write_durably(path: str, data: bytes, mode: int = 0o644) -> None:
    """Replace `path` by `data`: after this returns, a crash shows the new bytes; before, the old ones or the new.

    Raises:
        OSError: it is not known to be written. `path` is as it was, or, where only the directory's fsync failed, has the
            new bytes, which a crash may take back. No temporary file stays.
    """
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, temporary_name(name))
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fill(handle, data, mode)
        os.rename(temporary, path)
    except OSError:
        remove_if_there(temporary)
        raise
    sync_directory(directory)


def fill(handle: int, data: bytes, mode: int) -> None:
    """Write a file that was just made, give it its mode whatever the umask, make it durable, and close it.

    Raises:
        OSError: it could not be written; the descriptor is closed all the same.
    """
    try:
        write_all(handle, data)
        os.fchmod(handle, mode)
        os.fsync(handle)
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes | memoryview) -> None:
    """Write every byte; write(2) may take fewer.

    Raises:
        OSError: as write(2) does.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def remove_if_there(path: str) -> bool:
    """Unlink `path`, and say whether it was there. A failure to is an OSError."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def remove_durably(path: str) -> bool:
    """Unlink `path` so that a crash does not bring it back; say whether it was there.

    Raises:
        OSError: it could not be removed, or, where only the directory's fsync failed, a crash may bring it back.
    """
    removed = remove_if_there(path)
    if removed:
        sync_directory(os.path.dirname(path))
    return removed
