"""Room for an update, before its first byte, and the mounts it would land on (spec/self-update.md sections 6 and 11).

Guarantees: an update that cannot fit is refused with the mount point and both numbers (field report 29), and one whose
slot could never be written or run is refused before anything moves (field reports 25 and 35). It only looks: quotas
and whoever fills the disk meanwhile are met by the writer, who says the same sentence through `no_room`.
"""

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bcd.core.errors import HostError

SPARE_BYTES = 64 * 1024 * 1024
"""What must stay free beside the files themselves: records, logs, and everybody else on that disk."""
SPARE_INODES = 8
"""Partial, its note, the slot's temporary file, temporary records and links: one each, none for long."""

Statvfs = Callable[[Path], os.statvfs_result]
Device = Callable[[Path], int]

_MOUNTS = "/proc/self/mountinfo"


class _Need(NamedTuple):
    where: Path
    size_bytes: int


def check_room(
    staging: Path,
    slots_dir: Path,
    size: int,
    already: int,
    *,
    statvfs: Statvfs = os.statvfs,
    device: Device = lambda path: path.stat().st_dev,
) -> None:
    """Make sure that a release fits into staging and into its slot. Directories that are still to be made count.

    Args:
        staging: the staging directory.
        slots_dir: the slots directory.
        size: the release's size in bytes.
        already: bytes of it that staging holds already (`staging.held_bytes`).
        statvfs: how a file system is asked for what is free.
        device: how two directories are told to be on one file system.

    Raises:
        HostError: `no-space`, too few bytes or inodes are free; `io-error`, a file system could not be asked.
    """
    staging, slots_dir = _standing(staging), _standing(slots_dir)
    missing = max(0, size - already)
    try:
        if device(staging) == device(slots_dir):
            needs = [_Need(slots_dir, missing + size + SPARE_BYTES)]
        else:
            needs = [_Need(staging, missing + SPARE_BYTES), _Need(slots_dir, size + SPARE_BYTES)]
    except OSError as error:
        raise _cannot_look(staging, error) from error
    for need in needs:
        _check(need, _ask(need.where, statvfs))


def no_room(path: Path, need_bytes: int, *, statvfs: Statvfs = os.statvfs) -> HostError:
    """The error for a disk (or a quota) that filled up while `path` was written, with `need_bytes` still to come."""
    free = _free_bytes(_ask(_standing(path), statvfs))
    return _no_space(path, f"{need_bytes} bytes", f"{free}", "free some space there, or lift its owner's quota")


def mount_of(path: Path) -> Path:
    """The mount point that `path` is on (its nearest ancestor that exists, where it is still to be made).

    The kernel's own table, since a read-only bind mount (a unit's ProtectSystem=) has the same device number as the
    directory above it; without /proc, the place where the device number changes.
    """
    real = _standing(path).resolve()
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as table:
            points = [_unescaped(line.split(" ")[4]) for line in table]
    except (OSError, IndexError):
        points = []
    on = [point for point in points if real.is_relative_to(point)]
    if on:
        return max(on, key=lambda point: len(point.parts))
    return next((parent for parent in (real, *real.parents) if os.path.ismount(parent)), Path(real.anchor))


def refuse_unwritable_mount(path: Path, executable: bool, *, statvfs: Statvfs = os.statvfs) -> None:  # noqa: FBT001
    """Make sure that files can be written at `path`, and run from there where they are to be `executable`.

    Raises:
        HostError: `io-error`, the file system there is mounted read-only or noexec, or could not be asked.
    """
    flags = _ask(_standing(path), statvfs).f_flag
    mount = mount_of(path)
    if flags & os.ST_RDONLY:
        raise HostError(
            "io-error",
            f"{mount} is mounted read-only, so that {path} cannot be written",
            f"mount it read-write (mount -o remount,rw {shlex.quote(str(mount))}) or move the directory; the node tries "
            "again by itself",
        )
    if executable and flags & os.ST_NOEXEC:
        raise HostError(
            "io-error",
            f"{mount} is mounted noexec, so that nothing in {path} can run",
            f"mount it exec (mount -o remount,exec {shlex.quote(str(mount))}) or move the directory; the node tries again "
            "by itself",
        )


def _check(need: _Need, has: os.statvfs_result) -> None:
    # A file system without a fixed size or number of inodes (btrfs, some overlays and network ones) says 0 of 0.
    free = _free_bytes(has)
    if has.f_blocks and free < need.size_bytes:
        raise _no_space(need.where, f"{need.size_bytes} bytes", f"{free}")
    inodes = has.f_ffree if _may_use_the_reserve() else has.f_favail
    if has.f_files and inodes < SPARE_INODES:
        raise _no_space(need.where, f"{SPARE_INODES} inodes", f"{inodes}")


def _no_space(where: Path, need: str, free: str, advice: str = "free some space there") -> HostError:
    return HostError(
        "no-space", f"need {need} on {mount_of(where)}, {free} are free", f"{advice}; the node tries again by itself"
    )


def _free_bytes(has: os.statvfs_result) -> int:
    return (has.f_bfree if _may_use_the_reserve() else has.f_bavail) * has.f_frsize


def _may_use_the_reserve() -> bool:
    # ext4 keeps some blocks for root alone: f_bfree counts them, f_bavail does not.
    return os.geteuid() == 0


def _ask(path: Path, statvfs: Statvfs) -> os.statvfs_result:
    try:
        return statvfs(path)
    except OSError as error:
        raise _cannot_look(path, error) from error


def _cannot_look(path: Path, error: OSError) -> HostError:
    return HostError(
        "io-error", f"could not ask the file system of {path}: {error.strerror or error}", "run `bcd doctor`"
    )


def _standing(path: Path) -> Path:
    """`path`, or the nearest directory above it that exists: the one whose file system it will be made on."""
    path = path.absolute()
    return next((place for place in (path, *path.parents) if os.path.exists(place)), Path(path.anchor))


def _unescaped(field: str) -> Path:
    for code in ("040", "011", "012", "134"):  # the kernel writes blanks and the backslash itself in octal
        field = field.replace(f"\\{code}", chr(int(code, 8)))
    return Path(field)
