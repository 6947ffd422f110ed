"""The smallest healthy node, in a temporary directory: real files and links, and a machine around it that is told.

Every path that a check looks at lies below `home`. What is no file (systemd, the gateway, the agent, memory, the mount,
the clocks) is answered from plain attributes, which a fault changes. Nothing outside of `home` is read but this
program's own modules, so a self-test ends the same on every machine.
"""

import json
import os
import shutil
import stat
import tempfile
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self

from bcd.core.config import Config, load_config
from bcd.core.layout import Layout, layout_of
from bcd.core.links import SLOTS, Slot
from bcd.core.records import (
    Confirmed,
    Failed,
    PendingRecord,
    SlotRecord,
    UpdateRecord,
    dump_pending,
    dump_slots,
    dump_update,
)
from bcd.core.units import NODE_UNIT, ROLLBACK_UNIT, rollback_units
from bcd.doctor.probes import Probes
from bcd.doctor.selftest.certificate import CERTIFICATE
from bcd.doctor.selftest.machine import AGENT_PID, NOW, Machine

DAY = 24 * 3600
_MEMORY = "/dev/shm"  # noqa: S108  # by mkdtemp, like any other temporary directory
OLD, NEW, NEXT = ("1.4.0", 14), ("1.4.1", 15), ("1.4.2", 16)
"""What slot a holds, what slot b holds and runs, and what a pending update brings: version and sequence."""


