"""Staging: from the download to the other slot, judged again as it is copied (spec/self-update.md section 6, step 5).

The staged file lies where the node's user may write, so nothing about it is believed: it is opened without following
anything, and what is hashed is what is written into the slot.
"""

import logging
import os
import shutil
import subprocess

from bcd.core.clock import Clock
from bcd.core.layout import Layout
from bcd.core.links import Slot, slot_file
from bcd.core.manifest import Artifact, Manifest
from bcd.core.records import SlotRecord
from bcd.core.safeopen import open_plain_beneath
from bcd.core.slotfile import Digest, replace_slot_file
from bcd.core.store import Store

_SELINUX = "/sys/fs/selinux/enforce"
_log = logging.getLogger(__name__)


def stage(
    layout: Layout,
    store: Store,
    clock: Clock,
    *,
    slot: Slot,
    manifest: Manifest,
    artifact: Artifact,
    owner: int | None,
    platform: str,
) -> SlotRecord:
    """Copy the staged file into `slot` and record it.

    The slot's record is cleared before its file is replaced, so a cut leaves no record, never one of other bytes.

    Raises:
        HostError: the staged file is not a plain file of the right bytes.
        Refusal: `wrong-platform-binary`.
        OSError: it could not be read or written; the slot's file is the old one or whole.
    """
    source = open_plain_beneath(layout.data_dir, "staging", f"bcd-{manifest.version}", owner=owner)
    try:
        replace_slot_file(
            layout.slots_dir,
            slot,
            source,
            expected=Digest(artifact.sha256, artifact.size),
            platform=platform,
            before_rename=lambda: store.save_slots(store.slots().having(slot, None)),
        )
    finally:
        os.close(source)
    restore_label(os.path.join(layout.slots_dir, slot_file(slot)))
    record = SlotRecord(
        manifest.version,
        manifest.sequence,
        artifact.sha256,
        artifact.size,
        int(clock.wall()),
        expires_at=manifest.expires_at,
    )
    store.save_slots(store.slots().having(slot, record))
    return record


def restore_label(path: str) -> None:
    """Where SELinux is on, give a slot's file its place's label; what goes wrong with it is logged.

    Field report 27: a file with another directory's label is not executed by the service manager.
    """
    tool = shutil.which("restorecon") if os.path.exists(_SELINUX) else None
    if tool is None:
        return
    try:
        ran = subprocess.run([tool, "--", path], capture_output=True, check=False, timeout=60)  # noqa: S603  # our own path
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("restorecon on %s did not run: %s", path, error)
        return
    if ran.returncode != 0:
        _log.warning("restorecon on %s ended with %d", path, ran.returncode)
