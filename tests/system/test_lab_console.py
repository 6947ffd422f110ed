"""`bcd lab` in a real terminal, as a person at a keyboard has it: a good update, a rollback, and nothing left behind."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.processes import nodes_in

ROOT = Path(__file__).parents[2]
BCD = "from bcd.cli import main; import sys; sys.exit(main(sys.argv[1:]))"

pytestmark = pytest.mark.slow


class Terminal:
    """`bcd lab` in a tmux of its own, its temporary files beneath `home`."""

    def __init__(self, home: Path, *words: str, columns: int = 80, rows: int = 24) -> None:
        self.home = home
        self._socket = (
            f"bcdlab-{os.getpid()}-{home.name}"  # one a test: a server that ends must not take the next one in
        )
        command = shlex.join(["env", f"TMPDIR={home}", "LC_ALL=C.UTF-8", sys.executable, "-c", BCD, *words])
        size = ["-x", str(columns), "-y", str(rows)]
        self._run("-f", "/dev/null", "new-session", "-d", *size, f"{command}; echo ended $?; sleep 60")

    def _run(self, *args: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
        environment.pop("TMUX", None)
        done = subprocess.run(
            ["tmux", "-L", self._socket, *args], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
        )
        return done.stdout

    def screen(self) -> str:
        """What is on it, every run of blanks as one."""
        return " ".join(self._run("capture-pane", "-p").split())

    def type(self, *keys: str) -> None:
        """Type keys, one at a time."""
        for key in keys:
            self._run("send-keys", key)
            time.sleep(0.05)

    def wait_for(self, *parts: str, seconds: float = 60.0) -> str:
        """Wait until all of `parts` are on the screen, and return it."""
        end = time.monotonic() + seconds
        while not all(part in (screen := self.screen()) for part in parts):
            assert time.monotonic() < end, f"{parts} did not come:\n{self._run('capture-pane', '-p')}"
            time.sleep(0.1)
        return screen

    def console(self) -> int:
        """The process of the console."""
        (found,) = subprocess.run(
            ["pgrep", "-f", "-P", self._run("display-message", "-p", "#{pane_pid}").strip(), "cli import main"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        return int(found)

    def is_clean(self) -> bool:
        """Whether no process and no file of the lab is left."""
        return not nodes_in(self.home) and not list(self.home.glob("bcd-lab-*"))

    def close(self) -> None:
        """End it and what runs in it; the server may have ended with its last session."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self._run("kill-server")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path, "lab")
    yield made
    made.close()


def test_a_good_update_and_a_rollback_are_read_from_the_screen(terminal: Terminal) -> None:
    first = terminal.wait_for("8 Lab", "gateway welcomed", "no update has run here yet", "slot b: empty", "it is up in")
    assert "runs and is confirmed" in first
    terminal.type("Enter")  # the first act: a good release
    good = terminal.wait_for("bcd 1.4.1", "1.4.1 was welcomed and is confirmed", "current ▶ slot b: 1.4.1", "floor 15")
    assert "previous ▶ slot a: 1.4.0" in good
    assert "● checked ─── ● downloaded ─── ● staged ─── ● swapped ─── ● welcomed" in good
    terminal.type("Down", "Down", "Down")
    terminal.wait_for("is swapped back at the start")
    terminal.type("Enter")
    back = terminal.wait_for("the last update failed: bcd 1.4.2 did not run", "failed: 1.4.2", "gateway welcomed")
    assert "slot a: 1.4.2 current ▶ slot b: 1.4.1 floor 15" in back
    assert "Failed 1" in back
    assert "○ checked ┄┄┄" in back
    terminal.type("2")
    terminal.wait_for("1.4.2", "16", "it failed at every start", "Clear all")
    terminal.type("1")
    terminal.wait_for("▲ current: bcd runs from here", "failed here: 1.4.2")
    terminal.type("q")
    terminal.wait_for("ended 0", seconds=5)
    assert terminal.is_clean()


@pytest.mark.parametrize("early", [True, False], ids=["while it is made", "when it is up"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_takes_the_lab_down_whenever_it_comes(
    terminal: Terminal, number: signal.Signals, status: int, early: bool
) -> None:
    terminal.wait_for("a lab is being made" if early else "it is up in")
    if early:
        time.sleep(0.1)
    os.kill(terminal.console(), number)
    terminal.wait_for(f"ended {status}", seconds=5)
    assert terminal.is_clean()


def test_a_lost_terminal_takes_the_lab_down(terminal: Terminal) -> None:
    terminal.wait_for("it is up in")
    assert not terminal.is_clean()
    terminal._run("kill-session")
    end = time.monotonic() + 10
    while not terminal.is_clean():
        assert time.monotonic() < end, "the lab lives on"
        time.sleep(0.1)
