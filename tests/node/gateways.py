"""Small real gateways for tests: WebSocket over TLS by trustme, on loopback, in the test's own loop, each by a script.

A script is what the gateway does with one connection; `calls` counts them from 1. What the node sends is kept by
whoever reads it: `hear` reads one frame.
"""

import asyncio
import json
import logging
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import trustme
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from bcd.core.config import NodeConfig

Json = dict[str, Any]
SUBPROTOCOL = Subprotocol("bcd.node.v1")
WELCOME: Json = {"type": "welcome", "session_id": "s1", "server_time": 1_700_000_000}

_quiet = logging.getLogger("tests.node.gateways")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


@dataclass
class Gateway:
    """A gateway that listens."""

    port: int = 0
    secure: bool = True
    requests: list[Request] = field(default_factory=list)
    """The handshakes, in order."""
    at: list[float] = field(default_factory=list)
    """When each came, monotonic seconds."""
    heard: list[list[Json]] = field(default_factory=list)
    """What the node said on each connection."""

    @property
    def calls(self) -> int:
        """How many WebSockets were opened."""
        return len(self.heard)

    def url(self, host: str = "localhost") -> str:
        """What a node's configuration is to say."""
        return f"{'wss' if self.secure else 'ws'}://{host}:{self.port}/v1/node"

    async def hear(self, connection: ServerConnection) -> Json:
        """The next frame of the node."""
        frame = json.loads(await connection.recv())
        assert isinstance(frame, dict)
        self.heard[-1].append(frame)
        return frame

    async def welcome(self, connection: ServerConnection) -> None:
        """Hear the hello and take the node."""
        await self.hear(connection)
        await say(connection, WELCOME)

    async def listen(self, connection: ServerConnection) -> None:
        """Hear the node until it goes."""
        while True:
            await self.hear(connection)


Script = Callable[[Gateway, ServerConnection], Awaitable[None]]
Handshake = Callable[[Gateway, ServerConnection], Response | None]


async def say(connection: ServerConnection, frame: Json | str | bytes) -> None:
    """Send one frame."""
    await connection.send(json.dumps(frame) if isinstance(frame, dict) else frame)


async def welcoming(gateway: Gateway, connection: ServerConnection) -> None:
    """The script of a good gateway with nothing to say."""
    await gateway.welcome(connection)
    await gateway.listen(connection)


def turned_away(status: int, text: str) -> Handshake:
    """A handshake that is answered with an HTTP status and a text."""
    return lambda _, connection: connection.respond(HTTPStatus(status), text)


@asynccontextmanager
async def gateway(
    authority: trustme.CA | None,
    script: Script = welcoming,
    *,
    host: str = "localhost",
    handshake: Handshake = lambda _gateway, _connection: None,
    subprotocols: list[Subprotocol] | None = None,
) -> AsyncIterator[Gateway]:
    """A gateway with a certificate for `host` by `authority`; in clear text without one."""
    tls = None
    if authority is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(host).configure_cert(tls)
    made = Gateway(secure=tls is not None)

    def at_handshake(connection: ServerConnection, request: Request) -> Response | None:
        made.requests.append(request)
        made.at.append(time.monotonic())
        return handshake(made, connection)

    async def handle(connection: ServerConnection) -> None:
        made.heard.append([])
        with suppress(ConnectionClosed):
            await script(made, connection)

    async with serve(
        handle,
        "127.0.0.1",
        0,
        ssl=tls,
        subprotocols=[SUBPROTOCOL] if subprotocols is None else subprotocols or None,
        process_request=at_handshake,
        compression=None,
        logger=_quiet,
        max_size=None,
        close_timeout=0.2,
    ) as server:
        made.port = next(iter(server.sockets)).getsockname()[1]
        yield made


def node_config(directory: Path, gateway_url: str | None, authority: trustme.CA | None, **more: Any) -> NodeConfig:
    """A node's `[node]` that trusts `authority` beside the system's."""
    ca_file = None
    if authority is not None:
        ca_file = str(directory / "ca.pem")
        authority.cert_pem.write_to_path(ca_file)
    return NodeConfig(data_dir=str(directory), gateway=gateway_url, node_id="n1", ca_file=ca_file, **more)


async def eventually(true: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until something is true; fail when it was not within `seconds`."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it never came true"
        await asyncio.sleep(0.005)
