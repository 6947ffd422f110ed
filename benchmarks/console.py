"""What the console costs whoever leaves it open: first paint, key to paint, idle CPU, bytes of a countdown, memory.

Each in a real pseudo-terminal of 120x36 over a node's directory, beside the same of a minimal Textual app in the same
run; start-up beside a bare interpreter too. The aims are those of the product's description.
"""

import argparse
import asyncio
import fcntl
import json
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import psutil
from startup import _node

PAINT_SECONDS, KEY_SECONDS, IDLE_PERCENT, COUNTDOWN_BYTES, GROWTH_MIB = 0.7, 0.05, 0.5, 200, 2
BCD = str(Path(sys.executable).parent / "bcd")
MINIMAL = """
from textual.app import App
from textual.widgets import DataTable, Footer
class Minimal(App):
    BINDINGS = [("j", "down", "Down"), ("k", "up", "Commands")]
    def compose(self):
        yield DataTable(cursor_type="row")
        yield Footer(show_command_palette=False)
    def on_mount(self):
        self.query_one(DataTable).add_columns("version", "why")
        self.query_one(DataTable).add_rows([(str(n), "reason " * 8) for n in range(32)])
    def action_down(self):
        self.query_one(DataTable).action_cursor_down()
    def action_up(self):
        self.query_one(DataTable).action_cursor_up()
Minimal().run(mouse=False)
"""


class Terminal:
    """A command in a terminal."""

    def __init__(self, command: list[str]) -> None:
        self.started = time.perf_counter()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
            environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
            os.execve(command[0], command, {**environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})

    def read(self, seconds: float) -> bytes:
        """What came within so long, at the first that comes; nothing when nothing does."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        return os.read(self.master, 65536) if ready else b""

    def until(self, marker: bytes) -> float:
        """Seconds from the start until `marker` was written."""
        seen = b""
        while marker not in seen:
            seen += self.read(1)
            if time.perf_counter() - self.started > 20:
                raise SystemExit(f"{marker!r} did not come: {seen[-500:]!r}")
        return time.perf_counter() - self.started

    def drain(self, seconds: float) -> int:
        """Read on for so long; how many bytes came."""
        count, end = 0, time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            count += len(self.read(left))
        return count

    def press(self, key: bytes) -> float:
        """Seconds from a key to the first bytes that it drew."""
        begun = time.perf_counter()
        os.write(self.master, key)
        if not self.read(5):
            raise SystemExit(f"{key!r} drew nothing")
        took = time.perf_counter() - begun
        self.drain(0.03)
        return took

    def cpu_percent(self, seconds: float) -> float:
        """Of one core, over so long."""
        process = psutil.Process(self.pid)
        before = sum(process.cpu_times()[:4])  # its own, and what its children took
        self.drain(seconds)
        return 100 * (sum(process.cpu_times()[:4]) - before) / seconds

    def close(self) -> None:
        """End it."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.master)


