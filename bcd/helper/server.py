"""Root's side of the socket: many clients, bounded in number, size and time, and one worker that does what they ask.

The attack (a node taken over): floods, half lines, silent clients, thousands of connections, lines without end. Each
client is its own task with one clock for a whole line; past the bounds it is told so and closed. Reading never waits
for the worker, and the worker never for a client. Requests whose client is gone are not begun. `helper.info` is
answered beside the worker, whatever that is at.
"""

import asyncio
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from bcd.core.errors import HostError
from bcd.core.records import Json
from bcd.core.text import clean
from bcd.helper import wire
from bcd.helper.dispatch import Dispatch
from bcd.helper.peer import Peer, peer_of
from bcd.helper.wire import Malformed, Request
from bcd.helper.worker import Worker

CLIENTS_LIMIT = 16
"""Connections at a time of one user: the node's flood never keeps root out."""
LINE_SECONDS = 10.0
"""For a whole line, and for taking an answer."""
_CHUNK_BYTES = 64 * 1024
_SHORT_BYTES = 4096
"""A line that is read at once, by the loop itself."""
_SAY_AGAIN_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Server:
    """Serves one listening socket until cancelled."""

    def __init__(
        self,
        *,
        dispatch: Dispatch,
        worker: Worker,
        version: str,
        allowed: frozenset[int],
        settled_by: Callable[[Peer], None],
        line_seconds: float = LINE_SECONDS,
    ) -> None:
        """`allowed` uids may speak; `settled_by` is told who settled its start, or swapped."""
        self._dispatch = dispatch
        self._worker = worker
        self._looker = Worker()
        self._version = version
        self._allowed = allowed
        self._settled_by = settled_by
        self._line_seconds = line_seconds
        self._clients: Counter[int] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._said: dict[str, float] = {}

    async def serve(self, listening: socket.socket) -> None:
        """Accept and answer."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    connection, _ = await loop.sock_accept(listening)
                except OSError as error:
                    # Out of descriptors, or a client that left the queue: the next one must still be heard.
                    self._say_once("accept", f"a connection could not be taken: {error}")
                    await asyncio.sleep(0.1)
                    continue
                task = asyncio.create_task(self._client(connection))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        finally:
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _client(self, connection: socket.socket) -> None:
        with connection:
            connection.setblocking(False)
            try:
                peer = peer_of(connection)
            except OSError:
                return
            turned_away = self._turned_away(peer)
            if turned_away is not None:
                self._say_once(turned_away.code, f"uid {peer.uid}: {turned_away.message}")
                await self._send(connection, wire.bad_answer(self._version, turned_away))
                return
            self._clients[peer.uid] += 1
            try:
                await self._converse(connection, peer)
            except Exception:  # noqa: BLE001  # this client's end, and nobody else's
                _log.exception("a fault in bcd itself")
            finally:
                self._clients[peer.uid] -= 1

    def _turned_away(self, peer: Peer) -> HostError | None:
        if peer.uid not in self._allowed:
            return HostError("not-permitted", "only root and the node's user may speak to the helper", "run it as root")
        if self._clients[peer.uid] >= CLIENTS_LIMIT:
            return HostError("helper-busy", f"{CLIENTS_LIMIT} connections of this user are open already", "try again")
        return None

    async def _converse(self, connection: socket.socket, peer: Peer) -> None:
        rest = bytearray()
        while True:
            try:
                async with asyncio.timeout(self._line_seconds):
                    line = await _read_line(connection, rest)
            except Malformed as error:
                # Where the next line would begin is not known any more.
                await self._send(connection, self._dispatch.malformed(str(error)))
                return
            except (TimeoutError, OSError):
                return
            answer = None if line is None else await self._answer(connection, line, peer)
            if answer is None or not await self._send(connection, answer):
                return

    async def _answer(self, connection: socket.socket, line: bytes, peer: Peer) -> Json | None:
        if len(line) <= _SHORT_BYTES:
            request = self._read(line)
            if not isinstance(request, Request):
                return request
            if request.method == wire.INFO:
                # Not in the queue: who asks whether the helper lives must not wait for what the node made it work on.
                return await self._looker.run(lambda: self._dispatch.answer(request))
            return await self._worker.run(lambda: self._work(connection, request, peer))

        def read_and_work() -> Json | None:
            # 4 MiB take their time to read, and are nobody else's.
            request = None if _is_gone(connection) else self._read(line)
            return self._work(connection, request, peer) if isinstance(request, Request) else request

        return await self._worker.run(read_and_work)

    def _read(self, line: bytes) -> Request | Json:
        try:
            document = wire.parse_line(line)
            protocol = document.get("protocol")
            if type(protocol) is not int or protocol != wire.PROTOCOL:
                return self._dispatch.wrong_protocol(protocol)
            return wire.parse_request(document)
        except Malformed as error:
            return self._dispatch.malformed(str(error))

    def _work(self, connection: socket.socket, request: Request, peer: Peer) -> Json | None:
        if _is_gone(connection):
            return None
        if request.method in (wire.SETTLE, wire.SWAP):
            # The agent: one that was started anew may have settled with another of us.
            self._settled_by(peer)
        return self._dispatch.answer(request)

    async def _send(self, connection: socket.socket, answer: Json) -> bool:
        loop = asyncio.get_running_loop()
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(self._line_seconds):
                await loop.sock_sendall(connection, wire.dump_line(answer))
                return True
        return False

    def _say_once(self, what: str, sentence: str) -> None:
        now = time.monotonic()
        if now - self._said.get(what, -_SAY_AGAIN_SECONDS) >= _SAY_AGAIN_SECONDS:
            self._said[what] = now
            _log.warning("%s", clean(sentence))


async def _read_line(connection: socket.socket, rest: bytearray) -> bytes | None:
    """The next line; None at the peer's end. `rest` keeps what came after it. Raises Malformed, OSError."""
    loop = asyncio.get_running_loop()
    looked = 0
    while True:
        end = rest.find(b"\n", looked)
        if end >= 0 and end < wire.LINE_LIMIT:
            line = bytes(rest[:end])
            del rest[: end + 1]
            return line
        looked = len(rest)
        if looked >= wire.LINE_LIMIT:
            raise Malformed(f"a line is longer than {wire.LINE_LIMIT} bytes")
        chunk = await loop.sock_recv(connection, _CHUNK_BYTES)
        if not chunk:
            return None
        rest += chunk


def _is_gone(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
