"""A machine of its own: a system's files under an overlay, booted by systemd-nspawn with a real systemd as init.

The interpreter and the tree of these tests are bound in read-only below `LAB`, where every user may read them; the
network is the host's. Nothing of the host is written: the overlay's upper layer is a tmpfs that goes with the machine.
"""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.system.bases import HOST, Base, root_of

TREE = Path(__file__).parent.parent.parent
LAB = Path("/opt/bcd-lab")
"""In the machine: not below /root or /tmp, which a service does not see."""
PYTHON = LAB / "python"
_BOOT_SECONDS = 60
_MASKED = ("systemd-networkd", "systemd-resolved", "ssh", "cron", "docker", "containerd", "getty@", "console-getty")
_NO_UNIFIED_CGROUPS = ("systemd.unified_cgroup_hierarchy=0", "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1")


def why_not() -> str | None:
    """Why no machine can be booted here; None where it can."""
    if os.geteuid() != 0:
        return "needs root"
    if shutil.which("systemd-nspawn") is None:
        return "needs systemd-nspawn (the package systemd-container)"
    return None


class Machine:
    """A machine that can be booted, and whose power can fail."""

    def __init__(self, root: Path, log: Path) -> None:
        self.root = root
        """Its file system, as seen from here. Mounts of its own (/run, /tmp) are not in it."""
        self._log = log
        self._nspawn: subprocess.Popen[bytes] | None = None
        self.leader = 0
        """Its init, by this machine's numbers; 0 while it is off."""

    def path(self, inside: str | Path) -> Path:
        """Where a path inside is from here."""
        return self.root / str(inside).lstrip("/")

    def boot(self) -> None:
        """Start it, and wait until its systemd has."""
        command = ["systemd-nspawn", "--quiet", "--directory", str(self.root), "--register=no", "--keep-unit", "--boot"]
        binds = {LAB / "tree": TREE, LAB / "base": Path(sys.base_prefix), LAB / "packages": _site_packages()}
        command += [f"--bind-ro={outside}:{inside}" for inside, outside in binds.items()]
        if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
            command += _NO_UNIFIED_CGROUPS
        with self._log.open("wb") as output:
            self._nspawn = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        self.leader = _leader(self._nspawn.pid)
        deadline = time.monotonic() + _BOOT_SECONDS
        while (said := self.systemctl("is-system-running")) not in ("running", "degraded"):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"the machine did not boot ({said}):\n{self._log.read_text(errors='replace')[-2000:]}"
                )
            time.sleep(0.1)

    def cut_power(self) -> None:
        """End every process of it at once. What was written stays, as after a kernel's last sync."""
        assert self._nspawn is not None
        os.kill(self.leader, signal.SIGKILL)
        self.leader = 0
        self._nspawn.wait(30)

    def halt(self) -> None:
        """End it, however it is."""
        if self.leader and self._nspawn is not None and self._nspawn.poll() is None:
            self.cut_power()  # nspawn alone: its init would live on
        if self._nspawn is not None and self._nspawn.poll() is None:
            self._nspawn.kill()
            self._nspawn.wait(30)

    def run(self, *command: str, seconds: float = 120, check: bool = False) -> subprocess.CompletedProcess[str]:
        """Run a command inside and return how it went."""
        inside = ["nsenter", "-t", str(self.leader), "-m", "-u", "-i", "-n", "-p", "-C", "--", *command]
        path = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        ran = subprocess.run(inside, capture_output=True, text=True, timeout=seconds, check=False, env=path)
        assert not check or ran.returncode == 0, f"{command} ended with {ran.returncode}: {ran.stdout}{ran.stderr}"
        return ran

    def systemctl(self, *words: str) -> str:
        """Ask its systemd, and return what it said."""
        return self.run("systemctl", *words).stdout.strip()

    def show(self, unit: str, name: str) -> str:
        """One property of a unit."""
        return self.systemctl("show", "--value", f"--property={name}", unit)

    def journal(self, *words: str) -> str:
        """Its journal, as messages."""
        return self.run("journalctl", "--no-pager", "--output=cat", *words).stdout

    def drop_in(self, unit: str, name: str, text: str) -> Path:
        """Put an operator's drop-in beside a unit, and have it read."""
        file = self.path(f"/etc/systemd/system/{unit}.d/{name}.conf")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        self.systemctl("daemon-reload")
        return file


@contextmanager
def made(directory: Path, base: Base = HOST) -> Iterator[Machine]:
    """A machine in `directory`, booted, until the context ends."""
    layers = directory / "layers"
    layers.mkdir()
    _mount("-t", "tmpfs", "tmpfs", str(layers))
    root = layers / "root"
    machine = Machine(root, directory / "boot.log")
    try:
        for part in ("upper", "work", "root"):
            (layers / part).mkdir()
        options = f"lowerdir={root_of(base)},upperdir={layers / 'upper'},workdir={layers / 'work'}"
        _mount("-t", "overlay", "overlay", "-o", options, str(root))
        _prepare(root)
        machine.boot()
        yield machine
    finally:
        machine.halt()
        subprocess.run(["umount", "-R", str(root)], check=False, capture_output=True)
        subprocess.run(["umount", str(layers)], check=False, capture_output=True)


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
    # Not this system's own: whatever else it starts at boot (a database, say) is nobody's business here. The wants of
    # multi-user.target are; what enables a service puts a link there.
    default.symlink_to("/lib/systemd/system/multi-user.target")
    for wanted in ("usr/lib/systemd/system", "etc/systemd/system"):
        for link in (root / wanted / "multi-user.target.wants").glob("*"):
            link.unlink()
    for name in ("tree", "base", "packages"):
        (root / str(LAB).lstrip("/") / name).mkdir(parents=True)
    _write_python(root)


def _write_python(root: Path) -> None:
    """The interpreter of these tests under a name inside: it finds its library by that, and its own libc is there."""
    python = root / str(PYTHON).lstrip("/")
    program = LAB / "base" / "bin" / f"python{sysconfig.get_python_version()}"
    python.write_text(
        f"#!/bin/sh\nexport LD_LIBRARY_PATH={LAB}/base/lib PYTHONPATH={LAB}/packages PYTHONDONTWRITEBYTECODE=1\n"
        f'exec {program} "$@"\n'
    )
    python.chmod(0o755)


def _site_packages() -> Path:
    return Path(sysconfig.get_path("purelib"))


def _leader(nspawn: int) -> int:
    deadline = time.monotonic() + _BOOT_SECONDS
    while time.monotonic() < deadline:
        children: Sequence[str] = ()
        if Path(f"/proc/{nspawn}").exists():
            children = Path(f"/proc/{nspawn}/task/{nspawn}/children").read_text().split()
        for child in children:
            try:
                name = Path(f"/proc/{child}/comm").read_text().strip()
            except OSError:
                continue
            if name == "systemd":
                return int(child)
        time.sleep(0.05)
    raise TimeoutError("systemd-nspawn started no init")


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)
