"""The files in the slots: hashing one, and replacing one so that what was checked is what will run.

A slot's file is never opened for writing: the bytes go into `bcd-<slot>.tmp` beside it, are hashed as they are
written, and are renamed into place (field report 40: the old file may still be executing). Copying inside the slots
directory also gives the file the directory's own label and no `EXDEV`.
"""

import os
import stat
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

from bcd.core.binary import HEADER_BYTES, check_header
from bcd.core.durable import remove_if_there, sync_directory, write_all
from bcd.core.errors import HostError
from bcd.core.links import Slot, slot_file
from bcd.core.records import SlotRecord
from bcd.core.safeopen import remove_leftover

CHUNK_BYTES = 1024 * 1024
MODE = 0o755


class Digest(NamedTuple):
    """What a file's bytes are."""

    sha256: str
    size: int


def hash_slot_file(slots_dir: str, slot: Slot) -> Digest | None:
    """Hash a slot's file; None where there is no regular file."""
    path = os.path.join(slots_dir, slot_file(slot))
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        digest, size = sha256(), 0
        while chunk := os.read(handle, CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    finally:
        os.close(handle)
    return Digest(digest.hexdigest(), size)


def is_whole(slots_dir: str, slot: Slot, record: SlotRecord | None) -> bool:
    """Whether a slot's file hashes to its record; False without a record."""
    return record is not None and hash_slot_file(slots_dir, slot) == (record.sha256, record.size)


def is_program(slots_dir: str, slot: Slot) -> bool:
    """Whether a slot holds a file that could at least be started: regular, not empty, executable."""
    try:
        found = os.lstat(os.path.join(slots_dir, slot_file(slot)))
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0 and bool(found.st_mode & 0o111)


def replace_slot_file(
    slots_dir: str,
    slot: Slot,
    source: int,
    *,
    expected: Digest | None,
    platform: str,
    before_rename: Callable[[], None],
) -> Digest:
    """Copy an open file into a slot.

    Args:
        slots_dir: the slots directory.
        slot: the slot whose file is replaced.
        source: descriptor to read from, at its start.
        expected: what the bytes must be; None to take them as they are (adoption).
        platform: this machine's; a native binary must be for it.
        before_rename: called when the new file is complete and durable and the old one is still in place.

    Raises:
        HostError: `io-error`, the bytes are not the expected ones (somebody changed the staged file).
        Refusal: `wrong-platform-binary`.
        OSError: it is not known to be written. The slot is as it was, or, where only the directory's fsync failed, holds
            the new file whole, which a crash may take back. No temporary file stays.
    """
    path = os.path.join(slots_dir, slot_file(slot))
    temporary = path + ".tmp"
    remove_leftover(temporary)
    target = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            copied = _copy(source, target, None if expected is None else expected.size)
            if expected is not None and copied != expected:
                raise HostError(
                    "io-error",
                    f"the staged file changed after it was checked: {copied.size} bytes, sha256 {copied.sha256}",
                    "find out who writes into the staging directory; the node downloads it again",
                )
            check_header(os.pread(target, HEADER_BYTES, 0), platform)
            os.fchmod(target, MODE)
            os.fsync(target)
        finally:
            os.close(target)
        before_rename()
        os.rename(temporary, path)
    except BaseException:
        remove_if_there(temporary)
        raise
    sync_directory(slots_dir)
    return copied


def _copy(source: int, target: int, size: int | None) -> Digest:
    # One byte past the size is enough to know that it is too long: a growing file must not fill the disk.
    limit = None if size is None else size + 1
    digest, copied = sha256(), 0
    while limit is None or copied < limit:
        chunk = os.read(source, CHUNK_BYTES if limit is None else min(CHUNK_BYTES, limit - copied))
        if not chunk:
            break
        digest.update(chunk)
        write_all(target, chunk)
        copied += len(chunk)
    return Digest(digest.hexdigest(), copied)
