"""What several checks say in the same words: what lies at a path, the commands that mend it, how long ago."""

import os
import shlex
import stat

from bcd.core.links import CURRENT, PREVIOUS, SLOTS, Link, Slot, other_slot, slot_file
from bcd.core.slotfile import is_program, is_whole
from bcd.core.units import NODE_UNIT
from bcd.doctor.probes import CannotTell, Probes

_DAY_SECONDS = 24 * 3600
NOT_IN_USE = "the slots are not in use yet: the first update adopts the entrypoint"


def in_use(see: Probes) -> bool:
    """Whether this node has updated before: there is a `current` of any kind.

    Raises:
        CannotTell: this user may not look. Never taken for a fresh install (field report 38).
    """
    current = see.layout.current
    for problem in see.status.problems:
        if problem.what == current:
            raise CannotTell(f"{current}: {problem.why}", see.command("doctor", root=True))
    return see.status.current.present


def relink(see: Probes, name: str, link: Link) -> str:
    """The command that makes a link right, where it can be told which slot was meant."""
    directory = see.layout.slots_dir
    path = os.path.join(directory, name)
    programs = [slot for slot in SLOTS if is_program(directory, slot)]
    meant = [slot for slot in programs if slot_file(slot) == os.path.basename(link.target or "")] or programs
    if name == PREVIOUS and see.status.current.slot is not None:
        meant = [slot for slot in programs if slot != see.status.current.slot]
    away = "" if link.target is not None or not link.present else f"{shlex.join(['mv', path, f'{path}.aside'])} && "
    commands = [f"{away}{shlex.join(['ln', '-sfn', slot_file(slot), path])}" for slot in meant]
    if not commands:
        return "nothing starts from it: the next update makes it anew" if name == PREVIOUS else install(see)
    which = f" (which of them ran: {see.command('update', 'history')})" if len(commands) > 1 else ""
    return f"{', or '.join(commands)}{which}{f'; then {restart(see)}' if name == CURRENT else ''}"


def mend(see: Probes, slot: Slot) -> str:
    """What to do about a slot whose file is not what it should be."""
    directory, other = see.layout.slots_dir, other_slot(slot)
    if slot != see.status.current.slot:
        return "nothing starts from it: the next update writes it anew"
    record = see.status.record(other)
    if record is not None and is_whole(directory, other, record):
        back = shlex.join(["ln", "-sfn", slot_file(other), see.layout.current])
        return f"{back} && {restart(see)}, which goes back to {record.version}; or {install(see)}"
    return install(see)


def install(see: Probes) -> str:
    """What to do where no slot is of use any more."""
    entrypoint = shlex.quote(see.layout.entrypoint)
    return f"install bcd at {entrypoint} anew (mv -f NEW {entrypoint}), then {restart(see)}"


def restart(see: Probes) -> str:
    """The command that starts the agent anew, where there is one."""
    return f"systemctl restart {NODE_UNIT}" if see.has_systemd else "restart the agent"


def what_is(path: str) -> str:
    """What lies at a path, as evidence: `a file of uid 0, mode 0755`."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return error.strerror or "not to be looked at"
    if stat.S_ISLNK(found.st_mode):
        return f"a link to {os.readlink(path)}"
    kind = "a file" if stat.S_ISREG(found.st_mode) else "a directory" if stat.S_ISDIR(found.st_mode) else "no file"
    return f"{kind} of uid {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o}"


def is_regular(path: str) -> bool:
    """Whether a regular file lies there, links not followed. Raises PermissionError where that can't be seen."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def ago(seconds: float) -> str:
    """How long ago that was, in the largest unit of which it is one at least: `3 days ago`."""
    days, hours = int(seconds / _DAY_SECONDS), int(seconds / 3600)
    count, unit = (days, "day") if days else (hours, "hour")
    return f"{count} {unit}{'' if count == 1 else 's'} ago" if count else "less than an hour ago"
