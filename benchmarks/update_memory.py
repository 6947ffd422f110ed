"""Peak memory of a real agent over a real 512 MiB update: downloaded, staged, swapped in, welcomed, confirmed.

The kernel's own high-water marks (VmHWM) of both processes: the old binary that downloads, and the new one that
confirms. Peers in the same run: a bare interpreter, and one that has imported what the agent imports.
"""

import os
import subprocess
import sys
import tempfile
import time
import zipfile
from io import BytesIO
from pathlib import Path

from bcd.core.acceptance import ARTIFACT_LIMIT_BYTES
from bcd.lab.releases import Recipe
from bcd.lab.world import World

LIMIT_MIB = 80.0
_ROOM_FOR_ZIP_BYTES = 4096


def main() -> int:
    """Run the benchmark and print its figures; 1 when the agent needs more than it may."""
    with tempfile.TemporaryDirectory(prefix="bcd-bench-") as directory:
        world = World(Path(directory))
        try:
            return _measure(world)
        finally:
            world.close()


def _measure(world: World) -> int:
    release = world.publisher.publish(
        "1.4.1", 15, shelf="bench", recipe=Recipe(file=_padded(world.publisher.binary("1.4.1", 15)))
    )
    node = world.node("bench")
    node.supervisor.start()
    node.wait_welcome("1.4.0")
    pid = _pid(node.root.entrypoint)
    idle = _peak_mib(pid)
    started = time.monotonic()
    generation = node.push(release)
    old = 0.0
    while "confirmed" not in _history(node.root.records):
        if _executable_is_old(node.root.slots):
            old = max(old, _peak_mib(pid))
        time.sleep(0.02)
        if time.monotonic() - started > 300:
            sys.stdout.write("the update did not end in 300 s\n")
            return 1
    node.wait_section(generation, "READY")
    took = time.monotonic() - started
    new = _peak_mib(_pid(node.root.entrypoint))
    bare = _interpreter_mib("pass")
    imports = _interpreter_mib("import bcd.node.main")
    rows = (
        ("a bare interpreter", bare),
        ("one that imported the agent", imports),
        ("the agent, idle", idle),
        (f"the old agent, downloading and staging {len(release.body) // 2**20} MiB", old),
        ("the new agent, confirming", new),
    )
    for what, mib in rows:
        sys.stdout.write(f"{what:<55} {mib:6.1f} MiB  {mib / bare:4.1f} x bare\n")
    sys.stdout.write(f"from section to READY: {took:.1f} s, {len(release.body) / 2**20 / took:.0f} MiB/s end to end\n")
    worst = max(old, new)
    sys.stdout.write(f"peak {worst:.1f} MiB, limit {LIMIT_MIB:.0f} MiB: {'ok' if worst < LIMIT_MIB else 'TOO MUCH'}\n")
    return 0 if worst < LIMIT_MIB else 1


def _padded(binary: bytes) -> bytes:
    """The binary with random bytes in its archive, as large as a release may be."""
    file = BytesIO(binary)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr("padding", os.urandom(ARTIFACT_LIMIT_BYTES - len(binary) - _ROOM_FOR_ZIP_BYTES))
    return file.getvalue()


def _pid(entrypoint: Path) -> int:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = subprocess.run(
            ["pgrep", "-f", f"{entrypoint} node"], capture_output=True, text=True, check=False
        ).stdout
        for pid in found.split():
            if "python" in os.path.basename(os.readlink(f"/proc/{pid}/exe")):
                return int(pid)
        time.sleep(0.05)
    raise SystemExit("the agent did not start")


def _peak_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def _interpreter_mib(code: str) -> float:
    show = "print(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')))"
    ran = subprocess.run([sys.executable, "-c", f"{code}\n{show}"], capture_output=True, text=True, check=True)
    return int(ran.stdout) / 1024


def _history(records: Path) -> str:
    try:
        return (records / "history.jsonl").read_text()
    except OSError:
        return ""


def _executable_is_old(slots: Path) -> bool:
    link = slots / "current"
    return not link.is_symlink() or os.readlink(link) == "bcd-a"


if __name__ == "__main__":
    raise SystemExit(main())
