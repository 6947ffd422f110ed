"""How long `bcd doctor` takes on a healthy node of the lab, whose agent runs and whose gateway answers by real TLS.

An operator waits for it at 3 a.m., and monitoring runs it each minute on every node: at most half a second beyond a
bare interpreter. Runs take turns with one, so that a busy moment hits all alike; medians are compared.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bcd.lab.world import World

LIMIT_SECONDS = 0.5
BARE = "python -c pass"
FORMATS = ("json", "plain", "junit", "prometheus", "rich")


def main() -> int:
    """Measure and print; 1 when a format is over the limit, or the node is not healthy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=15, metavar="RUNS", help="runs of each (default 15)")
    runs: int = parser.parse_args().n
    with tempfile.TemporaryDirectory(prefix="bcd-bench-") as directory:
        world = World(Path(directory))
        try:
            node = world.node("bench")
            node.supervisor.start()
            node.wait_welcome("1.4.0")
            return _measure(runs, node.root.config)
        finally:
            world.close()


def _measure(runs: int, config: Path) -> int:
    bcd = str(Path(sys.executable).parent / "bcd")
    commands = {BARE: [sys.executable, "-c", "pass"]}
    commands |= {f"bcd doctor --format {form}": _doctor(bcd, form, config) for form in FORMATS}
    # As on a node, where what was compiled once stays compiled.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(runs + 1):
        for name, command in commands.items():
            started = time.perf_counter()
            ran = subprocess.run(command, check=False, capture_output=True, text=True, env=environ)
            if turn:  # the first fills the page cache
                times[name].append(time.perf_counter() - started)
            if ran.returncode != 0:
                sys.stdout.write(f"{name} ended with {ran.returncode}, so the node is not healthy:\n{ran.stdout}\n")
                return 1
    report = json.loads(subprocess.run(_doctor(bcd, "json", config), capture_output=True, check=True).stdout)
    bare, worst = statistics.median(times[BARE]), 0.0
    for name, taken in times.items():
        beyond = statistics.median(taken) - bare
        worst = max(worst, beyond)
        sys.stdout.write(f"{name:32} {statistics.median(taken) * 1000:7.1f} ms  {beyond * 1000:+7.1f} ms\n")
    well = worst <= LIMIT_SECONDS
    sys.stdout.write(
        f"{len(report['findings'])} findings, {report['seconds']} s of it looking; at most "
        f"{LIMIT_SECONDS * 1000:.0f} ms beyond a bare interpreter: {'ok' if well else 'OVER'}\n"
    )
    return 0 if well else 1


def _doctor(bcd: str, form: str, config: Path) -> list[str]:
    return [bcd, "doctor", "--format", form, "--config", str(config)]


if __name__ == "__main__":
    sys.exit(main())
