"""A machine of its own: this system's files under an overlay, booted by systemd-nspawn with a real systemd as init.

What runs inside is this very interpreter and tree, bound in read-only. Nothing of the host is written: the overlay's
upper layer is a tmpfs that goes with the machine.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TREE = Path(__file__).parent.parent.parent
_BOOT_SECONDS = 60
_MASKED = ("systemd-networkd", "systemd-resolved", "ssh", "cron", "docker", "containerd", "getty@", "console-getty")


def why_not() -> str | None:
    """Why no machine can be booted here; None where it can."""
    if os.geteuid() != 0:
        return "needs root"
    if shutil.which("systemd-nspawn") is None:
        return "needs systemd-nspawn (the package systemd-container)"
    return None


class Machine:
    """A booted machine."""

    def __init__(self, root: Path, leader: int) -> None:
        self.root = root
        self._leader = leader

    def run(self, *command: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a command inside and return how it went."""
        inside = ["nsenter", "-t", str(self._leader), "-m", "-u", "-i", "-n", "-p", "-C", "--", *command]
        return subprocess.run(inside, capture_output=True, text=True, timeout=seconds, check=False)

    def python(self, script: Path, *words: str, seconds: float = 240) -> subprocess.CompletedProcess[str]:
        """Run a script of this tree inside, by the interpreter of these tests."""
        return self.run("env", f"PYTHONPATH={TREE}", sys.executable, str(script), *words, seconds=seconds)


@contextmanager
def booted(directory: Path) -> Iterator[Machine]:
    """A machine in `directory`, running until the context ends."""
    layers = directory / "layers"
    layers.mkdir()
    _mount("-t", "tmpfs", "tmpfs", str(layers))
    root = layers / "root"
    try:
        for part in ("upper", "work", "root"):
            (layers / part).mkdir()
        options = f"lowerdir=/,upperdir={layers / 'upper'},workdir={layers / 'work'}"
        _mount("-t", "overlay", "overlay", "-o", options, str(root))
        _prepare(root)
        with _running(root, directory / "boot.log") as machine:
            yield machine
    finally:
        subprocess.run(["umount", "-R", str(root)], check=False, capture_output=True)
        subprocess.run(["umount", str(layers)], check=False, capture_output=True)


@contextmanager
def _running(root: Path, log: Path) -> Iterator[Machine]:
    command = ["systemd-nspawn", "--quiet", "--directory", str(root), "--register=no", "--keep-unit", "--boot"]
    # What these tests run may live below /tmp, which the machine mounts anew.
    command += [f"--bind-ro={path}" for path in sorted({str(TREE), sys.prefix, sys.base_prefix})]
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        command.append("systemd.unified_cgroup_hierarchy=0")
    with log.open("wb") as output:
        nspawn = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        machine = Machine(root, _leader(nspawn.pid))
        deadline = time.monotonic() + _BOOT_SECONDS
        while (
            "running" not in (said := machine.run("systemctl", "is-system-running").stdout) and "degraded" not in said
        ):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"the machine did not boot ({said.strip()}):\n{log.read_text(errors='replace')[-2000:]}"
                )
            time.sleep(0.2)
        yield machine
    finally:
        nspawn.terminate()
        try:
            nspawn.wait(15)
        except subprocess.TimeoutExpired:
            nspawn.kill()
            nspawn.wait()


def _prepare(root: Path) -> None:
    units = root / "etc/systemd/system"
    units.mkdir(parents=True, exist_ok=True)
    (root / "etc/machine-id").unlink(missing_ok=True)
    (root / "etc/machine-id").touch()
    for name in _MASKED:
        unit = units / f"{name}.service"
        unit.unlink(missing_ok=True)
        unit.symlink_to("/dev/null")
    default = units / "default.target"
    default.unlink(missing_ok=True)
    # No further: whatever else this system starts at boot (a database, say) is nobody's business here.
    default.symlink_to("/lib/systemd/system/basic.target")


def _leader(nspawn: int) -> int:
    deadline = time.monotonic() + _BOOT_SECONDS
    while time.monotonic() < deadline:
        children = Path(f"/proc/{nspawn}/task/{nspawn}/children").read_text().split()
        for child in children:
            name = Path(f"/proc/{child}/comm").read_text().strip()
            if name == "systemd":
                return int(child)
        time.sleep(0.1)
    raise TimeoutError("systemd-nspawn started no init")


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)
