"""Slots: the two files, the two links, and the entrypoint that leads to them."""

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bcd.core.binary import HEADER_BYTES, check_header
from bcd.core.build import this_platform
from bcd.core.entrypoint import EntrypointKind, inspect_entrypoint
from bcd.core.errors import HostError, Refusal
from bcd.core.leftovers import stale_files
from bcd.core.links import CURRENT, PREVIOUS, SLOTS, Link, slot_file
from bcd.core.slotfile import hash_slot_file
from bcd.core.space import check_room, mount_of, refuse_unwritable_mount
from bcd.core.text import Foreign
from bcd.doctor.check import Registry, Result, fail, note, ok, skipped, unknown, warn
from bcd.doctor.probes import Probes

SLOT_CHECKS = Registry("slots")

_USUAL_BYTES = 64 * 2**20
"""What a release takes where none was recorded yet."""


def in_use(see: Probes) -> bool:
    """Whether this node has updated before: there is a `current` of any kind."""
    return see.status.current.present


_NOT_IN_USE = "the slots are not in use yet: the first update adopts the entrypoint"


@SLOT_CHECKS.check(
    "entrypoint-link",
    "the entrypoint leads to `current`",
    why="The service starts the entrypoint. Where that is not a link to `current`, an update switches something that "
    "nobody starts, and a rollback brings back nothing.",
)
def entrypoint_link(see: Probes) -> Result:
    """Required by the rules: fail when the slots are in use but the entrypoint does not link to `current`."""
    layout = see.layout
    try:
        kind = inspect_entrypoint(layout, as_root=see.euid == 0)
    except Refusal as refusal:
        return fail(refusal.message, f"{layout.entrypoint}: {_what_is(layout.entrypoint)}", hint=refusal.hint)
    if kind is EntrypointKind.LINKED:
        return ok(f"{layout.entrypoint} leads to {layout.current}")
    if in_use(see):
        return fail(
            f"{layout.entrypoint} is a plain file, so the service does not start what the slots hold",
            f"{layout.entrypoint}: {_what_is(layout.entrypoint)}",
            f"{layout.current}: {see.status.current.target}",
            hint=f"ln -sfn {layout.current} {layout.entrypoint}, unless the file there was installed on purpose: "
            "then the next update adopts it",
        )
    return note(f"{layout.entrypoint} is a plain file; the first update adopts it")


@SLOT_CHECKS.check(
    "links",
    "`current` and `previous` each name a slot",
    why="`current` is what starts, `previous` what a rollback brings back. Only the relative names of the two slots are "
    "ours; anything else was made by someone else.",
)
def links(see: Probes) -> Iterator[Result]:
    """Whole and relative."""
    if not in_use(see):
        yield skipped(_NOT_IN_USE)
        return
    status = see.status
    for name, link in ((CURRENT, status.current), (PREVIOUS, status.previous)):
        yield _link(see, name, link)


def _link(see: Probes, name: str, link: Link) -> Result:
    path = os.path.join(see.layout.slots_dir, name)
    if not link.present:
        return note(f"there is no {name} yet: no update has run here")
    if link.slot is None:
        what = "is no link" if link.target is None else f"points at {link.target}, which is no slot's relative name"
        return fail(
            f"{path} {what}",
            f"{path}: {_what_is(path)}",
            hint=f"find the slot that holds what runs (bcd update), then ln -sfn bcd-a {path} or ln -sfn bcd-b {path}",
        )
    if not os.path.isfile(path):
        return fail(
            f"{path} points at {link.target}, and there is no such file",
            f"{os.path.join(see.layout.slots_dir, link.target or '')}: missing",
            hint=f"install bcd at {see.layout.entrypoint} anew, then start the service",
        )
    return ok(f"{name} is slot {link.slot}")


@SLOT_CHECKS.check(
    "digests",
    "each slot's file hashes to its record",
    why="A slot whose bytes are not those that were verified may be torn by a crash or changed by someone. A rollback to "
    "it is refused.",
)
def digests(see: Probes) -> Iterator[Result]:
    """Files against records."""
    if not in_use(see):
        yield skipped(_NOT_IN_USE)
        return
    status = see.status
    if status.slots.state == "unreadable":
        yield unknown(f"could not be told: {see.layout.slots_record}: {status.slots.why}", hint="sudo bcd doctor")
        return
    for slot in SLOTS:
        path = os.path.join(see.layout.slots_dir, slot_file(slot))
        record = status.record(slot)
        see.doing(f"hashing slot {slot}")
        if record is None:
            if os.path.lexists(path) and slot == status.current.slot:
                yield warn(
                    f"slot {slot} runs and has no record, so a rollback to it could not be checked",
                    f"{see.layout.slots_record}: nothing for slot {slot}",
                    hint="nothing to do: the next update records it anew",
                )
            continue
        found = hash_slot_file(see.layout.slots_dir, slot)
        if found is None:
            yield fail(f"slot {slot} has a record and no file", f"{path}: {_what_is(path)}", hint=_mend(see, slot))
        elif found != (record.sha256, record.size):
            yield fail(
                f"slot {slot} does not hold the bytes that its record names ({record.version})",
                f"{path}: {found.size} bytes, sha256 {found.sha256}",
                f"{see.layout.slots_record}: {record.size} bytes, sha256 {record.sha256}",
                hint=_mend(see, slot),
            )
        else:
            yield ok(f"slot {slot} holds {record.version}, as recorded")


def _mend(see: Probes, slot: str) -> str:
    if slot == see.status.current.slot:
        return f"install bcd at {see.layout.entrypoint} anew, then start the service"
    return "nothing runs from it: the next update writes it anew"


def _what_is(path: str) -> str:
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


