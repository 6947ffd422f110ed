"""Root's side in this process, by a clock that is told and bounds that are short: what is cut, what goes on, who acts."""

import asyncio
import json
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bcd.core.manager import Manager
from bcd.helper import deadline, wire
from bcd.helper.deadline import GRACE_SECONDS, DeadlineWatch
from bcd.helper.dispatch import Dispatch
from bcd.helper.peer import Held, Peer
from bcd.helper.server import CLIENTS_LIMIT, Server
from bcd.helper.worker import Worker
from tests.core.node_root import Node, make_release, quick_node
from tests.helper.world import request
from tests.node.gateways import eventually

ONE = make_release("1.1.0", 11)
ME = os.geteuid()
LINE_SECONDS = 0.3


class Half:
    """Root's half: a manager on a disk of its own, a worker, a server."""

    def __init__(self, node: Node, path: str, allowed: frozenset[int]) -> None:
        self.node = node
        self.path = path
        self.manager = node.manager("1.0.0", staging_owner=ME)
        self.worker = Worker()
        self.settled: list[Peer] = []
        self.server = Server(
            dispatch=Dispatch(self.manager, "1.0.0"),
            worker=self.worker,
            version="1.0.0",
            allowed=allowed,
            settled_by=self.settled.append,
            line_seconds=LINE_SECONDS,
        )

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(self.path, limit=8 * 1024 * 1024)

    async def say(self, data: bytes) -> dict[str, Any]:
        """One line and its answer; empty where it hung up."""
        reader, writer = await self.connect()
        writer.write(data)
        line = await reader.readline()
        writer.close()
        return dict(json.loads(line)) if line else {}


@asynccontextmanager
async def serving(node: Node, path: str, allowed: frozenset[int] = frozenset((ME,))) -> AsyncIterator[Half]:
    """It serves meanwhile."""
    half = Half(node, path, allowed)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(64)
        listening.setblocking(False)
        task = asyncio.create_task(half.server.serve(listening))
        try:
            yield half
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node that root and its user share, on 1.0.0."""
    return quick_node(tmp_path / "node", monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s")


SLOW: dict[str, bytes] = {"silent": b"", "half a line": request(wire.CONFIRM)[:-1]}


@pytest.mark.parametrize("name", SLOW)
async def test_a_client_that_does_not_end_its_line_is_cut(node: Node, path: str, name: str) -> None:
    """Others are answered meanwhile, and its place is free afterwards."""
    async with serving(node, path) as half:
        held = [await half.connect() for _ in range(CLIENTS_LIMIT)]
        for _, writer in held:
            writer.write(SLOW[name])
        await asyncio.sleep(0.05)
        assert (await half.say(request(wire.INFO)))["code"] == "helper-busy"
        async with asyncio.timeout(5):
            for reader, writer in held:
                assert await reader.read() == b""
                writer.close()
        assert (await half.say(request(wire.INFO)))["result"] == {"running": "1.0.0"}


async def test_a_line_drop_by_drop_has_one_clock(node: Node, path: str) -> None:
    """A byte now and then keeps nobody's connection."""
    async with serving(node, path) as half:
        reader, writer = await half.connect()
        end = asyncio.get_running_loop().time() + 10 * LINE_SECONDS
        while not reader.at_eof() and not writer.is_closing():
            assert asyncio.get_running_loop().time() < end
            writer.write(b" ")
            await asyncio.sleep(LINE_SECONDS / 10)
            if reader._eof:  # type: ignore[attr-defined]
                break
        writer.close()


async def test_a_client_that_takes_no_answer_is_cut(node: Node, path: str) -> None:
    """What it asked beyond is not worked on."""
    async with serving(node, path) as half:
        raw = socket.socket(socket.AF_UNIX)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        raw.connect(path)
        raw.setblocking(False)
        loop = asyncio.get_running_loop()

        async def ask_for_ever() -> None:
            while True:
                await loop.sock_sendall(raw, request("x" * 1000) * 50)

        with pytest.raises((TimeoutError, OSError)):
            await asyncio.wait_for(ask_for_ever(), 2)
        assert (await half.say(request(wire.INFO)))["ok"]
        raw.close()
        await asyncio.sleep(0.05)
        assert half.server._clients[ME] == 0


async def test_another_user_is_told_so_before_it_is_heard(node: Node, path: str) -> None:
    """Even for what touches nothing."""
    async with serving(node, path, frozenset((ME + 1,))) as half:
        assert (await half.say(b""))["code"] == "not-permitted"


async def test_what_a_client_that_is_gone_asked_for_is_not_begun(node: Node, path: str) -> None:
    """It waited behind other work, and nobody would hear the answer."""
    node.start()
    node.swap(ONE)
    before = node.tree()
    async with serving(node, path) as half:
        go_on = threading.Event()
        busy = asyncio.create_task(half.worker.run(go_on.wait))
        for method in (wire.CONFIRM, wire.SETTLE):
            _, writer = await half.connect()
            writer.write(request(method))
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.close()
        _, writer = await half.connect()
        await asyncio.sleep(0.05)
        go_on.set()
        await busy
        await half.worker.run(lambda: None)
        writer.close()
        assert half.settled == []
        assert node.tree() == before


