"""The lab's gateway: a real one on loopback (spec/gateway.md), WebSocket over TLS, for any number of nodes.

It knows a node by its client certificate, so it can treat each in its own way from the handshake on. It keeps every
frame, replays sections and unfinished commands after every hello, and acks the end of commands. The network runs in a
thread with a loop of its own; everything else may be called from any thread.
"""

import asyncio
import json
import logging
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from bcd.lab.behaviour import AT_HANDSHAKE, Behaviour, Manner
from bcd.lab.book import FINAL_STATES, Command, Frame, Json, Page, Session

SUBPROTOCOL = Subprotocol("bcd.node.v1")
_FRAME_LIMIT_BYTES = 4 * 1024 * 1024
_HELLO_SECONDS = 20.0
_PING_SECONDS = 20.0
_PONG_SECONDS = 40.0
"""After a ping; so a peer silent for 60 s is gone."""
_SILENCE_LOOK_SECONDS = 0.2
"""How often a held connection looks whether it is to be held any longer."""

_wire_log = logging.getLogger(f"{__name__}.wire")
_wire_log.addHandler(logging.NullHandler())
_wire_log.propagate = False
# Whatever the library says about connections: here they break on purpose, and the book tells it better.


class LabClosed(Exception):
    """The lab is closing while somebody waits for something to happen in it."""


