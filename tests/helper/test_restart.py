"""Without systemd the node is started anew by ending its process: that very one, whoever else settles."""

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from bcd.helper.peer import Peer
from bcd.helper.restart import NodeProcess

SECONDS = 20.0
Started = list["subprocess.Popen[bytes]"]


@pytest.fixture
def started() -> Iterator[Started]:
    """Processes that sleep; none of them outlives the test."""
    processes = [subprocess.Popen(["sleep", "60"]) for _ in range(3)]
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def settle(node: NodeProcess, process: "subprocess.Popen[bytes]") -> None:
    node.settled_by(Peer(process.pid, os.geteuid()))


def test_a_second_process_that_settles_does_not_take_the_agents_place(started: Started) -> None:
    agent, other, stranger = started
    node = NodeProcess(os.geteuid(), systemd=False)
    settle(node, agent)
    settle(node, other)
    node.settled_by(Peer(stranger.pid, os.geteuid() + 1))
    node.restart()
    assert [agent.wait(SECONDS), other.wait(SECONDS), stranger.poll()] == [-signal.SIGTERM, -signal.SIGTERM, None]


def test_a_crowd_of_processes_that_settle_does_not_push_the_agent_out(started: Started) -> None:
    agent, *_ = started
    crowd = [subprocess.Popen(["sleep", "60"]) for _ in range(12)]
    node = NodeProcess(os.geteuid(), systemd=False)
    settle(node, agent)
    for process in crowd:
        settle(node, process)
    node.restart()
    assert agent.wait(SECONDS) == -signal.SIGTERM
    assert sum(process.poll() is None for process in crowd) > 0, "what is remembered is bounded"
    for process in crowd:
        process.kill()
        process.wait()


def test_the_next_agent_is_remembered_once_those_before_have_ended(started: Started) -> None:
    *before, agent = started
    node = NodeProcess(os.geteuid(), systemd=False)
    for process in before:
        settle(node, process)
        process.kill()
        process.wait()
    settle(node, agent)
    settle(node, agent)
    node.restart()
    assert agent.wait(SECONDS) == -signal.SIGTERM
