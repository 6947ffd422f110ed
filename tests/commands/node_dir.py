"""A node's files in a directory of its own, for the tests of the command: what it was configured with and what it wrote.

Only the disk: nothing here runs an agent. `Node.snapshot()` is all of it, so that "changes nothing" can be asserted.
"""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bcd.release.keys import ReleaseKey

Json = dict[str, object]

REASON = "bcd 1.4.1 was not welcomed by a gateway before its deadline"
PINS = tuple(f"sha256/{letter * 42}A=" for letter in "AB")
WHEN = 1_790_000_000


class Entry(NamedTuple):
    """One name in a snapshot."""

    kind: int
    mode: int
    content: bytes
    """A file's bytes, a link's target."""
    changed_ns: int


class Node:
    """A node that updated once: 1.4.0 in slot b, 1.3.2 in slot a, floor 14, two pins."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.config = home / "config.toml"
        self.data = home / "var"
        self.records = self.data / "update"
        self.slots = home / "lib"
        self.entrypoint = home / "bin" / "bcd"
        for directory in (self.records, self.slots, self.entrypoint.parent):
            directory.mkdir(parents=True)
        for slot in "ab":
            program = self.slots / f"bcd-{slot}"
            program.write_bytes(b"#!/bin/sh\n")
            program.chmod(0o755)
        (self.slots / "current").symlink_to("bcd-b")
        (self.slots / "previous").symlink_to("bcd-a")
        self.entrypoint.symlink_to(self.slots / "current")
        self.write_slots({"a": slot_entry("1.3.2", 13), "b": slot_entry("1.4.0", 14)})
        self.write_update([failed("1.4.1")])
        self.configure()

    @property
    def update_json(self) -> Path:
        """The floor and what failed."""
        return self.records / "update.json"

    @property
    def pending_json(self) -> Path:
        """The swap that is not settled."""
        return self.records / "upgrade.json"

    @property
    def slots_json(self) -> Path:
        """What the slots' files are."""
        return self.slots / "slots.json"

    @property
    def history(self) -> Path:
        """One line an event."""
        return self.records / "history.jsonl"

    @property
    def socket(self) -> Path:
        """Where an agent shows its live state."""
        return self.data / "node.sock"

    def configure(self, *, pins: tuple[str, ...] = PINS, threshold: int = 2, more: str = "", node: str = "") -> None:
        """Write the configuration; `more` is TOML at its end, `node` is within [node]."""
        self.config.write_text(
            f"[node]\ndata_dir = {json.dumps(str(self.data))}\n{node}\n"
            f'[update]\nrelease_pins = "{",".join(pins)}"\nrelease_threshold = {threshold}\n'
            f'slots_dir = "{self.slots}"\nentrypoint = "{self.entrypoint}"\n{more}'
        )

    def pin(self, keys: tuple[ReleaseKey, ...]) -> None:
        """Configure these keys' pins, two of which must sign."""
        self.configure(pins=tuple(key.pin for key in keys))

    def use_helper(self) -> None:
        """Make it a node whose records are the helper's, beside the slots."""
        self.records = self.slots
        self.write_update([failed("1.4.1")])
        self.configure(more="[helper]\n")

    def unadopted(self) -> None:
        """Put it back to before its first update: a plain file at the entrypoint, no slots, no records."""
        for path in (self.entrypoint, self.update_json, *self.slots.iterdir()):
            path.unlink()
        self.entrypoint.write_bytes(b"#!/bin/sh\n")
        self.entrypoint.chmod(0o755)

    def write_slots(self, slots: Mapping[str, Json | None]) -> None:
        """Write `slots.json`."""
        self.slots_json.write_text(json.dumps({"format": 1, **slots}))

    def write_update(self, entries: list[Json], sequence: int = 14, confirmed: Json | None = None) -> None:
        """Write `update.json`."""
        document = {"format": 1, "sequence": sequence, "confirmed": confirmed, "failed": entries}
        self.update_json.write_text(json.dumps(document))

    def write_pending(self, seconds_left: float = 87.5, **changes: object) -> None:
        """Write `upgrade.json`: 1.4.2 swapped into slot a, `current` moved there, so long left of its time."""
        (self.slots / "current").unlink()
        (self.slots / "current").symlink_to("bcd-a")
        (self.slots / "previous").unlink()
        (self.slots / "previous").symlink_to("bcd-b")
        self.write_slots({"a": slot_entry("1.4.2", 15), "b": slot_entry("1.4.0", 14)})
        ago = 120 - seconds_left
        document = {
            "format": 1,
            "swap_id": "5a" * 16,
            "state": "swapped",
            "from_version": "1.4.0",
            "to_version": "1.4.2",
            "from_slot": "b",
            "to_slot": "a",
            "sequence": 15,
            "command_id": None,
            "launched": True,
            "swapped_at": int(time.time() - ago),
            "deadline": int(time.time() - ago) + 120,
            "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            "swapped_boottime": time.clock_gettime(time.CLOCK_BOOTTIME) - ago,
            **changes,
        }
        self.pending_json.write_text(json.dumps(document))

    def write_history(self, *events: Json) -> None:
        """Write `history.jsonl`, oldest first."""
        self.history.write_text("".join(json.dumps(event) + "\n" for event in events))

    def forbid(self, path: Path) -> None:
        """Let no other user read `path`; where the tests are no root's, not even its owner."""
        mode = 0o700 if path.is_dir() else 0o600
        path.chmod(mode if os.geteuid() == 0 else 0)

    def forbid_writing(self) -> None:
        """Let nobody but root write the records."""
        if os.geteuid() != 0:
            self.records.chmod(0o555)

    def snapshot(self) -> dict[str, Entry]:
        """Every name below the node's directory, with all that a change would show in."""
        return {str(path.relative_to(self.home)): _entry(path) for path in sorted(self.home.rglob("*"))}


def slot_entry(version: str, sequence: int) -> Json:
    """A slot in `slots.json`."""
    return {"version": version, "sequence": sequence, "sha256": "ab" * 32, "size": 10, "written_at": WHEN}


def failed(version: str, reason: str = REASON, sequence: int = 15) -> Json:
    """A failed version in `update.json`."""
    return {"version": version, "sequence": sequence, "reason": reason, "at": WHEN}


def _entry(path: Path) -> Entry:
    found = path.lstat()
    content = b""
    if path.is_symlink():
        content = str(path.readlink()).encode()
    elif path.is_file():
        content = path.read_bytes()
    return Entry(found.st_mode & 0o170000, found.st_mode & 0o7777, content, found.st_mtime_ns)
