"""The one directory that a lab lives in: found or made, claimed, and given back.

A lab's directory is known by a mark, and only what labs make is ever removed from it: naming one's home directory by
mistake costs nothing. The claim is a lock on the mark, so that no second lab starts in a living one.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from bcd.core.errors import UsageError
from bcd.lab.split import PLACE, require_place

_MARK = "lab.json"
_MARK_TEXT = b'{"format":1}\n'
_OURS = ("tls", "nodes", "python", "lab.sock")


class LabDirectory:
    """A claimed directory, empty but for its mark."""

    def __init__(self, directory: Path | None, *, split: bool = False) -> None:
        """Claim `directory`, made where it is missing and emptied of an earlier lab; a temporary one for None.

        Raises:
            UsageError: `bad-directory`: it holds something that is no lab's, cannot be used, may not run programs, or
                is to be a split lab's and not root's alone; `lab-running`: a lab lives in it.
        """
        self.temporary = directory is None
        self.path = _temporary(split=split) if directory is None else directory.absolute()
        try:
            if split:
                require_place(self.path)
            self._claim()
            flags = os.statvfs(self.path).f_flag
        except OSError as error:
            raise _unfit(self.path, f"cannot be used: {error.strerror}") from error
        if flags & os.ST_NOEXEC:
            self.give_back(keep=False)
            raise _unfit(self.path, "lies on a file system that is mounted noexec")

    def _claim(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        mark = self.path / _MARK
        if not mark.is_file() and any(self.path.iterdir()):
            raise _unfit(self.path, "is not empty and no lab's directory")
        self._lock = os.open(mark, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise UsageError("lab-running", f"a lab is running in {self.path}", "end it, or name another") from error
        os.pwrite(self._lock, _MARK_TEXT, 0)
        for name in _OURS:
            _remove(self.path / name)

    def give_back(self, *, keep: bool) -> None:
        """End the claim, once the world is closed; a temporary directory is removed unless it is to be kept."""
        os.close(self._lock)
        if self.temporary and not keep:
            shutil.rmtree(self.path, ignore_errors=True)


def _temporary(*, split: bool) -> Path:
    if not split:
        return Path(tempfile.mkdtemp(prefix="bcd-lab-"))
    try:
        made = Path(tempfile.mkdtemp(prefix="bcd-lab-", dir=PLACE))
    except OSError as error:
        raise _unfit(PLACE, f"cannot be used: {error.strerror}") from error
    made.chmod(0o755)  # the node's user is to come in
    return made


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        with suppress(FileNotFoundError):
            path.unlink()


def _unfit(directory: Path, why: str) -> UsageError:
    return UsageError("bad-directory", f"{directory} {why}", "name another place with --dir, or in TMPDIR")
