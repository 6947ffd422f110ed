"""Slots: the two files, the two links, and the entrypoint that leads to them."""

import errno
import json
import os
import shlex
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bcd.core.binary import HEADER_BYTES, check_header
from bcd.core.entrypoint import EntrypointKind, inspect_entrypoint
from bcd.core.errors import Refusal
from bcd.core.links import CURRENT, PREVIOUS, SLOTS, Link, Slot, slot_file
from bcd.core.slotfile import hash_slot_file
from bcd.core.space import mount_of
from bcd.core.text import Foreign, raw
from bcd.doctor.check import Registry, Result, fail, note, ok, skipped, unknown, warn
from bcd.doctor.checks.slot_words import NOT_IN_USE, in_use, install, is_regular, mend, relink, restart, what_is
from bcd.doctor.probes import Probes, Ran, why_it_did_not_run

SLOT_CHECKS = Registry("slots")


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
        if isinstance(refusal.__cause__, PermissionError):
            raise refusal.__cause__ from refusal
        return fail(
            refusal.message, f"{layout.entrypoint}: {what_is(layout.entrypoint)}", hint=_mend_entrypoint(see, refusal)
        )
    if kind is EntrypointKind.LINKED:
        return ok(f"{layout.entrypoint} leads to {layout.current}")
    if in_use(see):
        return fail(
            f"{layout.entrypoint} is a plain file, so the service does not start what the slots hold",
            f"{layout.entrypoint}: {what_is(layout.entrypoint)}",
            f"{layout.current}: {what_is(layout.current)}",
            hint=f"{shlex.join(['ln', '-sfn', layout.current, layout.entrypoint])} && {restart(see)}; or, where the "
            "file was installed on purpose, nothing: the next update adopts it",
        )
    return note(f"{layout.entrypoint} is a plain file; the first update adopts it")


def _mend_entrypoint(see: Probes, refusal: Refusal) -> str:
    layout = see.layout
    current, entrypoint = shlex.quote(layout.current), shlex.quote(layout.entrypoint)
    if os.path.isfile(layout.current) and see.status.current.slot is not None:
        # Where a link is in the way, or nothing: what the slots hold is what is to start.
        return f"ln -sfn {current} {entrypoint} && {restart(see)}"
    if see.status.current.present:
        return f"first what slots.links says, then ln -sfn {current} {entrypoint}"
    if refusal.hint.startswith("chown"):
        return f"chown root:root {entrypoint} && chmod 0755 {entrypoint}"
    return install(see)


@SLOT_CHECKS.check(
    "links",
    "`current` and `previous` each name a slot",
    why="`current` is what starts, `previous` what a rollback brings back. Only the relative names of the two slots are "
    "ours; anything else was made by someone else.",
)
def links(see: Probes) -> Iterator[Result]:
    """Whole and relative."""
    if not in_use(see):
        yield skipped(NOT_IN_USE)
        return
    status = see.status
    for name, link in ((CURRENT, status.current), (PREVIOUS, status.previous)):
        yield _link(see, name, link)


