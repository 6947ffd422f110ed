"""What the node may do with connections: many, silent, slow, gone, never reading."""

import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from bcd.helper import wire
from bcd.helper.server import CLIENTS_LIMIT
from tests.helper.attack import Attack
from tests.helper.attacker import Attacker
from tests.helper.world import TWO, request

Answer = dict[str, Any] | str


def held(count: int, data: bytes = b"") -> Callable[[Attacker], Answer]:
    """So many connections, each of which says `data` and hears nothing; one more asks."""

    def play(node: Attacker) -> Answer:
        with ExitStack() as stack:
            for _ in range(count):
                connection = stack.enter_context(node.connect())
                with suppress(OSError):
                    connection.setblocking(False)
                    connection.send(data)
            node.so_far()
            return node.ask(wire.INFO)

    return play


def come_and_go(data: bytes, count: int) -> Callable[[Attacker], Answer]:
    """Connections that are closed at once, before their answer."""

    def play(node: Attacker) -> Answer:
        for _ in range(count):
            with node.connect() as connection, suppress(OSError):
                connection.send(data)
        node.so_far()
        return "gone"

    return play


def never_reading(node: Attacker) -> Answer:
    """Questions without end, no answer of which is taken."""
    with node.connect() as connection:
        connection.setblocking(False)
        for _ in range(2000):
            with suppress(BlockingIOError):
                connection.send(request(wire.INFO) * 20)
        node.so_far()
        return "never read"


def brackets(node: Attacker) -> Answer:
    """4 MiB of brackets on every connection that it may have."""
    line = b'{"a":[' + b"[]," * (wire.LINE_LIMIT // 3 - 10) + b"[]]}\n"
    with ExitStack() as stack:
        connections = [stack.enter_context(node.connect()) for _ in range(CLIENTS_LIMIT)]
        for connection in connections[:-1]:
            connection.sendall(line)
        node.so_far()
        return node.line(connections[0])


def swaps(node: Attacker) -> Answer:
    """Swaps of wrong bytes on every connection, again and again."""
    node.stage(TWO, b"#" * len(TWO.data))
    line = request(wire.SWAP, {"spec": TWO.section, "server_time": None, "command_id": None})
    answer: Answer = "none"
    with ExitStack() as stack:
        connections = [stack.enter_context(node.connect()) for _ in range(CLIENTS_LIMIT - 1)]
        for _ in range(5):
            for connection in connections:
                connection.sendall(line)
        node.so_far()
        for connection in connections:
            for _ in range(5):
                answer = node.line(connection)
    return answer


def prepares_gone(node: Attacker) -> Answer:
    """Two thousand questions in one go, by somebody who is gone before the first answer."""
    line = request(wire.SWAP, {"spec": TWO.section, "server_time": None, "command_id": None})
    node.stage(TWO)
    node.so_far()
    connection = node.connect()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    connection.setblocking(False)
    with suppress(BlockingIOError):
        connection.send(b"\n" + line[:-1])
    connection.close()
    return "gone"


ATTACKS = (
    Attack("16 silent connections", held(CLIENTS_LIMIT), "helper-busy"),
    Attack("16 half lines", held(CLIENTS_LIMIT, b'{"protocol":1,'), "helper-busy"),
    Attack("1,000 connections", held(1000), "helper-busy"),
    Attack("1,000 connections that come and go", come_and_go(request(wire.INFO), 1000), "gone"),
    Attack("200 confirms by clients that are gone", come_and_go(request(wire.CONFIRM), 200), "gone"),
    Attack("half a swap by a client that is gone", prepares_gone, "gone"),
    Attack("a client that never reads its answers", never_reading, "never read"),
    Attack("4 MiB of brackets on 15 connections", brackets, "bad-request"),
    Attack("75 swaps of wrong bytes on 15 connections", swaps, "io-error"),
)
