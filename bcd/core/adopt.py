"""Adoption: from a plain file at the entrypoint to a slot and two links (spec/self-update.md section 6, step 3).

Each step is durable before the next, and each cut leaves a program at the entrypoint: the file goes into the slot,
`current` points at the slot, and only then does a link take the file's place.
"""

import json
import os
import shlex
import stat
import subprocess
from collections.abc import Callable

from bcd.core import steps
from bcd.core.clock import Clock
from bcd.core.entrypoint import EntrypointKind
from bcd.core.errors import HostError
from bcd.core.layout import Layout
from bcd.core.links import CURRENT, Slot, read_link, slot_file, switch_link
from bcd.core.records import SlotRecord
from bcd.core.slotfile import hash_slot_file, replace_slot_file
from bcd.core.stage import restore_label
from bcd.core.store import Store
from bcd.core.versions import is_version

AskVersion = Callable[[str], str | None]
_ASK_SECONDS = 10


def ask_version(program: str) -> str | None:
    """Ask a program that the service would start anyway for its version; None where it gives no good answer."""
    try:
        ran = subprocess.run(  # noqa: S603  # an absolute path that this node starts as its own binary
            [program, "version", "--json"],
            capture_output=True,
            timeout=_ASK_SECONDS,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        version = json.loads(ran.stdout)["version"]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return None
    return version if isinstance(version, str) and is_version(version) else None


def adopt(
    layout: Layout,
    store: Store,
    clock: Clock,
    *,
    kind: EntrypointKind,
    platform: str,
    running_version: str,
    ask: AskVersion,
) -> Slot:
    """Make sure that the entrypoint is a link to `current` and that the current slot is recorded.

    Returns:
        The current slot.

    Raises:
        HostError: `io-error`, the slots directory holds something that is not ours.
        Refusal: `wrong-platform-binary`.
        OSError: a step failed; the entrypoint still starts what it started before.
    """
    slot = _current_slot(layout)
    if kind is EntrypointKind.ADOPTABLE:
        # Also later: an install script's `mv -f` put a plain file here, and it is newer than what the slot holds.
        _copy_entrypoint(layout, store, clock, slot, platform, running_version, ask)
        steps.reached("adopt-slot-written")
        switch_link(layout.current, slot_file(slot))
        steps.reached("adopt-current-linked")
        switch_link(layout.entrypoint, layout.current)
        steps.reached("adopted")
    elif store.slots().of(slot) is None:
        # The record was lost. Without it a rollback to this slot could not be checked.
        _record(layout, store, clock, slot, _version(layout.current, running_version, ask))
    return slot


def _current_slot(layout: Layout) -> Slot:
    link = read_link(layout.slots_dir, CURRENT)
    if link.present and link.slot is None:
        raise HostError(
            "io-error",
            f"{layout.current} is not a link to one of the slots",
            f"look into it; `ln -sfn bcd-a {shlex.quote(layout.current)}` makes slot a current",
        )
    return link.slot or "a"


def _copy_entrypoint(
    layout: Layout, store: Store, clock: Clock, slot: Slot, platform: str, running_version: str, ask: AskVersion
) -> None:
    version = _version(layout.entrypoint, running_version, ask)
    source = _open_entrypoint(layout.entrypoint)
    try:
        copied = replace_slot_file(
            layout.slots_dir,
            slot,
            source,
            expected=None,
            platform=platform,
            before_rename=lambda: store.save_slots(store.slots().having(slot, None)),
        )
    finally:
        os.close(source)
    restore_label(os.path.join(layout.slots_dir, slot_file(slot)))
    record = SlotRecord(version, 0, copied.sha256, copied.size, int(clock.wall()))
    store.save_slots(store.slots().having(slot, record))


def _open_entrypoint(path: str) -> int:
    # Unlike staging all of this is root's: the directory may be a link (/usr/sbin on a merged system), and the file
    # may have a second name (a package manager that keeps equal files once).
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    found = os.fstat(handle)
    # Again on the descriptor that is copied: what was inspected by name may have been replaced since.
    foreign = os.geteuid() == 0 and (found.st_uid != 0 or found.st_mode & 0o022)
    if not stat.S_ISREG(found.st_mode) or foreign:
        os.close(handle)
        raise HostError("io-error", f"{path} is no regular file of root's alone any more", "install bcd there")
    return handle


def _record(layout: Layout, store: Store, clock: Clock, slot: Slot, version: str) -> None:
    digest = hash_slot_file(layout.slots_dir, slot)
    if digest is not None:
        record = SlotRecord(version, 0, digest.sha256, digest.size, int(clock.wall()))
        store.save_slots(store.slots().having(slot, record))


def _version(program: str, running_version: str, ask: AskVersion) -> str:
    return ask(program) or running_version
