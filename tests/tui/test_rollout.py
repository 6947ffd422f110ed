"""End to end: the console in tmux beside a real lab node, through a good update and one that nobody welcomes."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bcd.lab.control import ask_to_push

ROOT = Path(__file__).parents[2]
CONSOLE = """
import sys
from bcd.commands.console import Asked, run_console
sys.exit(run_console(Asked(config_path=sys.argv[1])))
"""


class Tmux:
    """A console in a tmux of its own."""

    def __init__(self, config: Path) -> None:
        self._socket = f"bcdtest-{os.getpid()}"
        command = shlex.join([sys.executable, "-c", CONSOLE, str(config)])
        # The status stays on the screen: what it ended with can be read there.
        self._run(
            "-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", f"{command}; echo ended $?; sleep 60"
        )

    def _run(self, *args: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
        environment.pop("TMUX", None)
        done = subprocess.run(
            ["tmux", "-L", self._socket, *args], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
        )
        return done.stdout

    def screen(self) -> str:
        """What is on it."""
        return self._run("capture-pane", "-p")

    def send(self, key: str) -> None:
        """Type."""
        self._run("send-keys", key)

    def wait_for(self, *parts: str, seconds: float = 60.0) -> str:
        """Wait until all of `parts` are on the screen, and return it."""
        end = time.monotonic() + seconds
        while not all(part in (screen := self.screen()) for part in parts):
            assert time.monotonic() < end, f"{parts} did not come:\n{screen}"
            time.sleep(0.2)
        return screen

    def close(self) -> None:
        """End it and what runs in it."""
        self._run("kill-server")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Path]:
    """A lab that is up, by its directory."""
    directory = tmp_path / "lab"
    code = "from bcd.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "lab", "up", "--dir", str(directory)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "What happens to the node" in line:
            break
    yield directory
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)


@pytest.fixture
def console(lab: Path) -> Iterator[Tmux]:
    """The console over the lab's node."""
    (config,) = (lab / "nodes" / "node").rglob("config.toml")
    tmux = Tmux(config)
    yield tmux
    tmux.close()


@pytest.mark.slow
def test_a_rollout_is_followed_from_rest_to_pending(lab: Path, console: Tmux) -> None:
    console.wait_for("agent up", "gateway welcomed", "no update has run here yet")
    ask_to_push(lab, "good", by_command=False)
    console.wait_for("bcd 1.4.1", "1.4.1 was welcomed and is confirmed")
    ask_to_push(lab, "never-welcomed", by_command=False)
    first = console.wait_for("1.4.2", "left to be welcomed", "swaps back to 1.4.1")
    assert "waits for its welcome" in first
    time.sleep(2)
    assert _seconds_left(console.screen()) < _seconds_left(first)
    console.send("q")
    console.wait_for("ended 0", seconds=5)


def _seconds_left(screen: str) -> int:
    (line,) = [line for line in screen.splitlines() if "left to be welcomed" in line]
    return int(line.split()[0])
