"""The session with a gateway: one WebSocket at a time, reconnected for ever with backoff (spec/gateway.md).

Until `welcome` the node sends nothing but `hello`. A gateway that is busy, silent, unreachable or refuses is no
verdict over what runs here: this goes on trying, and only the deadline decides (field report 13).
"""

import asyncio
import logging
import time
from typing import Protocol

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidProxy, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from bcd.core.config import NodeConfig
from bcd.core.text import clean
from bcd.node.backoff import Backoff
from bcd.node.frames import (
    Ack,
    Bye,
    Command,
    Hello,
    MalformedFrame,
    Outgoing,
    Section,
    Welcome,
    decode,
    encode,
)
from bcd.node.live import LiveState
from bcd.node.protocol import FRAME_LIMIT_BYTES, SUBPROTOCOL
from bcd.node.trust import gateway_trust

_PING_SECONDS = 20
_SILENT_SECONDS = 60
_OPEN_SECONDS = 15
_WELCOME_SECONDS = 30
"""A gateway that took the socket and says nothing: another try may reach another one."""
_EARLY_FRAMES = 64
"""How many frames are kept that come before the welcome."""
_EARLY_BYTES = FRAME_LIMIT_BYTES
"""And how much of them in all: one frame may be as large as this, and 64 such would be an update's whole memory."""
_STEADY_SECONDS = 60.0
"""How long a session has to last for the next one to be tried at once: a gateway that welcomes and hangs up is not well."""
_BACKOFF_SECONDS = 60.0
_BACKOFF_PENDING_SECONDS = 5.0
"""While a release waits for its welcome, a minute's pause would be half of its time."""

_log = logging.getLogger(__name__)


class Refused(Exception):
    """A gateway answered, and not with a welcome."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = said


class SessionHandler(Protocol):
    """What the session's owner does with what comes."""

    def hello(self) -> Hello:
        """What this node says first."""

    def is_pending(self) -> bool:
        """Whether a release waits for its welcome."""

    async def welcomed(self, welcome: Welcome) -> None:
        """The gateway took the node."""

    async def session_refused(self, said: str) -> None:
        """A gateway answered and did not take the node."""

    async def received(self, frame: Section | Command | Ack) -> None:
        """Something to do."""