class Gateway:
    """Listens from the moment it is made until `close`."""

    def __init__(self, context: ssl.SSLContext) -> None:
        """Listen with `context`, which must ask each peer for a certificate."""
        self._changed = threading.Condition()
        self._pages: dict[str, Page] = {}
        self._live: dict[str, ServerConnection] = {}
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gateway", daemon=True)
        self._thread.start()
        self._server: Server = asyncio.run_coroutine_threadsafe(self._listen(context), self._loop).result()
        self.url = f"wss://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1/node"
        """What a node's `[node] gateway` is to say."""

    @contextmanager
    def page(self, node: str) -> Iterator[Page]:
        """A node's page, for as long as nothing changes on it; the caller may change it."""
        with self._changed:
            yield self._page(node)
            self._changed.notify_all()

    def wait(self, node: str, happened: Callable[[Page], bool], seconds: float) -> bool:
        """Wait until `happened` is true of a node's page; false when it was not within `seconds`.

        Raises:
            LabClosed: the gateway was closed meanwhile.
        """
        with self._changed:
            page = self._page(node)
            self._changed.wait_for(lambda: self._closed or happened(page), seconds)
            if self._closed:
                raise LabClosed
            return happened(page)

    def behave(self, node: str, behaviour: Behaviour, *, version: str | None = None) -> None:
        """Treat `node` so from its next hello on, or only where it says hello as `version`.

        A node that is held in silence meets the new behaviour at once.

        Raises:
            ValueError: a manner of the handshake for a version: nobody knows it at that time.
        """
        with self.page(node) as page:
            if version is None:
                page.behaviour = behaviour
            elif behaviour.manner in AT_HANDSHAKE:
                raise ValueError(f"{behaviour.manner} comes before the version is known")
            else:
                page.behaviour_by_version[version] = behaviour

    def push_section(self, node: str, spec: Json) -> int:
        """Make `spec` the node's desired `daemon` section and tell it; return the generation. Raises LabClosed."""
        with self.page(node) as page:
            page.generation += 1
            page.section = spec
            generation = page.generation
        self._tell(node, _section_frame(generation, spec))
        return generation

    def push_command(self, node: str, args: Json, kind: str = "daemon.upgrade") -> str:
        """Give the node a command and return its id; it is told again after every hello until it is finished.

        Raises LabClosed, as every push does when the lab has ended.
        """
        command = Command(id=uuid.uuid4().hex, kind=kind, args=args)
        with self.page(node) as page:
            page.commands[command.id] = command
        self._tell(node, _command_frame(command))
        return command.id

    def repeat_command(self, node: str, command_id: str) -> None:
        """Tell the node a command once more, finished or not."""
        with self.page(node) as page:
            command = page.commands[command_id]
        self._tell(node, _command_frame(command))

    def drop_session(self, node: str) -> None:
        """Break the node's connection, as a network would."""
        connection = self._live.get(node)
        if connection is not None:
            self._loop.call_soon_threadsafe(connection.transport.abort)

    def wake(self) -> None:
        """End every wait, of now and of later, with `LabClosed`; first thing of all when a lab ends."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def close(self) -> None:
        """Stop listening, drop every session and wake every waiter."""
        self.wake()
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _page(self, node: str) -> Page:
        return self._pages.setdefault(node, Page(node=node))

    def _tell(self, node: str, body: Json) -> None:
        """Send a frame if the node has a welcomed session; after the next welcome it is replayed anyway."""
        if self._closed:
            raise LabClosed

        async def tell() -> None:
            connection = self._live.get(node)
            with self._changed:
                session = self._page(node).welcomed()
            if connection is not None and session is not None:
                with suppress(ConnectionClosed):
                    await self._send(node, session, connection, body)

        # Waited for, so that pushes are told in the order in which they were made.
        asyncio.run_coroutine_threadsafe(tell(), self._loop).result()

    async def _listen(self, context: ssl.SSLContext) -> Server:
        return await serve(
            self._serve,
            "127.0.0.1",
            0,
            ssl=context,
            subprotocols=[SUBPROTOCOL],
            process_request=self._at_handshake,
            compression=None,
            logger=_wire_log,
            max_size=_FRAME_LIMIT_BYTES,
            ping_interval=_PING_SECONDS,
            ping_timeout=_PONG_SECONDS,
        )

    async def _stop(self) -> None:
        for connection in list(self._live.values()):
            connection.transport.abort()
        self._server.close()
        await self._server.wait_closed()
        # What is left: connections that came while the door was closing.
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _at_handshake(self, connection: ServerConnection, _: Request) -> Response | None:
        node = _peer_name(connection)
        with self.page(node) as page:
            behaviour = page.manner_at_handshake()
            if behaviour is None:
                return None
            page.turned_away += 1
        if behaviour.manner is Manner.CUT:
            connection.transport.abort()
            raise ConnectionAbortedError
        response = connection.respond(behaviour.status, "busy\n")
        response.headers["Retry-After"] = "1"
        return response

    async def _serve(self, connection: ServerConnection) -> None:
        node = _peer_name(connection)
        session: Session | None = None
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                hello = json.loads(await connection.recv())
            session = self._opened(node, hello)
            self._live[node] = connection
            if await self._receive_node(node, session, connection):
                async for message in connection:
                    await self._take(node, session, connection, json.loads(message))
        except (ConnectionClosed, TimeoutError, ValueError):
            pass
        finally:
            if session is not None:
                with self.page(node):
                    session.closed_at = time.monotonic()
            if self._live.get(node) is connection:
                del self._live[node]

    def _opened(self, node: str, hello: Json) -> Session:
        if hello.get("type") != "hello" or hello.get("node_id") != node:
            raise ValueError(f"{node} did not say hello as itself")
        with self.page(node) as page:
            session = Session(number=len(page.sessions), version=str(hello.get("version")), opened_at=time.monotonic())
            page.sessions.append(session)
            page.frames.append(_frame(session, hello, from_node=True))
            return session

    async def _receive_node(self, node: str, session: Session, connection: ServerConnection) -> bool:
        """Behave as is wanted until there is an answer to the hello; whether it was a welcome."""
        with self.page(node) as page:
            behaviour = page.manner_for(session.version)
            clock_ahead = page.clock_ahead
        while behaviour.manner is Manner.SILENT:
            await self._keep_silent(node, session, connection, behaviour)
            with self.page(node) as page:
                behaviour = page.manner_for(session.version)
        if behaviour.manner is not Manner.WELCOME:
            await self._send(node, session, connection, {"type": "bye", "reason": behaviour.text})
            await connection.close()
            return False
        server_time = int(time.time() + clock_ahead)
        await self._send(
            node, session, connection, {"type": "welcome", "session_id": uuid.uuid4().hex, "server_time": server_time}
        )
        with self.page(node) as page:
            session.welcomed_at = time.monotonic()
            unfinished = [command for command in page.commands.values() if page.replays and not command.finished]
            replayed = [_command_frame(command) for command in unfinished]
            if page.section is not None:
                replayed.insert(0, _section_frame(page.generation, page.section))
        for body in replayed:
            await self._send(node, session, connection, body)
        return True

    async def _keep_silent(
        self, node: str, session: Session, connection: ServerConnection, behaviour: Behaviour
    ) -> None:
        """Hold the connection until another behaviour is wanted; keep whatever the node says meanwhile.

        Raises:
            ConnectionClosed: the node has gone.
        """
        while True:
            with self._changed:
                if self._page(node).manner_for(session.version) != behaviour:
                    return
            with suppress(TimeoutError):
                async with asyncio.timeout(_SILENCE_LOOK_SECONDS):
                    await self._take(node, session, connection, json.loads(await connection.recv()))

    async def _take(self, node: str, session: Session, connection: ServerConnection, body: Json) -> None:
        with self.page(node) as page:
            page.frames.append(_frame(session, body, from_node=True))
            final = body.get("type") == "command_status" and body.get("state") in FINAL_STATES
            acked = final and page.acks
            command = page.commands.get(str(body.get("id")))
            if acked and command is not None:
                command.finished = True
        if acked:
            await self._send(node, session, connection, {"type": "ack", "id": body["id"]})

    async def _send(self, node: str, session: Session, connection: ServerConnection, body: Json) -> None:
        with self.page(node) as page:
            page.frames.append(_frame(session, body, from_node=False))
        await connection.send(json.dumps(body))


def _peer_name(connection: ServerConnection) -> str:
    """The common name of the node's certificate, which TLS has verified."""
    tls = cast("ssl.SSLObject", connection.transport.get_extra_info("ssl_object"))
    subject = cast("Any", tls.getpeercert() or {}).get("subject", ())
    return next(str(value) for name in subject for key, value in name if key == "commonName")


def _frame(session: Session, body: Json, *, from_node: bool) -> Frame:
    return Frame(at=time.monotonic(), from_node=from_node, session=session.number, body=body)


def _section_frame(generation: int, spec: Json) -> Json:
    return {"type": "section", "name": "daemon", "generation": generation, "spec": spec}


def _command_frame(command: Command) -> Json:
    return {"type": "command", "id": command.id, "kind": command.kind, "args": command.args}
