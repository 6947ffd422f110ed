"""The evidence of what is on the screen: for each value the file that it came from, and the rule that makes it so. Pure.

Which bytes that file has now is read again by `look`, for the digest and the time.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from bcd.tui.snapshot import Snapshot

_LIMIT_BYTES = 4 * 1024 * 1024
Look = Callable[[str], tuple[str, str]]
"""What is at a path now: when it changed, and its digest, its target, its size, or why it can't be told."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What one value rests on."""

    name: str
    value: str
    path: str
    rule: str
    """The section of the rules (docs/concepts) that gives it its meaning."""


def evidence_of(snapshot: Snapshot) -> tuple[Evidence, ...]:
    """What the values on the overview rest on."""
    status = snapshot.status
    if status is None:
        return ()
    layout, config = status.layout, status.config
    update, pending = status.update.value, status.pending.value
    pins = config.update
    rows = [
        Evidence(
            name="version",
            value=snapshot.running or "unknown",
            path=layout.slots_record,
            rule="what the current slot holds",
        ),
        Evidence(name="current", value=status.current.target or "none", path=layout.current, rule="what starts"),
        Evidence(
            name="entrypoint",
            value=snapshot.entrypoint_leads.removeprefix("→ ") or "unknown",
            path=layout.entrypoint,
            rule="what the service starts",
        ),
        Evidence(
            name="floor", value=status.floor_words, path=layout.update_record, rule="never falls; raised by a welcome"
        ),
        Evidence(
            name="pins",
            value=f"{len(pins.release_pins)}, threshold {pins.release_threshold}",
            path=config.path,
            rule="who may sign a release",
        ),
    ]
    if pending is not None:
        rows.append(
            Evidence(
                name="deadline",
                value=f"{datetime.fromtimestamp(pending.deadline).astimezone():%H:%M:%S}",
                path=layout.pending_record,
                rule="120 s after the swap, by the boot clock",
            )
        )
    seen = snapshot.vitals
    if seen.pid is not None:
        rows.append(
            Evidence(
                name="agent",
                value=f"{seen.pid}, {seen.memory_mib} MiB",
                path=f"/proc/{seen.pid}/stat",
                rule="its id is its own word, the rest the kernel's",
            )
        )
    rows += [
        Evidence(
            name=f"failed {entry.version}",
            value=entry.reason,
            path=layout.update_record,
            rule="refused here until cleared",
        )
        for entry in (update.failed if update is not None else ())
    ]
    return tuple(rows)


def look(path: str) -> tuple[str, str]:
    """A file's modification time and the beginning of its SHA-256, now; of a link its target, of a large file its size."""
    if path.startswith("/proc/"):
        return "", "the kernel's, at each moment anew"
    try:
        found = os.lstat(path)
        when = f"{datetime.fromtimestamp(found.st_mtime).astimezone():%Y-%m-%d %H:%M:%S}"
        if os.path.islink(path):
            return when, f"→ {os.readlink(path)}"
        if found.st_size > _LIMIT_BYTES:
            return when, f"{found.st_size} bytes"
        with open(path, "rb") as file:
            return when, f"sha256 {hashlib.sha256(file.read(_LIMIT_BYTES)).hexdigest()[:16]}"
    except OSError as error:
        return "", error.strerror or "not to be read"
