"""Slots: the two files, the two links, and the entrypoint that leads to them."""

import os
import stat
from collections.abc import Iterator

from bcd.core.entrypoint import EntrypointKind, inspect_entrypoint
from bcd.core.errors import Refusal
from bcd.core.links import CURRENT, PREVIOUS, SLOTS, Link, slot_file
from bcd.core.slotfile import hash_slot_file
from bcd.doctor.check import Registry, Result, fail, note, ok, skipped, unknown, warn
from bcd.doctor.probes import Probes

SLOT_CHECKS = Registry("slots")


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