@SLOT_CHECKS.check(
    "runs",
    "the current slot's program runs and is for this platform",
    why="What can't be started now can't be started after the next reboot either.",
)
def runs(see: Probes) -> Result:
    """Start it with `version --json`, and look at its header."""
    status = see.status
    slot = status.current.slot
    if slot is None:
        return skipped(_NOT_IN_USE if not in_use(see) else "`current` names no slot")
    path = os.path.join(see.layout.slots_dir, slot_file(slot))
    try:
        with open(path, "rb") as file:
            check_header(file.read(HEADER_BYTES), this_platform())
        see.doing(f"starting {path} version --json")
        ran = see.run([path, "version", "--json"], see.timeout_seconds)
        version = json.loads(ran.stdout)["version"]
    except Refusal as refusal:
        return fail(refusal.message, f"{path}: {_what_is(path)}", hint=_mend(see, slot))
    except subprocess.TimeoutExpired:
        return unknown(f"could not be told: {path} did not say its version in {see.timeout_seconds:g} s")
    except PermissionError:
        if os.access(path, os.R_OK):
            return fail(
                f"{path} can't be executed",
                f"{path}: {_what_is(path)}",
                hint=f"chmod 0755 {path}, unless noexec is meant",
            )
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        return fail(
            f"{path} does not say its version, so it is no bcd that runs", f"{path}: {error}", hint=_mend(see, slot)
        )
    record = status.record(slot)
    if record is not None and record.version != version:
        return warn(
            f"slot {slot} is recorded as {record.version} and says that it is {Foreign(str(version))}",
            f"{path} version --json",
            hint="nothing to do: the digest decides; the next update records anew",
        )
    return ok(f"slot {slot} runs: bcd {Foreign(str(version))}")


@SLOT_CHECKS.check(
    "modes",
    "the slots' files may be started by all and changed by their owner alone",
    why="A slot that others may write is theirs to fill; one that the service's user can't execute does not start.",
)
def modes(see: Probes) -> Iterator[Result]:
    """Owners and modes of the files."""
    if not in_use(see):
        yield skipped(_NOT_IN_USE)
        return
    good = True
    for slot in SLOTS:
        path = os.path.join(see.layout.slots_dir, slot_file(slot))
        if not os.path.lexists(path):
            continue
        found = os.lstat(path)
        evidence = f"{path}: {_what_is(path)}"
        if found.st_uid not in (0, see.euid) or found.st_mode & 0o022:
            good = False
            yield fail(
                f"{path} may be changed by others than root, who so choose what starts",
                evidence,
                hint=f"chown root:root {path} && chmod 0755 {path}",
            )
        elif found.st_mode & 0o555 != 0o555:
            good = False
            yield fail(f"{path} can't be executed by all", evidence, hint=f"chmod 0755 {path}")
    if good:
        yield ok("each slot's file is its owner's to change and everybody's to start")


@SLOT_CHECKS.check(
    "directories",
    "every directory on the way is its owner's alone",
    why="Whoever may write one of them can put another directory in its place, and so choose what starts.",
)
def directories(see: Probes) -> Iterator[Result]:
    """Each directory on the way to the slots and the entrypoint, links resolved step by step."""
    layout = see.layout
    strict = see.config.helper is not None
    checked: set[str] = set()
    good = True
    for start in (layout.slots_dir, os.path.dirname(layout.entrypoint)):
        for path in _parents(os.path.realpath(start)):
            if path in checked or not os.path.isdir(path):
                continue
            checked.add(path)
            found = os.stat(path)
            # In a sticky directory (/tmp) nobody may rename what is not theirs; the helper does not accept even that.
            writable = bool(found.st_mode & 0o022) and (strict or not found.st_mode & stat.S_ISVTX)
            if found.st_uid not in (0, see.euid) or writable:
                good = False
                yield fail(
                    f"{path} may be changed by others than root",
                    f"{path}: {_what_is(path)}",
                    hint=f"chown root:root {path} && chmod go-w {path}",
                )
    if good:
        yield ok("every directory on the way to slots and entrypoint is its owner's alone")


def _parents(path: str) -> list[str]:
    found = [path]
    while os.path.dirname(found[-1]) != found[-1]:
        found.append(os.path.dirname(found[-1]))
    return found


@SLOT_CHECKS.check(
    "leftovers",
    "nothing was left behind by an update that was cut off",
    why="Leftovers take room. The agent's next start removes them; where they stay, nothing starts.",
)
def leftovers(see: Probes) -> Result:
    """Temporary files of ours, and old downloads."""
    layout = see.layout
    if see.status.pending.value is not None:
        return skipped("an update is pending; its files are in use")
    found = stale_files(layout, see.clock)
    if found:
        return note(
            f"{len(found)} files were left behind by an update that was cut off",
            *found,
            hint="restart the agent, which removes them",
        )
    return ok("nothing was left behind")


@SLOT_CHECKS.check(
    "mount",
    "the slots can be written, and run from where they are",
    why="On a file system that is mounted read-only or noexec every update is refused.",
)
def mount(see: Probes) -> Result:
    """Read-only and noexec mounts."""
    try:
        refuse_unwritable_mount(Path(see.layout.slots_dir), executable=True)
    except HostError as error:
        return fail(
            f"updates are refused: {error.message}", f"mount: {mount_of(Path(see.layout.slots_dir))}", hint=error.hint
        )
    return ok("the slots' file system can be written and executed from")


@SLOT_CHECKS.check(
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
        check_room(Path(layout.staging), Path(layout.slots_dir), size, already=0)
    except HostError as error:
        return warn(f"the next update does not fit: {error.message}", hint=error.hint)
    return ok(f"there is room for an update of {max(1, size // 2**20)} MiB")
