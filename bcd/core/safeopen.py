"""Opening what someone else may have put there: never through a link, never blocking, only a plain file.

The attack (field report 36): a symlink, a hard link to somebody's file, a FIFO that hangs, or a directory that is
replaced by a link between the check and the use. Each component is opened by descriptor with O_NOFOLLOW, which gives
what `openat2(RESOLVE_BENEATH|RESOLVE_NO_SYMLINKS)` gives for single names, on every kernel; the checks are made on
the open descriptor, and what is read is read through it.
"""

import os
import stat

from bcd.core.errors import HostError


def open_plain_beneath(parent: str, directory: str, name: str, *, owner: int | None = None) -> int:
    """Open `parent/directory/name` for reading and return the descriptor, which the caller closes.

    Args:
        parent: trusted as a path; `directory` and `name` are single components and are not.
        directory: must be a real directory.
        name: must be a regular file with one link.
        owner: the uid that must own the file; None for whoever.

    Raises:
        HostError: `io-error`, it is not such a file.
        OSError: it could not be opened (ELOOP for a link).
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    outer = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        inner = os.open(directory, flags | os.O_DIRECTORY, dir_fd=outer)
    finally:
        os.close(outer)
    try:
        handle = os.open(name, flags | os.O_NONBLOCK, dir_fd=inner)
    finally:
        os.close(inner)
    try:
        found = os.fstat(handle)
        where = os.path.join(parent, directory, name)
        if not stat.S_ISREG(found.st_mode):
            raise HostError("io-error", f"{where} is no regular file", "remove it; the node downloads it again")
        if found.st_nlink != 1:
            raise HostError("io-error", f"{where} has {found.st_nlink} links", "remove it; the node downloads it again")
        if owner is not None and found.st_uid != owner:
            raise HostError("io-error", f"{where} is owned by uid {found.st_uid}, not {owner}", "remove it")
    except BaseException:
        os.close(handle)
        raise
    return handle


def remove_leftover(path: str) -> None:
    """Remove whatever lies at a temporary name of ours, of any type, without following it.

    Raises:
        HostError: `io-error`, it is a directory with content.
        OSError: it could not be removed.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(path)
        return
    try:
        os.rmdir(path)
    except OSError as error:
        raise HostError(
            "io-error",
            f"{path} is a directory with content, where bcd writes a file",
            f"look into it and remove {path}",
        ) from error
