"""What a command costs before it has said anything, beside an interpreter that does nothing.

An operator's script asks `bcd update` on a thousand machines, so it may cost at most three times a bare interpreter
(ADR 0002). Runs take turns, so that a busy moment hits all alike; medians are compared.
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

LIMIT = 3.0
BARE = "python -c pass"
UPDATE = "bcd update"


def main() -> int:
    """Measure and print; 1 when `bcd update` is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=30, metavar="RUNS", help="runs of each (default 30)")
    runs: int = parser.parse_args().n
    with tempfile.TemporaryDirectory(prefix="bcd-bench-") as directory:
        return _measure(runs, _node(Path(directory)))


def _measure(runs: int, config: Path) -> int:
    bcd = str(Path(sys.executable).parent / "bcd")
    commands = {
        BARE: [sys.executable, "-c", "pass"],
        "python -c 'import click'": [sys.executable, "-c", "import click"],
        "bcd version": [bcd, "version"],
        UPDATE: [bcd, "update", "--config", str(config)],
        "bcd update --json": [bcd, "update", "--json", "--config", str(config)],
        "bcd --help": [bcd, "--help"],
    }
    # As on a node, where what was compiled once stays compiled.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(runs + 1):
        for name, command in commands.items():
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=environ)
            if turn:  # the first fills the page cache
                times[name].append(time.perf_counter() - started)
    bare = statistics.median(times[BARE])
    for name, taken in times.items():
        median = statistics.median(taken)
        sys.stdout.write(f"{name:26} {median * 1000:7.1f} ms  {median / bare:5.2f} x\n")
    ratio = statistics.median(times[UPDATE]) / bare
    well = ratio <= LIMIT
    sys.stdout.write(
        f"bcd update: {ratio:.2f} times a bare interpreter, at most {LIMIT:g}: {'ok' if well else 'OVER'}\n"
    )
    return 0 if well else 1


def _node(home: Path) -> Path:
    """A node that has updated and where a version failed: a configuration, two slots, every record."""
    slots, records = home / "lib", home / "var" / "update"
    slots.mkdir()
    records.mkdir(parents=True)
    for slot in "ab":
        (slots / f"bcd-{slot}").write_bytes(b"#!/bin/sh\n")
    (slots / "current").symlink_to("bcd-b")
    (slots / "previous").symlink_to("bcd-a")
    entry = {"version": "1.4.0", "sequence": 14, "sha256": "0" * 64, "size": 10, "written_at": 1790000000}
    (slots / "slots.json").write_text(json.dumps({"format": 1, "a": entry, "b": {**entry, "version": "1.4.1"}}))
    failed = {"version": "1.4.2", "sequence": 16, "reason": "bcd 1.4.2 was not welcomed", "at": 1790000000}
    (records / "update.json").write_text(json.dumps({"format": 1, "sequence": 15, "failed": [failed]}))
    pin = f"sha256/{'A' * 43}="
    config = home / "config.toml"
    config.write_text(
        f'[node]\ndata_dir = "{home / "var"}"\ngateway = "wss://gateway.example.com/v1/node"\n'
        f'[update]\nrelease_pins = "{pin}"\nrelease_threshold = 1\n'
        f'slots_dir = "{slots}"\nentrypoint = "{home / "bcd"}"\n'
    )
    return config


if __name__ == "__main__":
    sys.exit(main())
