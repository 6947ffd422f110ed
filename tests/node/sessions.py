"""A session under test: the real one, a handler that keeps what it is told, and all that can be seen from outside."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from bcd.core.config import NodeConfig
from bcd.node.backoff import Backoff
from bcd.node.frames import Ack, Command, Hello, Section, Welcome
from bcd.node.live import LiveState
from bcd.node.session import GatewaySession
from tests.node.gateways import eventually

HELLO = Hello(protocol=1, node_id="n1", role="node", version="1.4.0", platform="linux-amd64", sections=[])


class Handler:
    """Keeps what the session tells."""

    def __init__(self, *, pending: bool = False) -> None:
        self.pending = pending
        self.welcomes: list[Welcome] = []
        self.refusals: list[str] = []
        self.frames: list[Section | Command | Ack] = []

    def hello(self) -> Hello:
        return HELLO

    def is_pending(self) -> bool:
        return self.pending

    async def welcomed(self, welcome: Welcome) -> None:
        self.welcomes.append(welcome)

    async def session_refused(self, said: str) -> None:
        self.refusals.append(said)

    async def received(self, frame: Section | Command | Ack) -> None:
        self.frames.append(frame)

    def heard_nothing(self) -> None:
        """No gateway was believed, in either way."""
        assert self.welcomes == []
        assert self.refusals == []


class Running:
    """A session that runs, and all that can be seen of it."""

    def __init__(self, session: GatewaySession, handler: Handler, live: "Shown", task: "asyncio.Task[None]") -> None:
        self.session = session
        self.handler = handler
        self.live = live
        self.task = task

    @property
    def errors(self) -> list[str]:
        """Why there was no session, each time."""
        return [state["error"] for state in self.live.sessions if state["state"] == "disconnected"]

    async def tries(self, count: int) -> None:
        """Wait until so many tries have come to nothing."""
        await eventually(lambda: len(self.errors) >= count or self.task.done())
        assert not self.task.done()


class Shown(LiveState):
    """A live state that remembers each state of the session."""

    def __init__(self) -> None:
        super().__init__(role="node", version="1.4.0")
        self.sessions: list[dict[str, Any]] = []

    def update(self, **changes: object) -> None:
        if isinstance(changes.get("session"), dict):
            self.sessions.append(dict(changes["session"]))  # type: ignore[call-overload]  # just asked
        super().update(**changes)


@asynccontextmanager
async def session(
    config: NodeConfig,
    *,
    handler: Handler | None = None,
    backoff: Backoff | None = None,
    welcome_seconds: float = 10.0,
    steady_seconds: float = 0.0,
) -> AsyncIterator[Running]:
    """A session that tries again after some milliseconds."""
    told, live = handler or Handler(), Shown()
    made = GatewaySession(
        config,
        told,
        live,
        backoff=backoff or Backoff(first=0.01, most=0.05),
        welcome_seconds=welcome_seconds,
        steady_seconds=steady_seconds,
    )
    task = asyncio.create_task(made.run())
    try:
        yield Running(made, told, live, task)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def closed_port() -> int:
    """A port of loopback on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert isinstance(port, int)
        return port
