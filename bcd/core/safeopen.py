"""Opening what someone else may have put there: never through a link, never blocking, only a plain file.

The attack (field report 36): a symlink, a hard link to somebody's file, a FIFO that hangs, a device that does
something when it is opened, a file system that never answers, or a directory that is replaced by a link between the
check and the use. Each component is opened by descriptor with O_PATH and O_NOFOLLOW, which gives what
`openat2(RESOLVE_BENEATH|RESOLVE_NO_SYMLINKS)` gives for single names, on every kernel, and touches nothing; the checks
are made on those descriptors, and what is read is read through the one that was checked.
"""

import os
import shlex
import stat
from contextlib import ExitStack

from bcd.core.errors import HostError
from bcd.core.text import clean
from bcd.core.usermount import mount_of_handle


def open_plain_beneath(parent: str, directory: str, name: str, *, owner: int | None = None) -> int:
    """Open `parent/directory/name` for reading and return the descriptor, which the caller closes.

    Args:
        parent: trusted as a path; `directory` and `name` are single components and are not.
        directory: must be a real directory.
        name: must be a regular file with one link.
        owner: the uid that must own the file, where all of it is another user's; None for whoever.

    Raises:
        HostError: `io-error`, it is not such a file, or lies on a file system that a user mounted.
        OSError: it could not be opened.
    """
    where = os.path.join(parent, directory, name)
    with ExitStack() as held:

        def look(path: str, flags: int, beneath: int | None = None) -> int:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC | flags, dir_fd=beneath)
            held.callback(os.close, handle)
            if owner is not None:
                _refuse_users_mount(handle, where)
            return handle

        outer = look(parent, os.O_DIRECTORY)
        inner = look(directory, os.O_DIRECTORY | os.O_NOFOLLOW, outer)
        found = look(name, os.O_NOFOLLOW, inner)
        _require_plain(os.fstat(found), where, owner)
        handle = _reopen(found, name, inner)
    try:
        _require_plain(os.fstat(handle), where, owner)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _reopen(found: int, name: str, inner: int) -> int:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(f"/proc/self/fd/{found}", flags)  # this very file, whatever has its name by now
    except FileNotFoundError:  # a chroot without /proc
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=inner)


def _refuse_users_mount(handle: int, where: str) -> None:
    mount = mount_of_handle(handle)
    if mount is None:
        raise HostError("io-error", f"{where} lies on a file system that is not mounted here", "look into data_dir")
    if mount.user is not None:
        raise HostError(
            "io-error",
            f"{where} lies on {mount.point}, a file system of type {clean(mount.kind, 40)} that uid {mount.user} mounted",
            f"umount -l {shlex.quote(mount.point)}",
        )


def _require_plain(found: os.stat_result, where: str, owner: int | None) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise HostError("io-error", f"{where} is no regular file", "remove it; the node downloads it again")
    if found.st_nlink != 1:
        raise HostError("io-error", f"{where} has {found.st_nlink} links", "remove it; the node downloads it again")
    if owner is not None and found.st_uid != owner:
        raise HostError("io-error", f"{where} is owned by uid {found.st_uid}, not {owner}", "remove it")


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
