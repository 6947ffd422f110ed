"""What runs inside the machine: a lab's world there, and a node that a real bcd.service starts.

Called with a story's name; prints one JSON object of what was seen, for the test outside to judge.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bcd.lab.packing import EXITS_AT_ONCE, RUNS_BCD, Packer, Stamp
from bcd.lab.releases import Recipe, Release
from bcd.lab.world import World

UNIT = Path("/etc/systemd/system/bcd.service")
Seen = dict[str, object]

_CRASHES_ONCE = """
import pathlib, sys
mark = pathlib.Path({mark!r})
if not mark.exists():
    mark.touch()
    sys.exit(1)
"""


class Place:
    """The world, with binaries that do take systemd seriously."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.packer = Packer()
        self.world = World(directory)
        self.node = self.world.node("sys")
        self.node.root.entrypoint.write_bytes(self.binary("1.4.0", 14))
        UNIT.write_text(
            f"[Unit]\nDescription=bcd\n[Service]\nExecStart={self.node.root.entrypoint} node "
            f"--config {self.node.root.config}\nRestart=on-failure\nRestartSec=0.5\n"
            f"StandardError=append:{directory}/node.log\n"
        )
        systemctl("daemon-reload")
        systemctl("start", "bcd.service")
        self.node.wait_welcome("1.4.0")

    def binary(self, version: str, sequence: int, main: str = RUNS_BCD) -> bytes:
        stamp = Stamp(version=version, sequence=sequence, built_at=int(time.time()), fakehw=False, main=main)
        return self.packer.pack(stamp)

    def publish(self, version: str, sequence: int, main: str = RUNS_BCD) -> Release:
        file = self.binary(version, sequence, main)
        return self.world.publisher.publish(version, sequence, shelf="sys", recipe=Recipe(file=file))

    def update(self) -> Seen:
        command = [str(self.node.root.entrypoint), "update", "--json", "--config", str(self.node.root.config)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        seen: Seen = json.loads(ran.stdout)
        return seen

    def doctor(self, *globs: str) -> dict[str, str]:
        command = [str(self.node.root.entrypoint), "doctor", "--json", "--config", str(self.node.root.config)]
        for glob in globs:
            command += ["--only", glob]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        return {finding["id"]: finding["level"] for finding in json.loads(ran.stdout)["findings"]}


def good_then_crash_loop(place: Place) -> Seen:
    """A good release is confirmed; one that exits at once is brought back by the unit."""
    node = place.node
    node.wait_section(node.push(place.publish("1.4.1", 15)), "READY")
    started = time.monotonic()
    status = node.wait_section(node.push(place.publish("1.4.2", 16, EXITS_AT_ONCE)), "FAILED")
    node.wait_welcome("1.4.1")
    return {
        "seconds": time.monotonic() - started,
        "status": status,
        "update": place.update(),
        "service": place.doctor("service.*"),
        "active": systemctl("is-active", "bcd.service"),
    }


def ends_at_once(place: Place) -> Seen:
    """A release that ends at once with status 0 is a crash loop too."""
    node = place.node
    node.wait_section(node.push(place.publish("1.4.1", 15)), "READY")
    status = node.wait_section(node.push(place.publish("1.4.2", 16, "raise SystemExit(0)\n")), "FAILED")
    node.wait_welcome("1.4.1")
    stopped = systemctl("stop", "bcd.service")
    time.sleep(3)
    return {
        "status": status,
        "update": place.update(),
        "stopped": stopped,
        "state": systemctl("is-active", "bcd.service"),
    }


def one_crash(place: Place) -> Seen:
    """A release that crashes once and then runs is confirmed."""
    main = _CRASHES_ONCE.format(mark=str(place.directory / "crashed")) + RUNS_BCD
    node = place.node
    node.wait_section(node.push(place.publish("1.4.1", 15, main)), "READY")
    return {
        "crashed": (place.directory / "crashed").exists(),
        "restarts": systemctl("show", "--value", "--property=NRestarts", "bcd.service"),
        "update": place.update(),
    }


def rollback_for_nothing(place: Place) -> Seen:
    """Started by hand while nothing is pending, and while a healthy release is, the unit changes nothing."""
    node = place.node
    node.wait_section(node.push(place.publish("1.4.1", 15)), "READY")
    before = place.update()
    for _ in range(2):
        systemctl("start", "bcd-rollback.service")
    records = node.root.records
    script = node.root.slots / "bcd-rollback.sh"
    pending = {"from_slot": "a", "to_slot": "b", "state": "swapped"}
    (records / "upgrade.json").write_text(json.dumps(pending, separators=(",", ":")))
    ran = subprocess.run(
        ["sh", str(script), str(node.root.slots), str(records), "bcd.service"],
        capture_output=True,
        text=True,
        check=False,
    )
    (records / "upgrade.json").unlink()
    return {"before": before["links"], "after": place.update()["links"], "said": ran.stderr, "status": ran.returncode}


def operators_unit_in_the_way(place: Place) -> Seen:
    """A unit of an operator's at our name is never overwritten, and the update waits."""
    theirs = "[Service]\nExecStart=/bin/true\n"
    path = UNIT.parent / "bcd-rollback.service"
    path.write_text(theirs)
    node = place.node
    generation = node.push(place.publish("1.4.1", 15))
    node.wait_trouble("io-error")
    kept = path.read_text() == theirs
    links = place.update()["links"]
    path.unlink()
    node.wait_section(generation, "READY")
    return {"kept": kept, "links": links, "update": place.update()}


def another_program(place: Place) -> Seen:
    """A unit that starts something else than the entrypoint: refused before anything is fetched."""
    drop_in = UNIT.parent / "bcd.service.d"
    drop_in.mkdir()
    copy = place.directory / "bcd-elsewhere"
    copy.write_bytes(place.node.root.entrypoint.read_bytes())
    copy.chmod(0o755)
    (drop_in / "10-mine.conf").write_text(
        f"[Service]\nExecStart=\nExecStart={copy} node --config {place.node.root.config}\n"
    )
    systemctl("daemon-reload")
    systemctl("restart", "bcd.service")
    node = place.node
    status = node.wait_section(node.push(place.publish("1.4.1", 15)), "FAILED")
    return {"status": status, "links": place.update()["links"], "doctor": place.doctor("service.exec-start")}


STORIES: dict[str, Callable[[Place], Seen]] = {
    story.__name__: story
    for story in (
        good_then_crash_loop,
        ends_at_once,
        one_crash,
        rollback_for_nothing,
        operators_unit_in_the_way,
        another_program,
    )
}


def systemctl(*words: str) -> str:
    """Ask systemd, and return what it said."""
    return subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False).stdout.strip()


def main() -> None:
    """Play one story."""
    with tempfile.TemporaryDirectory(prefix="lab-", dir="/srv") as directory:
        place = Place(Path(directory))
        try:
            seen = STORIES[sys.argv[1]](place)
        finally:
            systemctl("stop", "bcd.service")
            place.world.close()
        sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main()