def main() -> int:
    """Measure and print; 1 when an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs, 10 s of idling in place of 60")
    parser.add_argument("--config", help="a node of a lab that is up, in place of a directory with no agent")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bcd-bench-") as directory:
        home = Path(directory)
        config = given.config or str(_node(home))
        console = [BCD, "console", "--config", config]
        minimal = [sys.executable, "-c", MINIMAL]
        well = [
            _first_paint(console, minimal, 5 if given.quick else 15),
            _keys([*console, "--screen", "config"], minimal, 60 if given.quick else 300),
            _idle(console, minimal, 10 if given.quick else 60),
            _countdown(home, 10 if given.quick else 30),
            _memory(home),
        ]
    return 0 if all(well) else 1


def _say(what: str, value: str, aim: str, *, well: bool) -> bool:
    sys.stdout.write(f"{what:<34} {value:<46} aim {aim}: {'ok' if well else 'MISSED'}\n")
    return well


def _first_paint(console: list[str], minimal: list[str], runs: int) -> bool:
    times: dict[str, list[float]] = {"bare": [], "minimal": [], "console": []}
    for turn in range(runs + 1):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        taken = {"bare": time.perf_counter() - begun}
        for name, command in (("minimal", minimal), ("console", console)):
            terminal = Terminal(command)
            taken[name] = terminal.until(b"Commands")
            terminal.close()
        if turn:  # the first fills the page cache
            for name, seconds in taken.items():
                times[name].append(seconds)
    bare, peer, ours = (statistics.median(times[name]) for name in ("bare", "minimal", "console"))
    value = f"{ours:.3f} s, {ours / peer:.2f} x minimal, {ours / bare:.0f} x bare"
    return _say("exec to the first full frame", value, f"{PAINT_SECONDS} s", well=ours < PAINT_SECONDS)


def _keys(console: list[str], minimal: list[str], presses: int) -> bool:
    taken = []
    for command in (console, minimal):
        terminal = Terminal(command)
        terminal.until(b"Commands")
        terminal.drain(1)
        taken.append(sorted(terminal.press(b"jk"[n % 2 : n % 2 + 1]) for n in range(presses)))
        terminal.close()
    (p50, p99), (peer50, peer99) = ((t[len(t) // 2], t[len(t) * 99 // 100]) for t in taken)
    value = f"p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms, {p50 / peer50:.2f} and {p99 / peer99:.2f} x minimal"
    return _say("key to paint", value, f"p99 {KEY_SECONDS * 1000:.0f} ms", well=p99 < KEY_SECONDS)


def _idle(console: list[str], minimal: list[str], seconds: float) -> bool:
    found = []
    for command in (console, minimal):
        terminal = Terminal(command)
        terminal.until(b"Commands")
        terminal.drain(3)
        found.append(terminal.cpu_percent(seconds))
        terminal.close()
    value = f"{found[0]:.2f} % of a core, minimal {found[1]:.2f} %"
    return _say(f"idle, {seconds:.0f} s", value, f"{IDLE_PERCENT} %", well=found[0] < IDLE_PERCENT)


def _countdown(home: Path, seconds: float) -> bool:
    directory = home / "pending"
    directory.mkdir()
    config, now = _node(directory), int(time.time())
    pending = {
        "format": 1, "state": "swapped", "swap_id": "1", "from_version": "1.4.0", "to_version": "1.4.1",
        "from_slot": "a", "to_slot": "b", "sequence": 16, "command_id": None, "launched": True, "swapped_at": now,
        "deadline": now + 120, "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "swapped_boottime": time.clock_gettime(time.CLOCK_BOOTTIME),
    }  # fmt: skip
    (directory / "var" / "update" / "upgrade.json").write_text(json.dumps(pending))
    terminal = Terminal([BCD, "console", "--config", str(config)])
    terminal.until(b"Commands")
    terminal.drain(3)
    rate = terminal.drain(seconds) / seconds
    terminal.close()
    return _say("a countdown", f"{rate:.0f} bytes a second", f"{COUNTDOWN_BYTES}", well=rate < COUNTDOWN_BYTES)


def _memory(home: Path) -> bool:
    directory = home / "hour"
    directory.mkdir()
    done = subprocess.run(
        [sys.executable, __file__, "--hour", str(_node(directory))], check=True, capture_output=True, text=True
    )
    first, warm, end, cpu = (float(part) for part in done.stdout.split())
    value = f"{first:.1f}, {warm:.1f}, {end:.1f} MiB at 10, 20, 60 min, {cpu:.3f} s CPU each"
    return _say("a change a second for an hour", value, f"{GROWTH_MIB} MiB after 20", well=end - warm < GROWTH_MIB)


async def _hour(config: str) -> None:
    """A change of the disk a second for an hour, as fast as they are drawn: half failures, half of them cleared."""
    from bcd.core.build import this_build
    from bcd.core.clock import SystemClock
    from bcd.doctor.finding import Report
    from bcd.node.follow import LiveFollower
    from bcd.tui.app import ConsoleApp
    from bcd.tui.journal import NoJournal
    from bcd.tui.source import Source

    records = Path(config).parent / "var" / "update"
    _write_history(records, range(-500, 0))  # as many as the console shows: what follows adds none to what it holds
    source = Source(config, this_build(), SystemClock(), LiveFollower())
    report = Report(findings=(), complete=True, started_at=0, seconds=0.0, looked_as="", about="")

    class Driven(ConsoleApp):
        """This loop looks in its place."""

        def _keep_looking(self) -> None:
            pass

    app = Driven(
        read=source.read, read_events=source.read_events, examine=lambda: report, clear=lambda _: (),
        judge=lambda given: (_ for _ in ()).throw(ValueError(given)), journal=NoJournal(""), signals=False,
    )  # fmt: skip
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screens = list(app.MODES)
        for second in range(3600):
            failed = [{"version": f"1.4.{second}", "sequence": 1, "reason": "not welcomed", "at": second}]
            made = {"format": 1, "sequence": 15, "failed": failed[second % 2 :]}
            (records / "update.json.new").write_text(json.dumps(made))
            (records / "update.json.new").rename(records / "update.json")
            _write_history(records, range(second, second + 1))
            if second % 60 == 0:
                await app.switch_mode(screens[second // 60 % len(screens)])
            app._take(source.read(), source.read_events())
            await pilot.pause(0)
            if second in (600, 1200, 3599):  # by 20 minutes each screen was seen twice, with all that it can hold
                sys.stdout.write(f"{psutil.Process().memory_info().rss / 2**20} ")
        sys.stdout.write(f"{time.process_time() / 3600}\n")


def _write_history(records: Path, seconds: range) -> None:
    with (records / "history.jsonl").open("a") as file:
        for at in seconds:
            file.write(json.dumps({"at": at, "event": "settled-failed", "version": f"1.4.{at}"}) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--hour"]:
        asyncio.run(_hour(sys.argv[2]))
        sys.exit(0)
    sys.exit(main())
