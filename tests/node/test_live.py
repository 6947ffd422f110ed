"""What the agent shows of itself on its socket, and what whoever looks makes of it (spec/gateway.md)."""

import asyncio
import json
import logging
import os
import socket
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bcd.core.text import Foreign
from bcd.node.client import SOCKET_NAME, read_live_state
from bcd.node.live import LiveState

CLIENTS = 32


@asynccontextmanager
async def shown(directory: Path) -> AsyncIterator[LiveState]:
    """A live state that is served in `directory`."""
    live = LiveState(role="node", version="1.4.0")
    await live.serve(str(directory))
    try:
        yield live
    finally:
        await live.close()
        await asyncio.sleep(0)


class Client:
    """Somebody who looks."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def line(self) -> dict[str, Any]:
        """The next line."""
        async with asyncio.timeout(5):
            line = await self.reader.readline()
        assert line.endswith(b"\n")
        state = json.loads(line)
        assert isinstance(state, dict)
        return state

    async def at_end(self) -> bool:
        """Whether the agent has let go of this client."""
        async with asyncio.timeout(5):
            return await self.reader.read(1) == b""

    async def silent(self) -> bool:
        """Whether nothing is said to it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                return await self.reader.read(1) == b"never"
        return True

    async def leave(self) -> None:
        """Go away."""
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


@asynccontextmanager
async def looking(directory: Path, *, room: int | None = None) -> AsyncIterator[Client]:
    """A client, by a path that is short however long the directory's is; `room` bytes fit its receive buffer."""
    handle = os.open(directory, os.O_PATH)
    try:
        plain = socket.socket(socket.AF_UNIX)
        if room is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        plain.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plain, f"/proc/self/fd/{handle}/{SOCKET_NAME}")
        reader, writer = await asyncio.open_unix_connection(sock=plain, limit=1024 * 1024)
    finally:
        os.close(handle)
    client = Client(reader, writer)
    try:
        yield client
    finally:
        await client.leave()


async def test_the_whole_state_is_told_on_connect(tmp_path: Path) -> None:
    """One line with everything that only the agent knows, from the first moment on."""
    async with shown(tmp_path), looking(tmp_path) as client:
        assert await client.line() == {
            "format": 1,
            "role": "node",
            "version": "1.4.0",
            "pid": os.getpid(),
            "session": {"state": "disconnected", "id": None, "since": None, "error": None},
            "target": None,
            "phase": "idle",
            "bytes_done": None,
            "bytes_total": None,
            "rate": None,
            "retry_at": None,
            "error": None,
            "pending_deadline": None,
        }
        assert await client.silent()


async def test_each_change_is_one_more_whole_line(tmp_path: Path) -> None:
    """A reader who missed one has missed nothing; what did not change is not told."""
    async with shown(tmp_path) as live, looking(tmp_path) as client:
        first = await client.line()
        live.update(phase="downloading", target="1.4.1")
        live.update(phase="downloading")
        live.update(bytes_done=5)
        assert await client.line() == {**first, "phase": "downloading", "target": "1.4.1"}
        assert await client.line() == {**first, "phase": "downloading", "target": "1.4.1", "bytes_done": 5}
        assert await client.silent()


async def test_nothing_can_be_asked_of_it(tmp_path: Path) -> None:
    """Whatever a client sends, in whatever amount, changes nothing and is answered by nothing."""
    async with shown(tmp_path) as live, looking(tmp_path) as client:
        first = await client.line()
        client.writer.write(b'{"phase":"idle","clear_failed":true}\nGET / HTTP/1.1\r\n\r\n' + b"\0" * 1_000_000)
        async with asyncio.timeout(5):
            await client.writer.drain()
        assert await client.silent()
        live.update(phase="checking")
        assert await client.line() == {**first, "phase": "checking"}


async def test_a_reader_that_is_slow_is_let_go(tmp_path: Path) -> None:
    """It costs the agent no memory, and the reader beside it misses no line."""
    async with shown(tmp_path) as live, looking(tmp_path, room=4096) as slow, looking(tmp_path) as fast:
        slow.writer.transport.pause_reading()  # type: ignore[attr-defined]  # of every transport that reads
        first = await fast.line()
        for number in range(100):
            live.update(error=f"{number} " + "x" * 20_000)
            assert (await fast.line())["error"].startswith(f"{number} ")
        slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(5):
            got = b""
            with suppress(ConnectionError):
                while chunk := await slow.reader.read(65_536):
                    got += chunk
        assert got.startswith(json.dumps(first, separators=(",", ":")).encode())
        assert b'"error":"99 ' not in got
        assert len(got) < 1_000_000
        live.update(error=None)
        assert (await fast.line())["error"] is None