def _link(see: Probes, name: str, link: Link) -> Result:
    path = os.path.join(see.layout.slots_dir, name)
    for problem in see.status.problems:
        if problem.what == path:
            return unknown(f"could not be told: {path}: {problem.why}", hint=see.command("doctor", root=True))
    pending = see.status.pending.value
    switched = pending is not None and see.status.current.slot == pending.to_slot
    if name == PREVIOUS and pending is not None and switched and link.slot != pending.from_slot:
        return fail(
            f"{path} does not name slot {pending.from_slot}, which ran before: a crash loop is not rolled back",
            f"{path}: {what_is(path)}",
            hint=relink(see, name, link),
        )
    if not link.present:
        return note(f"there is no {name} yet: the first update makes it")
    if link.slot is None:
        what = "is no link" if link.target is None else f"points at {link.target}, which is no slot's relative name"
        return fail(f"{path} {what}", f"{path}: {what_is(path)}", hint=relink(see, name, link))
    if not os.path.isfile(path):
        file = os.path.join(see.layout.slots_dir, slot_file(link.slot))
        hint = mend(see, link.slot) if name == CURRENT else relink(see, name, link)
        return fail(f"{path} leads to no file", f"{path}: {what_is(path)}", f"{file}: {what_is(file)}", hint=hint)
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
        yield skipped(NOT_IN_USE)
        return
    reading = see.status.slots
    if reading.state in ("unreadable", "corrupt"):
        hint = see.command("doctor", root=True) if reading.state == "unreadable" else ""
        yield unknown(f"could not be told: {see.layout.slots_record}: {reading.why}", hint=hint)
        return
    said = False
    for slot in SLOTS:
        see.doing(f"hashing slot {slot}")
        result = _digest(see, slot)
        if result is not None:
            said = True
            yield result
    if not said:
        yield skipped("neither slot has a record")


def _digest(see: Probes, slot: Slot) -> Result | None:
    status, directory = see.status, see.layout.slots_dir
    path = os.path.join(directory, slot_file(slot))
    record, runs_now = status.record(slot), slot == status.current.slot
    if record is None:
        if not runs_now or not os.path.lexists(path):
            return None
        return warn(
            f"slot {slot} runs and has no record, so nobody can tell whether its file is whole",
            f"{see.layout.slots_record}: nothing for slot {slot}",
            hint="nothing to do: the next update records it anew",
        )
    found = hash_slot_file(directory, slot)
    if found == (record.sha256, record.size):
        return ok(f"slot {slot} holds {record.version}, as recorded")
    if found is None and is_regular(path) and not os.access(path, os.R_OK):
        return unknown(f"could not be told: this user may not read {path}", hint=see.command("doctor", root=True))
    # What runs, and what a pending update would go back to; the other slot is written anew before it is used.
    pending = status.pending.value
    needed = runs_now or (pending is not None and slot == pending.from_slot)
    problem = fail if needed else warn
    if found is None:
        what = "has a record and no file"
        return problem(f"slot {slot} {what}", f"{path}: {what_is(path)}", hint=mend(see, slot))
    return problem(
        f"slot {slot} does not hold the bytes that its record names ({record.version})",
        f"{path}: {found.size} bytes, sha256 {found.sha256}",
        f"{see.layout.slots_record}: {record.size} bytes, sha256 {record.sha256}",
        hint=mend(see, slot),
    )


@SLOT_CHECKS.check(
    "runs",
    "the current slot's program runs and is for this platform",
    why="What can't be started now can't be started after the next reboot either.",
)
def runs(see: Probes) -> Result:
    """Start it with `version --json`, and look at its header."""
    if not in_use(see):
        return skipped(NOT_IN_USE)
    slot = see.status.current.slot
    if slot is None:
        return skipped("`current` names no slot (slots.links)")
    path = os.path.join(see.layout.slots_dir, slot_file(slot))
    if not is_regular(path):
        return skipped(f"there is no file in slot {slot} (slots.digests)")
    seen, found = f"{path}: {what_is(path)}", os.lstat(path)
    if found.st_uid not in see.owners or found.st_mode & 0o022:
        # The attack: who may write it would have root run it, here and now.
        return unknown(f"could not be told: {path} is not started, since others may change it (slots.modes)", seen)
    with open(path, "rb") as file:
        header = file.read(HEADER_BYTES)
    try:
        check_header(header, see.platform)
    except Refusal as refusal:
        what = refusal.message.removeprefix("the downloaded file is ")
        return fail(f"slot {slot} can't start here: it is {what}", seen, hint=mend(see, slot))
    see.doing(f"starting {path} version --json")
    try:
        ran = see.run([path, "version", "--json"], see.timeout_seconds)
    except subprocess.TimeoutExpired as error:
        return unknown(f"could not be told: {path} version --json: {why_it_did_not_run(error)}", seen)
    except OSError as error:
        if error.errno != errno.EACCES:
            return fail(f"slot {slot} does not start: {why_it_did_not_run(error)}", seen, hint=mend(see, slot))
        return fail(
            f"slot {slot} can't be executed",
            seen,
            f"mount: {mount_of(Path(path))}",
            hint=f"{shlex.join(['chmod', '0755', path])}; where it is so already, look at slots.mount and SELinux",
        )
    version = _version_in(ran.stdout)
    if version is None:
        hint = mend(see, slot)
        return fail(f"slot {slot} does not say its version, so it is no bcd that runs", seen, _said(ran), hint=hint)
    record = see.status.record(slot)
    if record is not None and raw(record.version) != raw(version):
        return warn(
            f"slot {slot} is recorded as {record.version} and says that it is {version}",
            f"{path} version --json: {version}",
            f"{see.layout.slots_record}: {record.version}",
            hint="find out how this release was stamped; updates go by the record, whose digest holds (slots.digests)",
        )
    return ok(f"slot {slot} runs: bcd {version}")


