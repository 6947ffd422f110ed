"""What lies in the staging directory, opened so that nobody leads the download elsewhere (section 5).

The attacks and accidents (field report 14): at a name of ours lies a FIFO that blocks whoever opens it, a link to a
file that root would write, a second name of somebody's file, a directory, a device. So every name is taken relative to
one open directory, nothing is followed, nothing blocks, and whatever is not a plain file of our own is removed. What a
file holds is another matter: `bcd.core.download` believes no byte that it has not hashed.

Staging belongs to one download at a time, held by a lock that dies with its holder (field report 21).
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from bcd.core.durable import host_error, make_directories, sync_directory
from bcd.core.errors import HostError, Refusal
from bcd.core.text import clean
from bcd.core.versions import is_version

_MODE = 0o600
_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def file_name(version: str) -> str:
    """The name of a finished download.

    Raises:
        Refusal: `bad-section`, this is no version: a slash or a NUL in it would be a path out of staging.
    """
    if not is_version(version):
        raise Refusal("bad-section", f"{clean(version, 80)} is not a version")
    return f"bcd-{version}"


def part_name(version: str) -> str:
    """The name of an unfinished download; raises as `file_name` does."""
    return f"{file_name(version)}.part"


def held_bytes(staging: Path, version: str) -> int:
    """How many bytes on the disk an unfinished or finished download of `version` already takes; 0 where unknown."""
    for name in (file_name(version), part_name(version)):
        with suppress(OSError):
            info = os.lstat(staging / name)
            if _is_ours(info):
                return min(info.st_size, info.st_blocks * 512)  # a sparse file holds less than it says
    return 0


class Staging:
    """The open staging directory. Made by `open_staging`, and only good inside of it."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self._handle = handle

    @contextmanager
    def told(self, name: str, doing: str) -> Iterator[None]:
        """Raise what goes wrong with the file `name` as a `HostError` that names its whole path."""
        try:
            yield
        except OSError as error:
            named = OSError(error.errno, error.strerror or str(error), str(self.path / name))
            raise host_error(named, doing) from error

    def take(self, name: str) -> int | None:
        """Open for reading and writing what lies at `name`, if it is a plain file of our own; else leave nothing there.

        Returns:
            An open descriptor, the caller's to close; None where nothing lies at `name` any more.

        Raises:
            HostError: `io-error`, it could neither be opened nor removed.
        """
        handle = None
        with self.told(name, "open"):
            try:
                # Looked at first, since opening a device may already do something.
                if _is_ours(os.lstat(name, dir_fd=self._handle)):
                    handle = os.open(name, os.O_RDWR | _SAFELY, dir_fd=self._handle)
            except FileNotFoundError:
                return None
            except OSError as error:
                # A link by now, a file that an earlier root left to its own: ours to remove, since the name is.
                if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EACCES, errno.EPERM):
                    raise
        if handle is not None:
            if _is_ours(os.fstat(handle)):
                return handle
            os.close(handle)
        self.remove(name)
        return None

    def create(self, name: str) -> int:
        """Make `name` anew, whatever lay there, mode 0600 whatever the umask; the caller closes the descriptor.

        Raises:
            HostError: `no-space` or `io-error`, it could not be made.
        """
        self.remove(name)
        with self.told(name, "create"):
            handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFELY, _MODE, dir_fd=self._handle)
            try:
                os.fchmod(handle, _MODE)
            except BaseException:
                os.close(handle)
                raise
        return handle

    def remove(self, name: str) -> None:
        """Remove what lies at `name`, of any type, without following or opening it.

        Raises:
            HostError: `io-error`, a directory with content lies there, or it could not be removed.
        """
        with self.told(name, "remove"):
            try:
                if stat.S_ISDIR(os.lstat(name, dir_fd=self._handle).st_mode):
                    os.rmdir(name, dir_fd=self._handle)
                else:
                    os.unlink(name, dir_fd=self._handle)
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                raise HostError(
                    "io-error",
                    f"{self.path / name} is a directory with content, where a download would lie",
                    "nothing but bcd's downloads belongs into staging: move it away; the node tries again by itself",
                ) from error

    def publish(self, handle: int, name: str, final: str) -> None:
        """Give the whole and checked file `name`, open as `handle`, its final name, so that a crash does not undo it.

        Raises:
            HostError: `no-space` or `io-error`, the disk did not take it.
        """
        with self.told(name, "finish"):
            # The bytes first: a rename that outlives them leaves an empty file under a good name (field report 03).
            os.fsync(handle)
            os.rename(name, final, src_dir_fd=self._handle, dst_dir_fd=self._handle)
            os.fsync(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


def open_staging(path: Path) -> Staging:
    """Open the staging directory, made with mode 0700 where it is missing, and hold it for this download alone.

    Raises:
        HostError: `update-in-progress`, another download holds it; `io-error`, it is a link or can't be opened.
    """
    path = path.absolute()
    made = False
    try:
        make_directories(str(path.parent))
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
            made = True
        # No link, even of root's: the helper, which opens the same place, follows none either.
        if path.is_symlink():
            raise HostError("io-error", f"the staging directory {path} is a link", "put a directory in its place")
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise host_error(error, "open the staging directory") from error
    try:
        if made:
            os.fchmod(handle, 0o700)
            sync_directory(str(path.parent))
        _lock(path, handle)
    except BaseException as error:
        os.close(handle)
        if isinstance(error, OSError):
            raise host_error(error, "prepare the staging directory") from error
        raise
    return Staging(path, handle)


def _lock(path: Path, handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise HostError(
            "update-in-progress", f"another download is at work in {path}", "wait for it to finish"
        ) from None
    except OSError:
        # A network file system may lock no directories. Two downloads at once may then spoil each other's bytes, which
        # costs a download: the digest is taken again of what goes into the slot.
        return


def _is_ours(info: os.stat_result) -> bool:
    """A regular file with one link and our own: another's could be changed under us after it was hashed."""
    return stat.S_ISREG(info.st_mode) and info.st_nlink == 1 and info.st_uid == os.geteuid()