async def test_the_33rd_client_is_sent_away(tmp_path: Path) -> None:
    """32 are served; a place that one of them leaves is free again."""
    async with shown(tmp_path) as live:
        clients = [await enter(tmp_path) for _ in range(CLIENTS)]
        for client in clients:
            await client.line()
        async with looking(tmp_path) as late:
            assert await late.at_end()
        live.update(phase="checking")
        assert [(await client.line())["phase"] for client in clients] == ["checking"] * CLIENTS
        await clients.pop().leave()
        async with asyncio.timeout(5):
            while True:
                again = await enter(tmp_path)
                clients.append(again)
                if await again.reader.read(1):
                    break
        for client in clients:
            await client.leave()


async def enter(directory: Path) -> Client:
    """A client that stays until it is told to leave."""
    reader, writer = await asyncio.open_unix_connection(str(directory / SOCKET_NAME))
    return Client(reader, writer)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
async def test_owner_and_group_may_look_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    """Mode 0660, nobody else."""
    before = os.umask(umask)
    try:
        async with shown(tmp_path):
            found = (tmp_path / SOCKET_NAME).lstat()
            assert stat.S_ISSOCK(found.st_mode)
            assert stat.S_IMODE(found.st_mode) == 0o660
    finally:
        os.umask(before)


async def test_a_data_dir_longer_than_a_sockets_address_is_served(tmp_path: Path) -> None:
    """108 bytes are all that an address has; the agent and who looks both go through the open directory."""
    directory = tmp_path / ("long-" * 40)
    directory.mkdir()
    assert len(str(directory)) > 108
    async with shown(directory) as live, looking(directory) as client:
        await client.line()
        live.update(phase="staging")
        state = await asyncio.to_thread(read_live_state, str(directory))
        assert state is not None
        assert state["phase"] == "staging"


def _stale_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


@pytest.mark.parametrize(
    "leave_behind",
    [_stale_socket, lambda path: path.write_text("not a socket"), lambda path: path.symlink_to("/dev/null")],
    ids=["a-dead-agents-socket", "a-file", "a-link"],
)
async def test_what_lies_in_the_sockets_place_is_replaced(
    tmp_path: Path, leave_behind: Callable[[Path], object]
) -> None:
    """An agent that was killed does not keep the next one from being looked at."""
    leave_behind(tmp_path / SOCKET_NAME)
    _stale_socket(tmp_path / f".{SOCKET_NAME}.{os.getpid()}")  # of an agent that had this very pid, as in a container
    async with shown(tmp_path), looking(tmp_path) as client:
        assert (await client.line())["phase"] == "idle"


async def test_an_agent_that_ends_takes_its_socket_away_and_lets_its_clients_go(tmp_path: Path) -> None:
    """Nothing of it stays in the data directory."""
    async with shown(tmp_path), looking(tmp_path) as client:
        await client.line()
        inside = client
    assert await inside.at_end()
    assert list(tmp_path.iterdir()) == []


async def test_an_agent_that_cannot_be_looked_at_works_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning, and its state goes on changing."""
    with caplog.at_level(logging.WARNING):
        async with shown(tmp_path / "missing") as live:
            live.update(phase="checking")
    assert [record.levelname for record in caplog.records] == ["WARNING"]


# Whoever looks -------------------------------------------------------------------------------------------------------


@contextmanager
def imposter(directory: Path, answer: Callable[[socket.socket, threading.Event], None]) -> Iterator[None]:
    """Something else that listens on the agent's socket and answers each client in a thread."""
    ending = threading.Event()

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    answer(connection, ending)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / SOCKET_NAME))
        listener.listen(4)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        ending.set()
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def saying(data: bytes) -> Callable[[socket.socket, threading.Event], None]:
    """Say this and hang up."""
    return lambda connection, _: connection.sendall(data)


def test_the_agents_state_is_read_by_whoever_asks(tmp_path: Path) -> None:
    """The first line, whole, even where the second came with it."""
    with imposter(tmp_path, saying(b'{"format":1,"phase":"idle"}\n{"format":1,"phase":"staging"}\n')):
        assert read_live_state(str(tmp_path)) == {"format": 1, "phase": "idle"}


