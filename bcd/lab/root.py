"""A node's sandboxed root: where its files lie, and what they say.

Reads with plain `json` and `readlink`, not with bcd's own readers: the lab is to see what is on the disk, not what bcd
makes of it. Paths and formats are those of spec/self-update.md section 5.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Root:
    """The directory that stands for a node's whole file system."""

    home: Path
    node_uid: int | None = None
    """The user, and the group of the same number, as which the node runs; None where it runs as root alone."""

    @property
    def config(self) -> Path:
        """The node's configuration."""
        return self.home / "etc" / "config.toml"

    @property
    def entrypoint(self) -> Path:
        """What the supervisor starts."""
        return self.home / "bin" / "bcd"

    @property
    def slots(self) -> Path:
        """The slots directory."""
        return self.home / "lib" / "bcd"

    @property
    def data(self) -> Path:
        """The node's `data_dir`."""
        return self.home / "var"

    @property
    def records(self) -> Path:
        """Where `update.json` and `upgrade.json` lie."""
        return self.data / "update" if self.node_uid is None else self.slots

    @property
    def socket(self) -> Path:
        """The helper's."""
        return self.home / "run" / "helper.sock"

    @property
    def temporary(self) -> Path:
        """For temporary files."""
        return self.home / "tmp"

    @property
    def log(self) -> Path:
        """What the node and its supervisor said."""
        return self.home / "node.log"

    @property
    def helper_log(self) -> Path:
        """What the helper and its supervisor said."""
        return self.home / "helper.log"

    @property
    def fault_file(self) -> Path:
        """Arms a power cut (see `bcd.lab.binary`). Where node and helper may both take it away."""
        return self.temporary / "power-cut"

    @property
    def clock_file(self) -> Path:
        """Steps the wall clock (see `bcd.lab.clock`)."""
        return self.home / "clock-step"

    def make(self, *, binary: bytes, config: Mapping[str, Mapping[str, str | int]]) -> None:
        """Lay out a machine on which a plain bcd was just installed; `config` is tables of keys."""
        nodes = (self.data, self.temporary)
        for directory in (self.config.parent, self.entrypoint.parent, self.slots, self.socket.parent, *nodes):
            directory.mkdir(parents=True)
            directory.chmod(0o755)
            if self.node_uid is not None and directory in nodes:
                os.chown(directory, self.node_uid, self.node_uid)
        self.config.write_text(_toml(config), encoding="utf-8")
        self.install(binary)

    def install(self, binary: bytes) -> None:
        """Put a plain file at the entrypoint, as an install script does: a new file, moved over what is there."""
        new = self.entrypoint.with_name("bcd.new")
        new.write_bytes(binary)
        new.chmod(0o755)
        os.replace(new, self.entrypoint)

    def link(self, name: str) -> str | None:
        """What the link `current` or `previous` says; None where there is no link."""
        try:
            return os.readlink(self.slots / name)
        except OSError:
            return None

    def slot_digest(self, slot: str) -> str | None:
        """The SHA-256 of a slot's file in hex; `slot` is `bcd-a` or `bcd-b`. None where there is no file."""
        try:
            return hashlib.sha256((self.slots / slot).read_bytes()).hexdigest()
        except OSError:
            return None

    def slots_record(self) -> Json:
        """`slots.json`; empty where there is none."""
        return _read(self.slots / "slots.json") or {}

    def update_record(self) -> Json:
        """`update.json`; empty where there is none."""
        return _read(self.records / "update.json") or {}

    def pending(self) -> Json | None:
        """`upgrade.json`; None where no update is pending."""
        return _read(self.records / "upgrade.json")

    def failed(self) -> dict[str, str]:
        """The failed versions and why each failed."""
        return {entry["version"]: entry["reason"] for entry in self.update_record().get("failed", [])}

    def events(self) -> list[Json]:
        """The history's lines, oldest first."""
        try:
            lines = (self.records / "history.jsonl").read_text(encoding="utf-8").splitlines()
        except OSError:
            return []
        return [json.loads(line) for line in lines]

    def age_pending(self, seconds: int) -> None:
        """Make the pending update look as if the machine had been off for `seconds` and booted again since.

        The record's times are moved back, which is all that a node can tell from a real wait. For a node that is
        stopped, between `current-linked` and its settling.
        """
        path = self.records / "upgrade.json"
        record = json.loads(path.read_bytes())
        record["swapped_at"] -= seconds
        record["deadline"] -= seconds
        record["boot_id"] = "00000000-0000-4000-8000-000000000000"
        path.write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")

    def log_tail(self, lines: int) -> list[str]:
        """The log's last lines, then those of the helper's."""
        return [line for log in (self.log, self.helper_log) for line in _lines(log)[-lines:]]


def _lines(log: Path) -> list[str]:
    try:
        return log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _read(path: Path) -> Json | None:
    """A record, None where there is none. Read again when it does not parse: it may have been replaced meanwhile."""
    for _ in range(3):
        try:
            document = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            time.sleep(0.05)
            continue
        return document if isinstance(document, dict) else None
    return None


def _toml(tables: Mapping[str, Mapping[str, str | int]]) -> str:
    lines = []
    for table, values in tables.items():
        lines.append(f"[{table}]")
        # A JSON string of our paths is a TOML basic string as well.
        lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
        lines.append("")
    return "\n".join(lines)
