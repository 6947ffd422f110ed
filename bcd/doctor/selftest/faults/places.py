"""Where the slots lie: directories that others may write, leftovers, mounts, and full disks."""

import os
from pathlib import Path

from bcd.doctor.finding import Level
from bcd.doctor.selftest.fault import Fault, Faults
from bcd.doctor.selftest.faults.configuration import STRANGER
from bcd.doctor.selftest.machine import NOW
from bcd.doctor.selftest.root import DAY, Root


def _sticky_under_the_helper(root: Root) -> None:
    root.use_helper()
    (root.home / "lib").chmod(0o1755 | 0o022)


def _socket_of_the_group(root: Root) -> None:
    root.use_helper()
    (root.home / "run").mkdir()
    (root.home / "helper.sock").rename(root.home / "run" / "helper.sock")
    root.configure("helper", socket=f"{root.home}/run/helper.sock")
    (root.home / "run").chmod(0o775)


def _staged(root: Root, *, days: int) -> None:
    path = root.write("var/staging/bcd-1.4.2.part", "half")
    os.utime(path, (NOW - days * DAY, NOW - days * DAY))


def _left_link(root: Root) -> None:
    root.link("bin/.bcd.0123456789ab.tmp", f"{root.home}/lib/current")


def _mounted(root: Root, flags: int) -> None:
    root.machine.mount_flags = flags


def _free(root: Root, *, free_bytes: int = 20 * 2**30, inodes: int = 1_000_000) -> None:
    root.machine.free_bytes, root.machine.free_inodes = free_bytes, inodes


def _silent_disk(root: Root) -> None:
    root.machine.statvfs_error = OSError(5, "Input/output error", str(Path(root.layout.slots_dir)))


PLACE_FAULTS: Faults = (
    Fault(
        check="slots.directories",
        name="the slots' directory may be written by all",
        plant=lambda root: (root.home / "lib").chmod(0o777),
        level=Level.FAIL,
        says="/lib may be changed by others than root",
    ),
    Fault(
        check="slots.directories",
        name="the entrypoint's directory may be written by its group, as Debian once made it",
        plant=lambda root: (root.home / "bin").chmod(0o2775),
        level=Level.WARN,
        says="/bin may be changed by others than root",
    ),
    Fault(
        check="slots.directories",
        name="a sticky directory, which nobody can misuse",
        plant=lambda root: root.home.chmod(0o1777),
        level=Level.OK,
        says="its owner's alone",
    ),
    Fault(
        check="slots.directories",
        name="a sticky directory under the helper, which insists",
        plant=_sticky_under_the_helper,
        level=Level.FAIL,
        says="/lib may be changed by others than root",
        needs_root=True,
    ),
    Fault(
        check="slots.directories",
        name="the socket's directory may be written by its group",
        plant=_socket_of_the_group,
        level=Level.FAIL,
        says="/run may be changed by others than root",
    ),
    Fault(
        check="slots.directories",
        name="a directory on the way is a stranger's",
        plant=lambda root: os.chown(root.home / "lib", STRANGER, -1),
        level=Level.FAIL,
        says="/lib may be changed by others than root",
        needs_root=True,
    ),
    Fault(
        check="slots.leftovers",
        name="a slot that was cut off while it was written",
        plant=lambda root: root.write("lib/bcd-a.tmp", "half"),
        level=Level.NOTE,
        says="1 file was left behind",
    ),
    Fault(
        check="slots.leftovers",
        name="a download older than a week",
        plant=lambda root: _staged(root, days=8),
        level=Level.NOTE,
        says="1 file was left behind",
    ),
    Fault(
        check="slots.leftovers",
        name="a link that adoption made and a cut left",
        plant=_left_link,
        level=Level.NOTE,
        says="1 file was left behind",
    ),
    Fault(
        check="slots.leftovers",
        name="a download of today, which may go on",
        plant=lambda root: _staged(root, days=0),
        level=Level.OK,
        says="nothing was left behind",
    ),
    Fault(
        check="slots.leftovers",
        name="an update is pending",
        plant=Root.swap,
        level=Level.SKIPPED,
        says="its files are in use",
        also=frozenset({"update.pending"}),
    ),
    Fault(
        check="slots.leftovers",
        name="this user may not list the staging directory",
        plant=lambda root: root.forbid("var/staging"),
        level=Level.UNKNOWN,
        says="this user may not look at",
        as_nobody=True,
    ),
    Fault(
        check="slots.mount",
        name="mounted read-only",
        plant=lambda root: _mounted(root, os.ST_RDONLY),
        level=Level.FAIL,
        says="is mounted read-only",
    ),
    Fault(
        check="slots.mount",
        name="mounted noexec",
        plant=lambda root: _mounted(root, os.ST_NOEXEC),
        level=Level.FAIL,
        says="is mounted noexec",
    ),
    Fault(
        check="slots.mount",
        name="a disk that does not answer",
        plant=_silent_disk,
        level=Level.UNKNOWN,
        says="Input/output error",
        also=frozenset({"slots.room", "host.disk"}),
    ),
    Fault(
        check="slots.room",
        name="the disk is full",
        plant=lambda root: _free(root, free_bytes=4096),
        level=Level.WARN,
        says="4096 are free",
        also=frozenset({"host.disk"}),
    ),
    Fault(
        check="slots.room",
        name="no inodes are left",
        plant=lambda root: _free(root, inodes=2),
        level=Level.WARN,
        says="8 inodes",
    ),
)
