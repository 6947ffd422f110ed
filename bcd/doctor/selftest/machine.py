"""The machine around the self-test's node: systemd, the gateway, the agent, memory, mounts and clocks, all told.

Plain attributes say what each answers; a fault changes them. `hang` blocks until `close`, as a dead mount would.
"""

import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bcd.core.build import Build
from bcd.core.clock import ManualClock
from bcd.core.config import Config
from bcd.core.errors import HostError
from bcd.core.records import SlotsRecord
from bcd.core.units import NODE_UNIT, ROLLBACK_UNIT
from bcd.doctor.probes import Ran, run_command
from bcd.doctor.session import STAGES, SessionProbe
from bcd.helper.client import Info

NOW = 1_800_000_000
"""Unix seconds."""
UP = 5_000.0
"""CLOCK_BOOTTIME seconds."""
BOOTED = "00000000-0000-4000-8000-000000000001"
"""The boot's id."""
AGENT_PID = 4242
_DAY = 24 * 3600
_GIB = 2**30
_HANG_SECONDS = 60.0
"""Of a hang that nobody ended: a bug in the self-test must not keep a thread for ever."""


def _live() -> dict[str, object]:
    session = {"state": "welcomed"}
    return {"version": "1.4.1", "pid": AGENT_PID, "phase": "idle", "error": None, "session": session}


def _node_unit() -> dict[str, str]:
    return {
        "LoadState": "loaded",
        "ActiveState": "active",
        "SubState": "running",
        "Result": "success",
        "NRestarts": "0",
        "NeedDaemonReload": "no",
        "StartLimitBurst": "5",
        "StartLimitIntervalUSec": "10min",
        "OnFailure": ROLLBACK_UNIT,
        "FragmentPath": "/etc/systemd/system/bcd.service",
    }


@dataclass(kw_only=True)
class Machine:
    """What answers the probes."""

    home: Path
    build: Build = field(default_factory=lambda: Build("1.4.1", 15, NOW - 9 * _DAY, fakehw=False))
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW, UP, BOOTED))
    environ: dict[str, str] = field(default_factory=dict)
    platform: str = "linux-amd64"
    slots: SlotsRecord = field(default_factory=SlotsRecord)
    """What `slots.json` says, kept to be rewritten."""
    live: dict[str, object] | None = field(default_factory=_live)
    session: SessionProbe = field(
        default_factory=lambda: SessionProbe(
            host="gateway.example.com",
            port=443,
            reached=list(STAGES),
            addresses=["192.0.2.1"],
            certificate_until=NOW + 90 * _DAY,
            server_time=NOW,
            asked_at=NOW,
            seconds=0.02,
        )
    )
    units: dict[str, dict[str, str]] = field(
        default_factory=lambda: {
            NODE_UNIT: _node_unit(),
            ROLLBACK_UNIT: {"LoadState": "loaded", "NeedDaemonReload": "no"},
        }
    )
    said: dict[str, Ran | Exception] = field(default_factory=dict)
    """What a program answers, or raises, whatever it is asked, by its name."""
    helper: Info | HostError = field(default_factory=lambda: Info(1, "1.4.1", "1.4.1"))
    """Who answers at the helper's socket, or why nobody does."""
    memory: Callable[[], int] = lambda: 4 * _GIB
    free_bytes: int = 20 * _GIB
    free_inodes: int = 1_000_000
    mount_flags: int = 0
    statvfs_error: OSError | None = None
    hanging: set[str] = field(default_factory=set)
    """Which looks never come back: `live`, `session`, `helper`, `memory`, `disk`, `run`."""
    held: list[int] = field(default_factory=list)
    """Descriptors to be closed in the end."""
    _over: threading.Event = field(default_factory=threading.Event)

    def close(self) -> None:
        """End every hang, close what is held."""
        self._over.set()
        for handle in self.held:
            os.close(handle)

    def run(self, command: Sequence[str], timeout_seconds: float) -> Ran:
        """Answer for systemctl and timedatectl, and start the node's own programs.

        Those through sh, so that a temporary directory that is mounted noexec is no fault of theirs.
        """
        self._hang("run")
        name = os.path.basename(command[0])
        said = self.said.get(name)
        if isinstance(said, Exception):
            raise said
        if said is not None:
            return said
        if name == "timedatectl":
            return Ran(status=0, stdout="yes\n", stderr="")
        if name == "systemctl":
            return self._systemctl(command)
        if not os.stat(command[0]).st_mode & 0o111:
            raise PermissionError(13, "Permission denied", command[0])
        return run_command(["/bin/sh", *command], timeout_seconds)

    def _systemctl(self, command: Sequence[str]) -> Ran:
        if "--version" in command:
            return Ran(status=0, stdout="systemd 252 (252.39-1~deb12u2)\n", stderr="")
        unit = self.units.get(command[-1], {"LoadState": "not-found"})
        return Ran(status=0, stdout="".join(f"{key}={value}\n" for key, value in unit.items()), stderr="")

    def look_at_live(self, _data_dir: str, _timeout_seconds: float) -> dict[str, object] | None:
        """What the agent shows."""
        self._hang("live")
        return self.live

    def look_at_session(self, _config: Config, _timeout_seconds: float) -> SessionProbe:
        """How far a session comes."""
        self._hang("session")
        return self.session

    def ask_helper(self, _path: str, _timeout_seconds: float) -> Info:
        """Who answers there."""
        self._hang("helper")
        if isinstance(self.helper, HostError):
            raise self.helper
        return self.helper

    def look_at_memory(self) -> int:
        """Bytes that are available."""
        self._hang("memory")
        return self.memory()

    def look_at_disk(self, _path: str) -> tuple[int, float]:
        """What is free on the one file system that there is: bytes, and per cent in use."""
        self._hang("disk")
        if self.statvfs_error is not None:
            raise self.statvfs_error
        return self.free_bytes, 100 - 100 * self.free_bytes / (100 * _GIB)

    def statvfs(self, _path: Path) -> os.statvfs_result:
        """The one file system that there is."""
        if self.statvfs_error is not None:
            raise self.statvfs_error
        blocks, inodes = self.free_bytes // 4096, self.free_inodes
        total = 100 * _GIB // 4096
        return os.statvfs_result((4096, 4096, total, blocks, blocks, 10_000_000, inodes, inodes, self.mount_flags, 255))

    def time_out(self, name: str) -> None:
        """Let a program not answer in time."""
        self.said[name] = subprocess.TimeoutExpired([name], 2.0)

    def _hang(self, what: str) -> None:
        if what in self.hanging:
            self._over.wait(_HANG_SECONDS)