def _version_in(text: str) -> Foreign | None:
    try:
        return Foreign(str(json.loads(text)["version"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _said(ran: Ran) -> str:
    lines = (ran.stderr.strip() or ran.stdout.strip() or "nothing").splitlines()
    return f"version --json: status {ran.status}, it said: {lines[-1][:200]}"


@SLOT_CHECKS.check(
    "modes",
    "the slots' files may be started by all and changed by their owner alone",
    why="A slot that others may write is theirs to fill; one that the service's user can't execute does not start.",
)
def modes(see: Probes) -> Iterator[Result]:
    """Owners and modes of the files."""
    if not in_use(see):
        yield skipped(NOT_IN_USE)
        return
    good = True
    for slot in SLOTS:
        path = os.path.join(see.layout.slots_dir, slot_file(slot))
        if not os.path.lexists(path):
            continue
        found = os.lstat(path)
        evidence, name = f"{path}: {what_is(path)}", shlex.quote(path)
        if not stat.S_ISREG(found.st_mode):
            good = False
            yield fail(f"{path} is no regular file", evidence, hint=f"mv {name} {name}.aside; {mend(see, slot)}")
        elif found.st_uid not in see.owners or found.st_mode & 0o022:
            good = False
            yield fail(
                f"{path} may be changed by others than root, who so choose what starts",
                evidence,
                hint=f"chown root:root {name} && chmod 0755 {name}",
            )
        elif found.st_mode & 0o555 != 0o555:
            good = False
            problem = fail if see.config.helper is not None or not found.st_mode & 0o100 else warn
            yield problem(f"{path} can't be executed by all", evidence, hint=f"chmod 0755 {name}")
    for path, found in _other_files(see):
        if found.st_uid in see.owners and (stat.S_ISLNK(found.st_mode) or not found.st_mode & 0o022):
            continue
        good, name = False, shlex.quote(path)
        link = stat.S_ISLNK(found.st_mode)
        yield fail(
            f"{path} may be changed by others than root, and the helper does not start beside it",
            f"{path}: {what_is(path)}",
            hint=f"chown -h root:root {name}" if link else f"chown root:root {name} && chmod go-w {name}",
        )
    if good:
        yield ok("each slot's file is its owner's to change and everybody's to start")


def _other_files(see: Probes) -> Iterator[tuple[str, os.stat_result]]:
    """What lies in the slots directory beside the slots: under a helper root's records, which it trusts."""
    if see.config.helper is None:
        return
    for name in sorted(os.listdir(see.layout.slots_dir)):
        if name not in {slot_file(slot) for slot in SLOTS}:
            path = os.path.join(see.layout.slots_dir, name)
            yield path, os.lstat(path)
