"""Real processes: `bcd node` as the service starts it, in the lab, and what it says where it cannot run."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import bcd
from bcd.lab.directory import LabDirectory
from bcd.lab.labnode import LabNode
from bcd.lab.releases import Recipe
from bcd.lab.spoiling import Spoiling
from bcd.lab.world import World

SOURCE = str(Path(bcd.__file__).parent.parent)
SOON = 2.0
"""Seconds that an end may take: the interpreter's own, and a machine with other work."""
_DROP_CAPABILITIES = """
import ctypes, os, sys
for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH: root without them is held by modes like anyone
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
_HUNG_NAMES = """
import socket, sys, time
socket.getaddrinfo = lambda *_, **__: (sys.stderr.write("asked\\n"), sys.stderr.flush(), time.sleep(60))
"""
_ENTRY = "from bcd.cli import entry; entry()"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The lab's world."""
    claimed = LabDirectory(tmp_path_factory.mktemp("lab"))
    with World(claimed.path) as made:
        yield made
    claimed.give_back(keep=True)


class Running:
    """A process that is up, and what it said so far."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self.log = log

    @property
    def said(self) -> str:
        """Standard output and standard error."""
        return self.log.read_text(encoding="utf-8")

    def until(self, true: Callable[[], object]) -> None:
        """Wait for something while it runs."""
        end = time.monotonic() + 20
        while not true():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < end, self.said
            time.sleep(0.01)

    def terminate(self) -> tuple[int, float]:
        """SIGTERM; its status, and the seconds that it took to end."""
        at = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(20)
        return status, time.monotonic() - at


@contextmanager
def started(argv: list[str], log: Path, environment: dict[str, str]) -> Iterator[Running]:
    """A process, killed in the end if it is still there."""
    with log.open("wb") as file:
        process = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        yield Running(process, log)
    finally:
        process.kill()
        process.wait()


@contextmanager
def up(node: LabNode, *, before: tuple[str, ...] = ()) -> Iterator[Running]:
    """A lab's node, started by hand: there is no supervisor to start it again."""
    argv = [*before, str(node.root.entrypoint), "node", "--config", str(node.root.config)]
    with started(argv, node.root.log, node.environment) as running:
        yield running


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    stderr: str


def bare_environment() -> dict[str, str]:
    """What it takes to run bcd from its source, and to have that measured."""
    measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, **measured}


