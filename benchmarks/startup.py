"""What a command costs before it has said anything, beside an interpreter that does nothing.

An operator's script asks `bcd update` on a thousand machines, so it may cost at most three times a bare interpreter
(ADR 0002). Runs take turns, so that a busy moment hits all alike; medians are compared.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

LIMIT = 3.0
BARE = "python -c pass"


def main() -> int:
    """Measure and print; 1 when `bcd update` is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=30, metavar="RUNS", help="runs of each (default 30)")
    runs: int = parser.parse_args().n
    bcd = str(Path(sys.executable).parent / "bcd")
    commands = {
        BARE: [sys.executable, "-c", "pass"],
        "bcd version": [bcd, "version"],
        "bcd update": [bcd, "update"],
        "bcd update --json": [bcd, "update", "--json"],
        "bcd --help": [bcd, "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(runs + 1):
        for name, command in commands.items():
            started = time.perf_counter()
            subprocess.run(command, check=False, capture_output=True)
            if turn:  # the first fills the page cache
                times[name].append(time.perf_counter() - started)
    bare = statistics.median(times[BARE])
    for name, taken in times.items():
        median = statistics.median(taken)
        sys.stdout.write(f"{name:20} {median * 1000:7.1f} ms  {median / bare:5.2f} x\n")
    ratio = statistics.median(times["bcd update"]) / bare
    well = ratio <= LIMIT
    sys.stdout.write(
        f"bcd update: {ratio:.2f} times a bare interpreter, at most {LIMIT:g}: {'ok' if well else 'OVER'}\n"
    )
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
