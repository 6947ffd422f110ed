"""What `bcd update` shows of a running agent: a real Unix socket, good, silent or hostile."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from tests.commands.documents import document
from tests.commands.node_dir import Json, Node
from tests.commands.running import Done, Runner, acting_on_a_terminal

DOWNLOADING: Json = {
    "format": 1,
    "role": "node",
    "target": "1.4.2",
    "phase": "downloading",
    "bytes_done": 13_000_000,
    "bytes_total": 52_000_000,
    "rate": 2_621_440,
}
LINE = "downloading: 1.4.2, 12.4 of 49.6 MiB (25 %), 2.5 MiB/s"


@contextmanager
def agent(node: Node, show: Callable[[socket.socket], object]) -> Iterator[None]:
    """Listen where an agent would, and `show` something to whoever connects."""
    ended = threading.Event()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(node.socket))
        server.listen()
        server.settimeout(0.05)

        def serve() -> None:
            while not ended.is_set():
                try:
                    client, _ = server.accept()
                except TimeoutError:
                    continue
                with client:
                    try:
                        show(client)
                    except OSError:  # it has seen enough
                        continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def says(state: object) -> Callable[[socket.socket], None]:
    """Show a state as the agent does."""
    return lambda client: client.sendall(json.dumps(state).encode() + b"\n")


def test_a_download_has_a_line_of_its_own(run: Runner, node: Node) -> None:
    with agent(node, says(DOWNLOADING)):
        done = run("update", "--config", str(node.config))
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout.splitlines()[2] == LINE
    assert len(done.stdout.splitlines()) == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": "idle"},
        {"bytes_total": 0},
        {"bytes_total": None},
        {"bytes_done": "13"},
        {"rate": None},
    ],
    ids=str,
)
def test_without_a_download_under_way_there_is_no_such_line(changes: Json, run: Runner, node: Node) -> None:
    with agent(node, says({**DOWNLOADING, **changes})):
        done = run("update", "--config", str(node.config))
    assert done.status == 0
    assert len(done.stdout.splitlines()) == 3


def test_the_agents_whole_state_is_in_the_json(run: Runner, node: Node) -> None:
    with agent(node, says({**DOWNLOADING, "session": {"state": "connected"}})):
        done = run("update", "--json", "--config", str(node.config))
    assert cast("Json", json.loads(done.stdout)["agent"]) == {**DOWNLOADING, "session": {"state": "connected"}}


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"[]\n", b"{\n", b"\xff\xfe\n", b'"text"\n', b"[" * 60_000 + b"\n", b"x" * 200_000],
    ids=lambda line: repr(line[:4]),
)
def test_an_agent_that_is_not_understood_is_no_agent(line: bytes, run: Runner, node: Node) -> None:
    with agent(node, lambda client: client.sendall(line)):
        done = run("update", "--json", "--config", str(node.config))
    assert (done.status, json.loads(done.stdout)["agent"]) == (0, None)


@pytest.mark.parametrize("number", ["NaN", "-1e999", "1" * 400])
@pytest.mark.parametrize("field", ["bytes_done", "bytes_total", "rate", "retry_at"])
def test_a_number_that_is_none_says_nothing(field: str, number: str, call: Callable[..., Done], node: Node) -> None:
    """Neither does it end the command, nor is it in a document that is to be JSON."""
    line = json.dumps({**DOWNLOADING, field: "HERE"}).replace('"HERE"', number).encode() + b"\n"
    with agent(node, lambda client: client.sendall(line)):
        assert call("update", "--config", str(node.config)).status == 0
        done = call("update", "--json", "--config", str(node.config))
    assert document(done.stdout, "update")["agent"][field] is None


def test_an_agent_that_dribbles_costs_no_more(call: Callable[..., Done], node: Node) -> None:
    """A byte now and then is no answer either."""

    def dribble(client: socket.socket) -> None:
        for _ in range(100):
            client.sendall(b"{")
            time.sleep(0.1)

    with agent(node, dribble):
        started = time.monotonic()
        done = call("update", "--config", str(node.config))
    assert (done.status, len(done.stdout.splitlines())) == (0, 3)
    assert time.monotonic() - started < 5


def test_an_agent_that_says_nothing_costs_half_a_second(run: Runner, node: Node) -> None:
    with agent(node, lambda client: client.recv(1)):
        started = time.monotonic()
        done = run("update", "--config", str(node.config))
    assert done.status == 0
    assert len(done.stdout.splitlines()) == 3
    assert time.monotonic() - started < 5


def test_a_socket_that_nobody_answers_at_is_no_agent(run: Runner, node: Node) -> None:
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(node.socket))
    done = run("update", "--config", str(node.config))
    assert (done.status, done.stderr, len(done.stdout.splitlines())) == (0, "", 3)


def test_an_agents_text_reaches_no_terminal_raw_and_the_json_whole(run: Runner, node: Node) -> None:
    target = "1.4.2\x1b[2J\x9b1m\r\u202e" + "x" * 10_000
    with agent(node, says({**DOWNLOADING, "target": target})):
        plain = run("update", "--config", str(node.config))
        machine = run("update", "--json", "--config", str(node.config))
    assert "1.4.2\\x1b[2J\\x9b1m\\x0d\\u202e" in plain.stdout
    assert acting_on_a_terminal(plain.stdout) == acting_on_a_terminal(machine.stdout) == []
    assert len(plain.stdout) < 4_000
    assert json.loads(machine.stdout)["agent"]["target"] == target
