"""What packed binaries cost beside one another: start-up, memory, size.

Runs take turns, so that a busy moment hits all alike. Times are medians, of the clock
and of the processor, which a busy machine moves less; memory is the largest resident set of any of
the command's processes (wait4), and never less than what this program had when it forked, which is printed.
"""

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

COMMANDS = (("version",), ("update", "--json"), ("--help",), ("doctor", "--offline", "--json"))


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=20, metavar="RUNS", help="runs of each (default 20)")
    parser.add_argument("binaries", nargs="+", type=Path, metavar="FILE")
    wanted = parser.parse_args()
    binaries: list[Path] = [path.resolve() for path in wanted.binaries]
    with tempfile.TemporaryDirectory(prefix="bcd-bench-") as directory:
        config = Path(directory) / "config.toml"
        config.write_text(f'[node]\ndata_dir = "{directory}"\n')
        taken: dict[tuple[Path, int], list[tuple[float, float, int]]] = {}
        for turn in range(wanted.n + 1):
            for number, words in enumerate(COMMANDS):
                more = () if len(words) == 1 else ("--config", str(config))
                for path in binaries:
                    once = _run(path, (*words, *more))
                    if turn:  # the first fills the page cache
                        taken.setdefault((path, number), []).append(once)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(
        f"memory below {own / 1024:.1f} MiB does not show\n{'':46}"
        + "".join(f"{' '.join(words)[:18]:>26}" for words in COMMANDS)
        + "\n"
    )
    for path in binaries:
        cells = ""
        for number in range(len(COMMANDS)):
            runs = taken[path, number]
            clock, cpu = (statistics.median(run[column] for run in runs) * 1000 for column in (0, 1))
            cells += f"{clock:7.0f} {cpu:5.0f} ms {max(run[2] for run in runs) / 1024:5.1f} MiB"
        sys.stdout.write(f"{str(path)[-36:]:36} {_size(path) / 2**20:5.1f} MiB{cells}\n")
    return 0


def _run(path: Path, words: tuple[str, ...]) -> tuple[float, float, int]:
    """Seconds by the clock, seconds of processor, and KiB at most."""
    started = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        os.execv(path, [str(path), *words])  # noqa: S606  # what is measured
    _, _, used = os.wait4(pid, 0)
    return time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss


def _size(path: Path) -> int:
    """Of the file, or of the whole directory where the program has libraries beside it."""
    if (path.parent / "_internal").is_dir():
        return sum(file.stat().st_size for file in path.parent.rglob("*") if file.is_file() and not file.is_symlink())
    return path.stat().st_size


if __name__ == "__main__":
    sys.exit(main())