async def test_a_fault_of_our_own_is_told_and_ends_nobody(
    node: Node, path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without its traceback, which is in the log."""

    def fail(_: object) -> None:
        raise RuntimeError("boom \x1b[2J")

    async with serving(node, path) as half:
        monkeypatch.setattr(Manager, "confirm", fail)
        answer = await half.say(request(wire.CONFIRM))
        assert (answer["code"], answer["refused"]) == ("io-error", False)
        assert answer["message"] == "a fault in bcd itself: RuntimeError: boom \\x1b[2J"
        monkeypatch.setattr(Dispatch, "answer", fail)
        assert await half.say(request(wire.SETTLE)) == {}
        monkeypatch.undo()
        assert (await half.say(request(wire.INFO)))["ok"]
    assert "Traceback" in caplog.text


async def test_who_settles_is_who_is_ended_when_the_node_must_go(node: Node, path: str) -> None:
    """By the kernel's word."""
    async with serving(node, path) as half:
        assert (await half.say(request(wire.SETTLE)))["result"]["outcome"] == "settled"
        assert half.settled == [Peer(os.getpid(), ME)]


@pytest.mark.parametrize("peer", [Peer(0, ME), Peer(2**22 + 1, ME), Peer(1, ME + 1), Peer(-1, ME)])
def test_a_number_that_means_another_process_is_not_held(peer: Peer) -> None:
    """Root's signal would meet whatever has it now."""
    assert Held.of(peer) is None


# The deadline ---------------------------------------------------------------------------------------------------------


class Watched:
    """A watch over a node whose release is pending."""

    def __init__(self, node: Node, manager: Manager) -> None:
        self.node = node
        self.restarts = 0
        self.watch = DeadlineWatch(manager, Worker(), self._restart, tick_seconds=0.01)

    def _restart(self) -> None:
        self.restarts += 1

    async def until(self, true: Callable[[], bool], seconds: float = 5.0) -> None:
        task = asyncio.create_task(self.watch.run())
        try:
            await eventually(true, seconds)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def for_a_while(self) -> None:
        task = asyncio.create_task(self.watch.run())
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def watched(node: Node) -> Watched:
    """1.1.0 is pending, and nobody executes it."""
    node.start()
    node.swap(ONE)
    return Watched(node, node.manager("1.0.0", staging_owner=ME))


async def test_root_goes_back_by_itself_a_little_after_the_deadline(watched: Watched) -> None:
    """Once; the node is started anew, and its start is settled as failed."""
    before = watched.node.tree()
    watched.node.clock.passes(120 + GRACE_SECONDS - 1)
    await watched.for_a_while()
    assert (watched.restarts, watched.node.tree()) == (0, before)
    watched.node.clock.passes(2)
    await watched.until(lambda: watched.restarts == 1)
    assert watched.node.runs() == "1.0.0"
    await watched.for_a_while()
    assert watched.restarts == 1
    assert watched.node.start()[-1].failed is not None
    assert watched.node.floor() == 0


async def test_root_leaves_alone_what_was_confirmed(watched: Watched) -> None:
    """However late it is."""
    watched.node.manager().confirm()
    watched.node.clock.passes(10_000)
    await watched.for_a_while()
    assert (watched.restarts, watched.node.runs()) == (0, "1.1.0")


async def test_a_clock_that_is_set_back_keeps_no_release(watched: Watched) -> None:
    """The boot clock decides, which no one sets."""
    watched.node.clock.passes(126)
    watched.node.clock.now -= 1_000_000
    await watched.until(lambda: watched.restarts == 1)
    assert watched.node.runs() == "1.0.0"


async def test_a_rollback_that_fails_is_told_once_and_tried_again(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The old slot is broken for a while; so with a fault of our own."""
    monkeypatch.setattr(deadline, "_AGAIN_SECONDS", 0.01)
    slot = watched.node.slot("a")
    good = slot.read_bytes()
    slot.write_bytes(b"torn")
    watched.node.clock.passes(126)
    await watched.for_a_while()
    assert caplog.text.count("the rollback did not happen") == 1
    assert (watched.restarts, watched.node.runs()) == (0, "1.1.0")
    slot.write_bytes(good)
    with monkeypatch.context() as patch:

        def fail(*_: object, **__: object) -> bool:
            raise ValueError("a fault")

        patch.setattr(Manager, "rollback", fail)
        await watched.for_a_while()
    assert "a fault in bcd itself" in caplog.text
    await watched.until(lambda: watched.restarts == 1)
    assert watched.node.runs() == "1.0.0"


async def test_a_rollback_that_the_node_asks_for_is_root_s_to_time(node: Node, path: str) -> None:
    """A second early is not late; a minute is, with what is left."""
    node.start()
    node.swap(ONE)
    async with serving(node, path) as half:
        line = request(wire.ROLLBACK, {"way": "deadline"})
        node.clock.passes(60)
        before = node.tree()
        answer = await half.say(line)
        assert (answer["code"], "60 s are left" in answer["message"]) == ("update-in-progress", True)
        assert node.tree() == before
        node.clock.passes(59.5)
        assert (await half.say(line))["result"] == {"moved": True}
        assert node.runs() == "1.0.0"