def bcd_node(config: Path, *more: str) -> Ended:
    """Run `bcd node` from its source, which is no fakehw build, to its end."""
    ran = subprocess.run(
        [sys.executable, "-c", _ENTRY, "node", "--config", str(config), *more],
        env=bare_environment(),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert ran.stdout == ""
    return Ended(ran.returncode, ran.stderr)


def is_one_error(ended: Ended, code: str) -> bool:
    """One line that says what, with the code, at most one that says what to do, and nothing else."""
    said, *hint = ended.stderr.splitlines()
    well = re.fullmatch(rf"bcd: .+ \({code}\)", said) is not None
    return well and len(hint) <= 1 and all(line.startswith("  try: ") for line in hint)


# Ending --------------------------------------------------------------------------------------------------------------


def test_at_rest_it_ends_by_sigterm(world: World) -> None:
    """Status 0, at once, with a word and no traceback."""
    node = world.node("rest")
    with up(node) as running:
        node.wait_welcome("1.4.0")
        running.until((node.root.data / "node.sock").exists)
        status, took = running.terminate()
    assert (status, took < SOON) == (0, True)
    assert running.said.splitlines()[-1].endswith("bcd.node.main: stopped")
    assert "Traceback" not in running.said
    assert "ERROR" not in running.said
    assert not (node.root.data / "node.sock").exists()


def test_in_a_download_it_ends_by_sigterm_and_keeps_what_it_has(world: World) -> None:
    """The next start asks for the rest alone, and what is swapped in then is a process with the same pid."""
    node = world.node("download")
    release = world.publisher.publish(
        "1.4.1", 15, shelf="download", recipe=Recipe(spoiling=Spoiling(stall_after=50_000, answers=1))
    )
    part = node.root.data / "staging" / "bcd-1.4.1.part"
    with up(node) as running:
        node.wait_welcome("1.4.0")
        node.push(release)
        running.until(lambda: part.exists() and part.stat().st_size == 50_000)
        status, took = running.terminate()
    assert (status, took < SOON) == (0, True)
    assert "Traceback" not in running.said
    assert part.stat().st_size == 50_000
    with up(node) as running:
        node.wait_welcome("1.4.1")
        node.wait_root(lambda root: root.pending() is None, "a confirmed update", lambda root: root.pending())
        assert running.process.poll() is None
    assert [request.range for request in node.downloads(release)] == [None, "bytes=50000-"]
    assert node.root.update_record()["sequence"] == 15


def test_while_a_name_server_does_not_answer_it_ends_by_sigterm(tmp_path: Path) -> None:
    """The resolver's thread does not keep the interpreter."""
    config = tmp_path / "config.toml"
    config.write_text(
        f'[node]\ndata_dir = "{tmp_path / "data"}"\ngateway = "wss://gateway.example.com/"\n'
        f'[update]\nslots_dir = "{tmp_path / "slots"}"\nentrypoint = "{tmp_path / "bcd"}"\n'
    )
    argv = [sys.executable, "-c", _HUNG_NAMES + _ENTRY, "node", "--config", str(config)]
    with started(argv, tmp_path / "log", bare_environment()) as running:
        running.until(lambda: "asked" in running.said)
        status, took = running.terminate()
    assert (status, took < SOON) == (0, True)
    assert "Traceback" not in running.said


# Not starting --------------------------------------------------------------------------------------------------------


def test_a_data_directory_that_cannot_be_made_is_one_error(tmp_path: Path) -> None:
    """Status 1, and the path that is in the way."""
    (tmp_path / "file").write_text("")
    config = tmp_path / "config.toml"
    config.write_text(f'[node]\ndata_dir = "{tmp_path / "file" / "data"}"\n')
    ended = bcd_node(config)
    assert ended.status == 1
    assert is_one_error(ended, "io-error"), ended.stderr
    assert str(tmp_path / "file") in ended.stderr


@pytest.mark.parametrize(
    "text",
    [
        "[node\n",
        '[node]\ndata_dri = "/var/lib/bcd"\n',
        "[node]\ndata_dir = 5\n",
        '[node]\ngateway = "ws://gateway.example.com/"\n',
    ],
    ids=["no-toml", "an-unknown-key", "mistyped", "a-gateway-in-clear-text"],
)
def test_a_bad_configuration_is_one_error(tmp_path: Path, text: str) -> None:
    """Status 2, before anything is made."""
    config = tmp_path / "config.toml"
    config.write_text(text)
    ended = bcd_node(config)
    assert ended.status == 2
    assert is_one_error(ended, "bad-config"), ended.stderr
    assert str(config) in ended.stderr
    assert list(tmp_path.iterdir()) == [config]


def test_a_data_directory_that_may_not_be_written_keeps_no_node_from_running(world: World) -> None:
    """Field report 35: one line says that updates are off and why; it is welcomed, and ends as ever."""
    node = world.node("read-only")
    node.root.data.chmod(0o555)
    with up(node, before=(sys.executable, "-c", _DROP_CAPABILITIES)) as running:
        node.wait_welcome("1.4.0")
        status, _ = running.terminate()
    assert status == 0
    assert "Traceback" not in running.said
    errors = [line for line in running.said.splitlines() if " ERROR " in line]
    assert len(errors) == 1
    assert "updates are off for now: " in errors[0]
    assert str(node.root.records) in errors[0]
    assert list(node.root.data.iterdir()) == []