def test_a_line_in_many_pieces_is_read_whole(tmp_path: Path) -> None:
    """A socket may give a byte at a time."""

    def answer(connection: socket.socket, _: threading.Event) -> None:
        for byte in b'{"format":1}\n':
            connection.sendall(bytes([byte]))

    with imposter(tmp_path, answer):
        assert read_live_state(str(tmp_path)) == {"format": 1}


def test_text_that_writes_a_terminal_is_made_visible(tmp_path: Path) -> None:
    """Who prints the state prints clean text, at any depth; only JSON asks for what was said."""
    hostile = "\x1b[2J\u202e"
    said = {"error": hostile, "session": {"error": hostile, "more": [hostile]}}
    with imposter(tmp_path, saying(json.dumps(said).encode() + b"\n")):
        state: Any = read_live_state(str(tmp_path))
    for text in (state["error"], state["session"]["error"], state["session"]["more"][0]):
        assert text == "\\x1b[2J\\u202e"
        assert isinstance(text, Foreign)
        assert text.raw == hostile


GARBAGE = {
    "nothing": b"",
    "no-json": b"hello\n",
    "nul-bytes": b"\0" * 100 + b"\n",
    "a-list": b"[1]\n",
    "a-number": b"1\n",
    "torn": b'{"format":1,',
    "not-utf-8": b'{"a":"\xff"}\n',
    "nested-deep": b"[" * 60_000 + b"\n",
    "nested-deep-objects": b'{"a":' * 10_000 + b"\n",
    "endless": b"x" * 200_000,
    "5000-digits": b'{"pid":' + b"9" * 5000 + b"}\n",
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_an_answer_that_is_not_understood_is_no_answer(tmp_path: Path, data: bytes) -> None:
    """Never an error: the records on disk are there to be shown."""
    with imposter(tmp_path, saying(data)):
        assert read_live_state(str(tmp_path)) is None


def _hang(_: socket.socket, ending: threading.Event) -> None:
    ending.wait(10)


def _dribble(connection: socket.socket, ending: threading.Event) -> None:
    while not ending.wait(0.05):
        connection.sendall(b" ")


@pytest.mark.parametrize("answer", [_hang, _dribble], ids=["says-nothing", "says-a-byte-now-and-then"])
def test_an_agent_that_hangs_is_waited_for_no_longer_than_asked(
    tmp_path: Path, answer: Callable[[socket.socket, threading.Event], None]
) -> None:
    """The time is for the whole answer: whoever owns the data directory must not be able to hold root's `bcd update`."""
    with imposter(tmp_path, answer):
        began = time.monotonic()
        assert read_live_state(str(tmp_path), 0.2) is None
        assert time.monotonic() - began < 1.5


def _full_backlog(path: Path) -> list[socket.socket]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(0)
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(4)]
    for client in waiting:
        client.setblocking(False)
        with suppress(OSError):
            client.connect(str(path))
    return [listener, *waiting]


def test_an_agent_that_accepts_nobody_is_waited_for_no_longer_than_asked(tmp_path: Path) -> None:
    """Stopped by a debugger, say, with others waiting already."""
    sockets = _full_backlog(tmp_path / SOCKET_NAME)
    began = time.monotonic()
    assert read_live_state(str(tmp_path), 0.2) is None
    assert time.monotonic() - began < 1.5
    for one in sockets:
        one.close()


@pytest.mark.parametrize(
    "leave_behind",
    [
        lambda path: None,
        _stale_socket,
        lambda path: path.write_text('{"format":1}\n'),
        lambda path: path.mkdir(),
        os.mkfifo,
        lambda path: path.symlink_to("loop"),
    ],
    ids=["nothing", "a-dead-agents-socket", "a-file", "a-directory", "a-fifo", "a-dangling-link"],
)
def test_without_an_agent_there_is_no_state(tmp_path: Path, leave_behind: Callable[[Path], object]) -> None:
    """Whatever lies in the socket's place; and no descriptor stays open."""
    leave_behind(tmp_path / SOCKET_NAME)
    before = os.listdir("/proc/self/fd")
    assert read_live_state(str(tmp_path)) is None
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_without_a_data_directory_there_is_no_state(tmp_path: Path) -> None:
    """Before the first start."""
    assert read_live_state(str(tmp_path / "missing")) is None