class Root:
    """A node that updated twice, runs 1.4.1 from slot b, and is well."""

    def __init__(self) -> None:
        """Make it. `close` removes it."""
        self.home = Path(os.path.realpath(tempfile.mkdtemp(prefix="bcd-self-test-", dir=_in_memory())))
        self.machine = Machine(home=self.home)
        self.settings: dict[str, dict[str, object]] = {
            "node": {"data_dir": f"{self.home}/var", "gateway": "wss://gateway.example.com/v1/node"},
            "update": {
                "release_pins": [_pin(name) for name in ("one", "two", "three")],
                "release_threshold": 2,
                "slots_dir": f"{self.home}/lib",
                "entrypoint": f"{self.home}/bin/bcd",
                "ca_file": f"{self.home}/etc/ca.pem",
            },
        }
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        for name in ("", "etc", "bin", "lib", "var", "var/update", "var/staging", "units", "systemd", "proc", "trust"):
            (self.home / name).mkdir(exist_ok=True)
            (self.home / name).chmod(0o755)
        self.write("etc/ca.pem", CERTIFICATE)
        self.write("trust/ca.pem", CERTIFICATE)
        self.write("proc/locks", "1: POSIX  ADVISORY  WRITE 1 00:1:1 0 EOF\n")
        self.configure()
        for slot, (version, sequence) in zip(SLOTS, (OLD, NEW), strict=True):
            self.fill_slot(slot, program(version), version, sequence)
        self.link("lib/current", "bcd-b")
        self.link("lib/previous", "bcd-a")
        self.link("bin/bcd", f"{self.home}/lib/current")
        self.write_update(UpdateRecord(15, Confirmed(*NEW, NOW - 3 * DAY, "5a" * 16), ()))
        self.write("var/update/update.lock", "")
        self.run_agent(f"{self.home}/etc/config.toml")
        self.write_units()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of whatever hangs or is held, and remove the directory."""
        self.machine.close()
        for directory, names, _ in os.walk(self.home):
            for name in names:
                path = os.path.join(directory, name)
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
        shutil.rmtree(self.home, ignore_errors=True)

    def probes(self, timeout_seconds: float = 2.0) -> Probes:
        """What checks look through: this node, this machine, and whoever runs this process."""
        machine = self.machine
        return Probes(
            config_path=str(self.home / "etc" / "config.toml"),
            build=machine.build,
            clock=machine.clock,
            environ=machine.environ,
            euid=os.geteuid(),
            run=machine.run,
            timeout_seconds=timeout_seconds,
            systemd_directory=str(self.home / "systemd"),
            unit_directory=str(self.home / "units"),
            look_at_live=machine.look_at_live,
            available_memory=machine.look_at_memory,
            free_disk=machine.look_at_disk,
            monotonic=machine.clock.boottime,
            statvfs=machine.statvfs,
            trust_stores=lambda: (str(self.home / "trust"),),
            platform=machine.platform,
            look_at_session=machine.look_at_session,
            ask_helper=machine.ask_helper,
            proc_directory=str(self.home / "proc"),
            top=str(self.home),
        )

    # -- what faults are planted with ------------------------------------------------------------------------------

    @property
    def config(self) -> Config:
        """The configuration as it is on the disk now."""
        return load_config(str(self.home / "etc" / "config.toml"))

    @property
    def layout(self) -> Layout:
        """Where the files live, by the configuration as it is now."""
        return layout_of(self.config)

    def write(self, name: str, data: str | bytes, mode: int = 0o644) -> Path:
        """Put a file at a name below `home`, in place of whatever is there."""
        path = self.home / name
        path.unlink(missing_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        path.chmod(mode)
        return path

    def remove(self, name: str) -> None:
        """Remove a file or a link."""
        (self.home / name).unlink()

    def link(self, name: str, target: str) -> None:
        """Put a link there, in place of whatever is."""
        (self.home / name).unlink(missing_ok=True)
        (self.home / name).symlink_to(target)

    def fifo(self, name: str) -> None:
        """Put a FIFO there, in place of whatever is: opened carelessly it hangs whoever looks."""
        (self.home / name).unlink(missing_ok=True)
        os.mkfifo(self.home / name, 0o644)

    def forbid(self, name: str) -> None:
        """Let nobody but root look at it: for faults that are looked at `as_nobody`."""
        path = self.home / name
        mode = 0o700 if path.is_dir() else 0o600
        path.chmod(mode if os.geteuid() == 0 else 0)

    def configure(self, table: str = "update", **values: object) -> None:
        """Change keys of a table of the configuration; None leaves one out."""
        self.settings.setdefault(table, {}).update(values)
        lines = []
        for name, keys in self.settings.items():
            lines.append(f"[{name}]")
            # JSON's strings, numbers, booleans and lists of them are TOML's too.
            lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items() if value is not None]
        self.write("etc/config.toml", "\n".join(lines) + "\n")

    def use_helper(self) -> None:
        """Make it a node with a helper: the records move beside the slots, and the helper listens."""
        self.configure("helper", socket=f"{self.home}/helper.sock")
        for path in sorted((self.home / "var" / "update").iterdir()):
            path.rename(self.home / "lib" / path.name)
        self.listen("helper.sock", 0o660)
        self.write_units()

    def listen(self, name: str, mode: int) -> None:
        """Put a socket there on which nobody answers."""
        path = self.home / name
        path.unlink(missing_ok=True)
        os.mknod(path, stat.S_IFSOCK | mode)
        path.chmod(mode)

    def fill_slot(self, slot: Slot, data: bytes, version: str, sequence: int) -> None:
        """Write a slot's file and its record."""
        self.write(f"lib/bcd-{slot}", data, 0o755)
        digest = sha256(data).hexdigest()
        record = SlotRecord(version, sequence, digest, len(data), NOW - 3 * DAY, expires_at=NOW + 180 * DAY)
        self.record_slot(slot, record)

    def expire(self, slot: Slot, at: int | None) -> None:
        """Have a slot's release expire then; None as an older bcd recorded it."""
        record = self.machine.slots.of(slot)
        self.record_slot(slot, None if record is None else record._replace(expires_at=at))

    def record_slot(self, slot: Slot, record: SlotRecord | None) -> None:
        """Write a slot's record alone."""
        self.machine.slots = self.machine.slots.having(slot, record)
        self.write("lib/slots.json", dump_slots(self.machine.slots))

    def write_update(self, record: UpdateRecord) -> None:
        """Write `update.json`."""
        Path(self.layout.update_record).write_bytes(dump_update(record))

    def fail_version(self, version: str, reason: str) -> None:
        """Note that a version failed here."""
        confirmed = Confirmed(*NEW, NOW - 3 * DAY, "5a" * 16)
        self.write_update(UpdateRecord(15, confirmed, (Failed(version, 16, reason, NOW - DAY),)))

    def swap(self, *, ago: float = 30, switched: bool = True, boot_id: str | None = None) -> None:
        """Begin an update to 1.4.2, so many seconds ago; not `switched` when `current` is back on the old slot."""
        version, sequence = NEXT
        clock = self.machine.clock
        self.fill_slot("a", program(version), version, sequence)
        pending = PendingRecord(
            swap_id="6b" * 16,
            from_version=NEW[0],
            to_version=version,
            from_slot="b",
            to_slot="a",
            sequence=sequence,
            command_id=None,
            launched=True,
            swapped_at=int(clock.now - ago),
            deadline=int(clock.now - ago) + 120,
            boot_id=clock.boot if boot_id is None else boot_id,
            swapped_boottime=clock.up - ago,
        )
        Path(self.layout.pending_record).write_bytes(dump_pending(pending))
        self.link("lib/previous", "bcd-b")
        if switched:
            self.link("lib/current", "bcd-a")
            self.machine.live = {**(self.machine.live or {}), "version": version}

    def unadopted(self) -> None:
        """Put it back to before its first update: a plain file at the entrypoint, no slots, no records, no units."""
        for name in (
            "lib/current",
            "lib/previous",
            "lib/bcd-a",
            "lib/bcd-b",
            "lib/slots.json",
            "var/update/update.json",
        ):
            self.remove(name)
        self.write("bin/bcd", program(NEW[0]), 0o755)
        for file in self._units():
            os.unlink(file)
        self.machine.units[NODE_UNIT].update(OnFailure="", StartLimitBurst="5", StartLimitIntervalUSec="10s")
        self.machine.units[ROLLBACK_UNIT] = {"LoadState": "not-found"}

    def run_agent(self, config: str, environ: str = "PATH=/usr/bin") -> None:
        """Have the agent's process run with a configuration and an environment, one variable a line."""
        (self.home / "proc" / str(AGENT_PID)).mkdir(exist_ok=True)
        words = [f"{self.home}/bin/bcd", "node", "--config", config]
        self.write(f"proc/{AGENT_PID}/cmdline", "\0".join(words) + "\0")
        self.write(f"proc/{AGENT_PID}/environ", environ.replace("\n", "\0") + "\0")

    def write_units(self) -> None:
        """Write the crash-loop units as this version does, and have systemd know them."""
        entrypoint = self.layout.entrypoint
        start = (
            f"{{ path={entrypoint} ; argv[]={entrypoint} node --config {self.home}/etc/config.toml ; pid={AGENT_PID} }}"
        )
        self.machine.units[NODE_UNIT]["ExecStart"] = start
        files = rollback_units(self.layout, unit=NODE_UNIT, systemd_version=252, directory=str(self.home / "units"))
        for file in files:
            os.makedirs(os.path.dirname(file.path), exist_ok=True)
            self.write(os.path.relpath(file.path, self.home), file.text, file.mode)

    def _units(self) -> list[str]:
        files = rollback_units(self.layout, unit=NODE_UNIT, systemd_version=252, directory=str(self.home / "units"))
        return [file.path for file in files]


def program(version: str) -> bytes:
    """A program that says its version and nothing else."""
    return f"#!/bin/sh\necho '{json.dumps({'version': version})}'\n".encode()


def _pin(name: str) -> str:
    return f"sha256/{b64encode(sha256(name.encode()).digest()).decode()}"


def _in_memory() -> str | None:
    # Some hundred directories are made and removed again, which a disk takes seconds for. TMPDIR has the last word.
    usable = "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK | os.X_OK)
    return _MEMORY if usable else None