class GatewaySession:
    """The node's end."""

    def __init__(
        self,
        config: NodeConfig,
        handler: SessionHandler,
        live: LiveState,
        *,
        backoff: Backoff | None = None,
        welcome_seconds: float = _WELCOME_SECONDS,
        steady_seconds: float = _STEADY_SECONDS,
    ) -> None:
        self._config = config
        self._handler = handler
        self._live = live
        self._backoff = backoff or Backoff(most=_BACKOFF_SECONDS)
        self._welcome_seconds = welcome_seconds
        self._steady_seconds = steady_seconds
        self._socket: ClientConnection | None = None
        self._last_error: str | None = None
        self._closing = False

    async def run(self) -> None:
        """Connect and reconnect until cancelled."""
        if self._config.gateway is None:
            self._live.update(session=_state("disconnected", error="no gateway is configured"))
            _log.warning("no gateway is configured: set [node] gateway")
            await asyncio.Event().wait()
        while True:
            try:
                await self._once()
                error = "the gateway closed the session"
            except Refused as refusal:
                error = f"the gateway refused: {refusal.said}"
                await self._handler.session_refused(refusal.said)
            except (OSError, InvalidHandshake, WebSocketException, ValueError, ImportError) as failure:
                # An ImportError: the environment names a SOCKS proxy, and what speaks to one is not installed.
                error = _words(failure)
            if self._closing:
                return
            delay = self._backoff.next(_BACKOFF_PENDING_SECONDS if self._handler.is_pending() else None)
            self._live.update(session=_state("disconnected", error=error, retry_at=int(time.time() + delay)))
            # The same failure again and again is one line, not a flood.
            level = logging.DEBUG if error == self._last_error else logging.WARNING
            _log.log(level, "no session: %s; next try in %.1f s", error, delay)
            self._last_error = error
            await asyncio.sleep(delay)

    async def send(self, frame: Outgoing) -> None:
        """Send a frame where there is a welcomed session; otherwise nothing, the next welcome tells it all anew."""
        if self._socket is not None:
            try:
                await self._socket.send(encode(frame))
            except ConnectionClosed:
                _log.debug("the session ended while a frame was sent")

    async def close(self, reason: str) -> None:
        """Say goodbye; the caller cancels `run` afterwards."""
        self._closing = True
        if self._socket is not None:
            await self.send(Bye(reason=reason))
            await self._socket.close()

    async def _once(self) -> None:
        self._live.update(session=_state("connecting", error=self._last_error))
        gateway = self._config.gateway or ""
        secure = gateway.startswith("wss://")
        try:
            connection = await connect(
                gateway,
                ssl=gateway_trust(self._config) if secure else None,
                subprotocols=[Subprotocol(SUBPROTOCOL)],
                compression=None,
                max_size=FRAME_LIMIT_BYTES,
                open_timeout=_OPEN_SECONDS,
                ping_interval=_PING_SECONDS,
                ping_timeout=_SILENT_SECONDS - _PING_SECONDS,
                close_timeout=2,
            )
        except InvalidStatus as answer:
            raise Refused(_http_answer(answer)) from answer
        welcomed_at: float | None = None
        try:
            await connection.send(encode(self._handler.hello()))
            welcome, early = await self._await_welcome(connection)
            welcomed_at = time.monotonic()
            self._socket = connection
            self._last_error = None
            _log.info("welcomed by the gateway, session %s", clean(welcome.session_id, 80))
            self._live.update(
                session=_state("welcomed", session_id=clean(welcome.session_id, 80), since=int(time.time()))
            )
            await self._handler.welcomed(welcome)
            for frame in early:
                await self._handler.received(frame)
            await self._receive(connection)
        finally:
            self._socket = None
            if welcomed_at is not None and time.monotonic() - welcomed_at >= self._steady_seconds:
                self._backoff.reset()
            await connection.close()

    async def _await_welcome(self, connection: ClientConnection) -> tuple[Welcome, list[Section | Command | Ack]]:
        """The welcome, and what came before it: a gateway replays after hello, which may be before it welcomes."""
        early: list[Section | Command | Ack] = []
        kept_bytes = 0
        try:
            async with asyncio.timeout(self._welcome_seconds):
                async for text in connection:
                    try:
                        frame = decode(text)
                    except MalformedFrame:
                        continue
                    if isinstance(frame, Welcome):
                        return frame, early
                    if isinstance(frame, Section | Command | Ack):
                        kept_bytes += len(text)
                        # Once over, no later one either: an older section must not come to stand for a newer one.
                        if len(early) < _EARLY_FRAMES and kept_bytes <= _EARLY_BYTES:
                            early.append(frame)
                    if isinstance(frame, Bye):
                        raise Refused(clean(frame.reason, 200) or "goodbye without a reason")
        except TimeoutError as error:
            waited = f"{self._welcome_seconds:g} s"
            raise TimeoutError(f"the gateway took the connection and sent no welcome in {waited}") from error
        except ConnectionClosed as end:
            # Its close frame came first: whatever the code, the reason is the gateway's word (1008 is "not you").
            if end.rcvd is not None and end.rcvd.reason and end.rcvd_then_sent is not False:
                raise Refused(clean(end.rcvd.reason, 200)) from end
            raise
        closed = connection.close_reason
        raise Refused(clean(closed, 200)) if closed else ConnectionResetError("the gateway closed before its welcome")

    async def _receive(self, connection: ClientConnection) -> None:
        said = ""
        async for text in connection:
            try:
                frame = decode(text)
            except MalformedFrame as error:
                # One line for as long as it is the same, as for failures.
                _log.log(logging.DEBUG if f"{error}" == said else logging.WARNING, "a frame was passed over: %s", error)
                said = f"{error}"
                continue
            if isinstance(frame, Bye):
                _log.info("the gateway said goodbye: %s", clean(frame.reason, 200))
                return
            if isinstance(frame, Section | Command | Ack):
                await self._handler.received(frame)


def _words(failure: Exception) -> str:
    if isinstance(failure, InvalidProxy):
        # Its own words name the proxy, with the password that the environment has in it.
        return clean(f"the proxy that the environment names can't be used: {failure.msg}", 300)
    return clean(f"{failure}" or type(failure).__name__, 300)


def _http_answer(answer: InvalidStatus) -> str:
    response = answer.response
    body = clean(bytes(response.body or b"")[:200].decode("utf-8", "replace").strip(), 200)
    status = f"HTTP {response.status_code} {clean(response.reason_phrase, 80)}".strip()
    return f"{status}: {body}" if body else status


def _state(state: str, **more: object) -> dict[str, object]:
    return {"state": state, "id": more.pop("session_id", None), "since": None, "error": None, **more}
