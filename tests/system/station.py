"""A machine on which bcd was installed by its installer, and the lab's world that serves it from outside.

The gateway and the release server are this process's, on loopback, which the machine shares: they outlive its reboots.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bcd.lab.labnode import LabNode
from bcd.lab.packing import Packer, Stamp
from bcd.lab.releases import Recipe, Release
from bcd.lab.root import Root
from bcd.lab.runtime import Runtime
from bcd.lab.world import World
from tests.system import binaries
from tests.system.machine import LAB, PYTHON, TREE, Machine

NODE = "bcd.service"
HELPER = "bcd-helper.service"
WAYS = ("root", "split")
_NODE_ID = "machine"

EXITS = b"#!/bin/sh\nexit 1\n"
ENDS_WELL = b"#!/bin/sh\nexit 0\n"
HANGS = b"#!/bin/sh\nexec sleep 100000\n"
GARBAGE = bytes(range(256)) * 64
TEXT = b"This was to be a program.\n"
EATS_MEMORY = b"#!/bin/sh\nx=$(head -c 1000000000 /dev/zero | tr '\\0' x)\nexec sleep 100000\n"
"""A gigabyte; it hangs where nothing kills it."""
CRASHES_ONCE = f"""#!/bin/sh
if [ ! -e /var/lib/bcd/crashed ]; then : >/var/lib/bcd/crashed; exit 1; fi
exec {LAB}/healthy "$@"
""".encode()


@dataclass(frozen=True, kw_only=True)
class MachineRoot(Root):
    """A real node's places, below the machine's root."""

    split: bool

    @property
    def config(self) -> Path:
        return self.home / "etc/bcd/config.toml"

    @property
    def entrypoint(self) -> Path:
        return self.home / "usr/local/bin/bcd"

    @property
    def slots(self) -> Path:
        return self.home / "usr/local/lib/bcd"

    @property
    def data(self) -> Path:
        return self.home / "var/lib/bcd"

    @property
    def records(self) -> Path:
        return self.slots if self.split else self.data / "update"

    @property
    def fault_file(self) -> Path:
        return self.slots / "power-cut"  # whoever swaps may write here, alone or as the helper


class Binaries:
    """Programs that take systemd seriously, stamped as releases: the real binary, or the lab's where it is not to be had.

    `faults` puts the lab's power cut into the real one; the lab's has it always.
    """

    def __init__(self, real: Path | None, *, faults: bool) -> None:
        self._real = None if real is None else real.read_bytes()
        self._packer = Packer(Runtime(interpreter=str(PYTHON))) if real is None else None
        self._first = binaries.with_power_cuts() if faults else ""

    def make(self, version: str, sequence: int) -> bytes:
        """A bcd."""
        if self._real is not None:
            return binaries.variant(self._real, version=version, sequence=sequence, first=self._first, fakehw=False)
        assert self._packer is not None
        return self._packer.pack(Stamp(version=version, sequence=sequence, built_at=int(time.time()), fakehw=False))


class Station:
    """A machine, its node, and what can be done to both. Not installed yet; see `install`."""

    def __init__(self, machine: Machine, directory: Path, way: str, made: Binaries) -> None:
        self.machine = machine
        self.binaries = made
        self.split = way == "split"
        self.world = World(directory)
        self.root = MachineRoot(home=machine.root, split=self.split)
        self.node = LabNode(
            name=_NODE_ID, role="node", root=self.root, gateway=self.world.gateway, server=self.world.server
        )
        shutil.copytree(TREE / "packaging", machine.path("/srv/packaging"))

    def installer(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the installer inside."""
        return self.machine.run("sh", "/srv/packaging/install.sh", *words)

    def bring(self, version: str, sequence: int) -> str:
        """Put a program on the machine, as a download; its path inside."""
        file = self.machine.path(f"/srv/bcd-{version}")
        file.write_bytes(self.binaries.make(version, sequence))
        file.chmod(0o755)
        return f"/srv/bcd-{version}"

    def install(self, version: str = "1.4.0", sequence: int = 14) -> subprocess.CompletedProcess[str]:
        """Install, as an operator does who has written how the gateway is reached; wait until it is welcomed."""
        self._write_config()
        words = ["--binary", self.bring(version, sequence), "--gateway", self.world.gateway.url]
        words += ["--pins", ",".join(self.world.publisher.pins), "--threshold", "2"]
        ran = self.installer(*words, *(["--split"] if self.split else []))
        assert ran.returncode == 0, ran.stdout + ran.stderr + self.machine.journal("-n", "50")
        self.node.wait_welcome(version)
        return ran

    def _write_config(self) -> None:
        """The operator's part: who the node is, and whom it trusts for TLS."""
        tls = self.root.config.parent / "tls"
        tls.mkdir(parents=True)
        credentials = self.world.authority.for_node(_NODE_ID)
        for name, source in (
            ("ca.pem", self.world.authority.certificate),
            ("node.pem", credentials.certificate),
            ("node.key", credentials.key),
        ):
            shutil.copy(source, tls / name)
            (tls / name).chmod(0o644)
        self.root.config.write_text(
            "# Ours, as we like it.\n"
            f'[node]\nnode_id = "{_NODE_ID}"  # by its certificate\nca_file = "/etc/bcd/tls/ca.pem"\n'
            'cert_file = "/etc/bcd/tls/node.pem"\nkey_file = "/etc/bcd/tls/node.key"\n'
            '\n[update]\nca_file = "/etc/bcd/tls/ca.pem"\n'
        )

    def publish(self, version: str, sequence: int, file: bytes | None = None) -> Release:
        """A signed release: a good one, or these bytes."""
        body = self.binaries.make(version, sequence) if file is None else file
        return self.world.publisher.publish(version, sequence, shelf="machine", recipe=Recipe(file=body))

    def arm(self, *steps: str) -> None:
        """Have power fail at a step: whoever reaches it dies there, and nothing is started again."""
        self.root.fault_file.write_text("\n".join(steps))
        for unit in (NODE, HELPER) if self.split else (NODE,):
            self.machine.drop_in(
                unit,
                "90-power",
                "[Service]\nEnvironment=BCD_LAB_FAULT_FILE=/usr/local/lib/bcd/power-cut\nRestartSec=3600\n",
            )
            for _ in range(5):
                # A start beside the last one's end may fail in old control groups (219/CGROUP), and is not tried again here.
                if self.machine.run("systemctl", "restart", unit).returncode == 0:
                    break

    def update(self) -> Any:
        """What `bcd update --json` says."""
        return json.loads(self.machine.run("bcd", "update", "--json", check=True).stdout)

    def doctor(self, *globs: str) -> dict[str, str]:
        """Levels by check."""
        only = [word for glob in globs for word in ("--only", glob)]
        ran = self.machine.run("bcd", "doctor", "--json", *only)
        return {finding["id"]: finding["level"] for finding in json.loads(ran.stdout)["findings"]}

    def swapped_at(self, slot: str, seconds: float = 40) -> float:
        """Wait until `current` is a slot; when that was (CLOCK_MONOTONIC)."""
        self.node.wait_root(
            lambda root: root.link("current") == f"bcd-{slot}",
            f"current to be {slot}",
            lambda r: r.link("current"),
            seconds,
        )
        return time.monotonic()

    def went_back(self, generation: int, version: str, *, slot: str, seconds: float = 60) -> tuple[float, Any]:
        """Wait for a release that fails: seconds from the swap to the old version's welcome, and the section's status."""
        began = time.monotonic()
        while self.root.link("current") != f"bcd-{slot}" and not self._has_failed(generation):
            began = time.monotonic()  # what can't even be started is gone again at once
            time.sleep(0.01)
        status = self.node.wait_section(generation, "FAILED", seconds)
        self.node.wait_welcome(version)
        return time.monotonic() - began, status

    def _has_failed(self, generation: int) -> bool:
        said = self.node.page().section_statuses()
        return bool(said) and said[-1]["state"] == "FAILED" and said[-1]["observed_generation"] == generation

    def settled(self) -> tuple[str, int, list[str]]:
        """What runs, the floor, and the failed versions, when nothing is pending."""
        seen = self.update()
        assert seen["pending"] is None
        return seen["version"], seen["floor"], [failed["version"] for failed in seen["failed"]]


@contextmanager
def station(machine: Machine, directory: Path, way: str, made: Binaries) -> Iterator[Station]:
    """A station on a booted machine, installed and welcomed."""
    directory.mkdir()
    here = Station(machine, directory, way, made)
    try:
        here.install()
        yield here
        said = machine.journal("--boot=all", "--lines=80", "--output=short-monotonic", "-u", "bcd*")
        print(said)  # shown where a story failed
    finally:
        here.world.close()
