"""Where the slots lie: who may change the way to them, what was left behind, the mount, and the room there is."""

import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from bcd.core.errors import HostError
from bcd.core.leftovers import stale_files
from bcd.core.links import SLOTS
from bcd.core.space import check_room, mount_of, refuse_unwritable_mount
from bcd.core.wayin import Step, way_to
from bcd.doctor.check import Registry, Result, fail, note, ok, skipped, unknown, warn
from bcd.doctor.checks.slot_words import restart, what_is
from bcd.doctor.probes import Probes

PLACE_CHECKS = Registry("slots")

_USUAL_BYTES = 64 * 2**20
"""What a release takes where none was recorded yet."""


@PLACE_CHECKS.check(
    "directories",
    "every directory on the way is its owner's alone",
    why="Whoever may write one of them can put another directory in its place, and so choose what starts. The helper "
    "does not start where one is not root's alone.",
)
def directories(see: Probes) -> Iterator[Result]:
    """Each directory on the way to the slots and the entrypoint, links resolved step by step; all that the helper looks at."""
    strict, good = see.config.helper is not None, True
    for step in dict.fromkeys(_steps(see)):
        path = step.path
        if stat.S_ISLNK(step.mode) and step.uid not in see.owners:
            good = False
            yield fail(
                f"{path} is a link that may be changed by others than root, who so choose what starts",
                f"{path}: {what_is(path)} of uid {step.uid}",
                hint=f"chown -h root:root {shlex.quote(path)}",
            )
        if not os.path.isdir(path) or stat.S_ISLNK(step.mode):
            continue
        found = os.stat(path)
        foreign = found.st_uid not in see.owners
        # In a sticky directory (/tmp) nobody may rename what is not theirs; the helper does not accept even that.
        writable = found.st_mode & 0o022 if strict or not found.st_mode & stat.S_ISVTX else 0
        if not foreign and not writable:
            continue
        good = False
        # Debian once made /usr/local the group staff's: no reason to wake anybody up, where no helper insists.
        problem = fail if strict or foreign or writable & 0o002 else warn
        name = shlex.quote(path)
        yield problem(
            f"{path} may be changed by others than root, who so choose what starts",
            f"{path}: {what_is(path)}",
            hint=f"chown root:root {name} && chmod go-w {name}" if foreign else f"chmod go-w {name}",
        )
    if good:
        yield ok("every directory on the way to slots and entrypoint is its owner's alone")


def _steps(see: Probes) -> Iterator[Step]:
    layout, helper = see.layout, see.config.helper
    places = [layout.slots_dir, os.path.dirname(layout.entrypoint)]
    if helper is not None:
        places += [os.path.dirname(helper.socket), os.path.dirname(os.path.abspath(see.config_path))]
    for place in places:
        for step in way_to(place):
            if os.path.commonpath([step.path, see.top]) == see.top:
                yield step


@PLACE_CHECKS.check(
    "leftovers",
    "nothing was left behind by an update that was cut off",
    why="Leftovers take room. The agent's next start removes them; where they stay, nothing starts.",
)
def leftovers(see: Probes) -> Result:
    """Temporary files of ours, and old downloads."""
    layout, pending = see.layout, see.status.pending
    if pending.value is not None:
        return skipped("an update is pending; its files are in use")
    for directory in (layout.slots_dir, layout.records_dir, layout.staging):
        if os.path.isdir(directory):
            os.listdir(directory)  # what may not be listed is not "nothing"
    found = stale_files(layout, see.clock)
    if found:
        files = "1 file was" if len(found) == 1 else f"{len(found)} files were"
        return note(
            f"{files} left behind by an update that was cut off",
            *found,
            hint=f"{restart(see)}: its start removes them",
        )
    return ok("nothing was left behind")


@PLACE_CHECKS.check(
    "mount",
    "the slots can be written, and run from where they are",
    why="On a file system that is mounted read-only or noexec every update is refused.",
)
def mount(see: Probes) -> Result:
    """Read-only and noexec mounts."""
    place = Path(see.layout.slots_dir)
    try:
        refuse_unwritable_mount(place, executable=True, statvfs=see.statvfs)
    except HostError as error:
        if isinstance(error.__cause__, OSError):
            return unknown(f"could not be told: {error.message}")
        return fail(f"updates are refused: {error.message}", f"mount: {mount_of(place)}", hint=error.hint)
    return ok("the slots' file system can be written and executed from", f"mount: {mount_of(place)}")


@PLACE_CHECKS.check(
    "room",
    "there is room for the next update",
    why="An update that does not fit is not begun, and the rollout waits at this node.",
)
def room(see: Probes) -> Result:
    """Room for a release as large as the largest one here."""
    layout, status = see.layout, see.status
    sizes = [record.size for slot in SLOTS if (record := status.record(slot)) is not None]
    size = max(sizes, default=_USUAL_BYTES)
    try:
        check_room(Path(layout.staging), Path(layout.slots_dir), size, already=0, statvfs=see.statvfs)
    except HostError as error:
        if error.code != "no-space":
            return unknown(f"could not be told: {error.message}")
        places = f"staging: {layout.staging}; slots: {layout.slots_dir}"
        return warn(f"the next update does not fit: {error.message}", places, hint=error.hint)
    return ok(f"there is room for an update of {max(1, size // 2**20)} MiB")
