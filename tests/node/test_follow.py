"""The agent's live state over one connection: restarts, hangs, half lines, nonsense."""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bcd.node import follow
from bcd.node.client import SOCKET_NAME
from bcd.node.follow import LiveFollower


class Agent:
    """What listens on an agent's socket, and says what it is told to."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / SOCKET_NAME
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(8)
        self.listener.setblocking(False)
        self.readers: list[socket.socket] = []

    def say(self, data: bytes) -> None:
        """To whoever is connected last."""
        self.readers[-1].sendall(data)

    def accept(self) -> bool:
        """Whether somebody new came."""
        try:
            reader, _ = self.listener.accept()
        except BlockingIOError:
            return False
        self.readers.append(reader)
        return True

    def end(self) -> None:
        """Gone, its socket too."""
        for each in (self.listener, *self.readers):
            each.close()
        self.path.unlink()


def line(**state: object) -> bytes:
    return json.dumps(state).encode() + b"\n"


@pytest.fixture
def follower(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveFollower]:
    monkeypatch.setattr(follow, "_ANSWER_SECONDS", 0.1)
    made = LiveFollower()
    yield made
    made.close()


def answered(follower: LiveFollower, agent: Agent, data_dir: Path, data: bytes) -> dict[str, object] | None:
    """A look at an agent that has `data` ready for whoever connects."""

    def answer() -> None:
        end = time.monotonic() + 2
        while not agent.accept():
            if time.monotonic() > end:
                return
            time.sleep(0.001)
        agent.say(data)

    thread = threading.Thread(target=answer)
    thread.start()
    state = follower(str(data_dir))
    thread.join()
    return state


def test_no_agent_no_state_and_one_that_hangs_costs_its_time_once(tmp_path: Path, follower: LiveFollower) -> None:
    assert follower(str(tmp_path)) is None
    agent = Agent(tmp_path)
    begun = time.monotonic()
    assert follower(str(tmp_path)) is None
    assert time.monotonic() - begun < 1
    agent.end()


def test_changes_come_over_the_one_connection_and_half_a_line_waits(tmp_path: Path, follower: LiveFollower) -> None:
    agent = Agent(tmp_path)
    assert answered(follower, agent, tmp_path, line(phase="idle")) == {"phase": "idle"}
    agent.say(line(phase="checking") + b'{"phase": "down')
    assert follower(str(tmp_path)) == {"phase": "checking"}
    agent.say(b'loading"}\n')
    assert follower(str(tmp_path)) == {"phase": "downloading"}
    assert not agent.accept()
    agent.end()


def test_an_agent_that_restarts_is_asked_anew_at_once(tmp_path: Path, follower: LiveFollower) -> None:
    agent = Agent(tmp_path)
    assert answered(follower, agent, tmp_path, line(pid=1)) == {"pid": 1}
    agent.end()
    assert follower(str(tmp_path)) is None
    agent = Agent(tmp_path)
    assert answered(follower, agent, tmp_path, line(pid=2)) == {"pid": 2}
    agent.end()


def test_an_agent_that_hangs_with_its_connections_open_is_not_believed_for_ever(
    tmp_path: Path, follower: LiveFollower, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(tmp_path)
    assert answered(follower, agent, tmp_path, line(pid=1)) == {"pid": 1}
    assert follower(str(tmp_path)) == {"pid": 1}
    monkeypatch.setattr(follow, "_TRUSTED_SECONDS", 0.0)
    assert follower(str(tmp_path)) is None
    agent.end()


@pytest.mark.parametrize(
    "nonsense", [b"[1]\n", b"{\n", b"\xff\n", b"[" * 60_000 + b"\n"], ids=["list", "torn", "bytes", "deep"]
)
def test_nonsense_is_no_state_and_the_next_line_counts(nonsense: bytes, tmp_path: Path, follower: LiveFollower) -> None:
    agent = Agent(tmp_path)
    assert answered(follower, agent, tmp_path, nonsense) is None
    agent.say(line(pid=1))
    assert follower(str(tmp_path)) == {"pid": 1}
    agent.end()


def test_a_line_without_end_is_let_go(tmp_path: Path, follower: LiveFollower) -> None:
    agent = Agent(tmp_path)
    assert answered(follower, agent, tmp_path, line(pid=1)) == {"pid": 1}
    with contextlib.suppress(BrokenPipeError):
        for _ in range(20):
            agent.say(b"x" * 8192)
            follower(str(tmp_path))
    assert follower(str(tmp_path)) is None
    assert len(follower._rest) <= 64 * 1024
    agent.end()


def test_no_descriptor_is_left(tmp_path: Path, follower: LiveFollower) -> None:
    agent = Agent(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        answered(follower, agent, tmp_path, line(pid=1))
        follower.close()
        agent.readers.pop().close()
    assert len(os.listdir("/proc/self/fd")) == before
    agent.end()
