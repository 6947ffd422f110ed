"""The session with a gateway, against real ones: WebSocket over TLS on loopback (spec/gateway.md)."""

import asyncio
import json
import logging
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme
from websockets.asyncio.server import ServerConnection
from websockets.typing import Subprotocol

from bcd.core.config import NodeConfig
from bcd.node.backoff import Backoff
from bcd.node.frames import (
    FRAME_LIMIT_BYTES,
    Ack,
    Bye,
    Command,
    CommandStatus,
    Hello,
    Section,
    SectionStatus,
    Welcome,
)
from bcd.node.live import LiveState
from bcd.node.session import GatewaySession
from tests.core.release_server import Proxy
from tests.node.gateways import (
    WELCOME,
    Gateway,
    Script,
    eventually,
    gateway,
    node_config,
    say,
    turned_away,
    welcoming,
)

HELLO = Hello(protocol=1, node_id="n1", role="node", version="1.4.0", platform="linux-amd64", sections=[])
SECTION = {"type": "section", "name": "daemon", "generation": 7, "spec": {"version": "1.4.1"}}


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
    config: NodeConfig, *, handler: Handler | None = None, backoff: Backoff | None = None, welcome_seconds: float = 10.0
) -> AsyncIterator[Running]:
    """A session that tries again after some milliseconds."""
    told, live = handler or Handler(), Shown()
    made = GatewaySession(
        config, told, live, backoff=backoff or Backoff(first=0.01, most=0.05), welcome_seconds=welcome_seconds
    )
    task = asyncio.create_task(made.run())
    try:
        yield Running(made, told, live, task)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


# The hello and the welcome -------------------------------------------------------------------------------------------


async def test_hello_is_all_that_is_said_before_the_welcome(authority: trustme.CA, tmp_path: Path) -> None:
    """Statuses that are sent meanwhile go nowhere; after the welcome they go out."""
    may_welcome = asyncio.Event()

    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.hear(connection)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await there.hear(connection)
        await may_welcome.wait()
        await say(connection, WELCOME)
        await there.listen(connection)

    async with gateway(authority, script) as there, session(node_config(tmp_path, there.url(), authority)) as node:
        await eventually(lambda: there.calls and there.heard[0])
        await node.session.send(CommandStatus(id="too early", state="RUNNING"))
        await asyncio.sleep(0.15)
        may_welcome.set()
        await eventually(lambda: node.handler.welcomes)
        await node.session.send(SectionStatus(name="daemon", observed_generation=7, state="READY"))
        await eventually(lambda: len(there.heard[0]) > 1)
    hello, *rest = there.heard[0]
    assert hello == {
        "type": "hello",
        "protocol": 1,
        "node_id": "n1",
        "role": "node",
        "version": "1.4.0",
        "platform": "linux-amd64",
        "sections": [],
    }
    assert rest[0]["type"] == "section_status"
    assert node.handler.welcomes == [Welcome(session_id="s1", server_time=1_700_000_000)]
    assert node.handler.refusals == []


async def test_the_subprotocol_is_offered(authority: trustme.CA, tmp_path: Path) -> None:
    """`bcd.node.v1`, and no compression, which would let a small frame grow past every limit."""
    async with gateway(authority) as there, session(node_config(tmp_path, there.url(), authority)) as node:
        await eventually(lambda: node.handler.welcomes)
    headers = there.requests[0].headers
    assert headers["Sec-WebSocket-Protocol"] == "bcd.node.v1"
    assert "Sec-WebSocket-Extensions" not in headers
    assert there.requests[0].path == "/v1/node"


async def test_a_gateway_that_speaks_another_subprotocol_gets_no_hello(authority: trustme.CA, tmp_path: Path) -> None:
    """No session and no refusal."""
    async with (
        gateway(authority, subprotocols=[Subprotocol("bcd.node.v2")]) as there,
        session(node_config(tmp_path, there.url(), authority)) as node,
    ):
        await node.tries(2)
    assert there.calls == 0
    assert node.handler.welcomes == []


async def test_a_gateway_that_never_welcomes_is_left_after_a_while(authority: trustme.CA, tmp_path: Path) -> None:
    """Another try may reach another one. Silence is no refusal."""

    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.listen(connection)

    async with (
        gateway(authority, script) as there,
        session(node_config(tmp_path, there.url(), authority), welcome_seconds=0.05) as node,
    ):
        await node.tries(2)
    assert set(node.errors) == {"the gateway took the connection and sent no welcome in 0.05 s"}
    assert node.handler.refusals == node.handler.welcomes == []
    assert there.heard[0] == there.heard[1]


async def test_other_frames_before_the_welcome_are_passed_over(authority: trustme.CA, tmp_path: Path) -> None:
    """Nothing is done for a gateway that has not taken the node, and nothing that it says keeps it from doing so."""

    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.hear(connection)
        command = {"type": "command", "id": "c1", "kind": "daemon.upgrade", "args": {}}
        for early in (SECTION, command, "garbage", b"\xff\x00", {"type": "unheard-of"}, {"type": "welcome"}):
            await say(connection, early)
        await say(connection, WELCOME)
        await say(connection, {"type": "ack", "id": "c9"})
        await there.listen(connection)

    async with gateway(authority, script) as there, session(node_config(tmp_path, there.url(), authority)) as node:
        await eventually(lambda: node.handler.frames)
    assert len(node.handler.welcomes) == 1
    assert node.handler.frames == [Ack(id="c9")]


# A gateway that says no ----------------------------------------------------------------------------------------------


def _bye(reason: str) -> Script:
    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.hear(connection)
        await say(connection, {"type": "bye", "reason": reason})
        await there.listen(connection)

    return script


def _close(code: int, reason: str) -> Script:
    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.hear(connection)
        await connection.close(code, reason)

    return script


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (_bye("not enrolled"), "not enrolled"),
        (_bye(""), "goodbye without a reason"),
        (_bye("\x1b[2Jno"), "\\x1b[2Jno"),
        (_close(1000, "no such node"), "no such node"),
        (_close(1001, "going for repairs"), "going for repairs"),
        (_close(1008, "this node is blocked"), "this node is blocked"),
        (_close(4003, "wrong fleet"), "wrong fleet"),
    ],
    ids=["bye", "bye-without-a-reason", "bye-that-writes-a-terminal", "closed", "away", "policy", "private-code"],
)
async def test_a_no_in_place_of_the_welcome_is_told_with_what_was_said(
    authority: trustme.CA, tmp_path: Path, script: Script, said: str
) -> None:
    """It is no verdict, so the node comes again, but if the deadline passes this is the reason to show."""
    async with gateway(authority, script) as there, session(node_config(tmp_path, there.url(), authority)) as node:
        await node.tries(2)
        assert there.calls >= 2
    assert set(node.handler.refusals) == {said}
    assert node.handler.welcomes == []
    assert set(node.errors) == {f"the gateway refused: {said}"}


@pytest.mark.parametrize(
    ("status", "text", "said"),
    [
        (429, "busy, come back later\n", "HTTP 429 Too Many Requests: busy, come back later"),
        (503, "", "HTTP 503 Service Unavailable"),
        (403, "\x1b]0;owned\x07" + "x" * 1000, r"HTTP 403 Forbidden: \\x1b]0;owned\\x07x{100,200}…?"),
        (200, "<html>Sign in to the hotel's network</html>", "HTTP 200 OK: <html>Sign in to the hotel's network</html>"),
    ],
    ids=["busy", "unavailable", "a-text-that-writes-a-terminal", "no-websocket-at-all"],
)
async def test_a_handshake_that_is_turned_away_is_told_with_what_was_said(
    authority: trustme.CA, tmp_path: Path, status: int, text: str, said: str
) -> None:
    """A trusted server answered, and not with a session."""
    async with (
        gateway(authority, handshake=turned_away(status, text)) as there,
        session(node_config(tmp_path, there.url(), authority)) as node,
    ):
        await node.tries(2)
    assert there.calls == 0
    assert all(re.fullmatch(said.replace("(", r"\("), refusal) for refusal in node.handler.refusals)
    assert len(node.handler.refusals) >= 2


async def test_a_gateway_that_is_busy_for_a_while_is_asked_until_it_welcomes(
    authority: trustme.CA, tmp_path: Path
) -> None:
    """Field report 13: a 429 is no failure of what runs here."""

    def handshake(there: Gateway, connection: ServerConnection) -> Any:
        return None if len(there.requests) > 4 else turned_away(429, "busy")(there, connection)

    async with (
        gateway(authority, handshake=handshake) as there,
        session(node_config(tmp_path, there.url(), authority)) as node,
    ):
        await eventually(lambda: node.handler.welcomes)
    assert node.handler.refusals == ["HTTP 429 Too Many Requests: busy"] * 4


# No gateway ----------------------------------------------------------------------------------------------------------


async def _never_trusted(node: Running, there: Gateway) -> None:
    await node.tries(2)
    assert there.requests == []
    assert node.handler.welcomes == node.handler.refusals == []


async def test_a_gateway_of_an_unknown_authority_gets_no_hello(tmp_path: Path, authority: trustme.CA) -> None:
    """Whoever stands between node and gateway is neither welcome nor refusal."""
    async with (
        gateway(trustme.CA()) as there,
        session(node_config(tmp_path, there.url(), authority)) as node,
    ):
        await _never_trusted(node, there)
    assert "certificate verify failed" in node.errors[0] or "self" in node.errors[0]


async def test_a_gateway_that_only_a_ca_file_would_trust_gets_no_hello_without_it(
    tmp_path: Path, authority: trustme.CA
) -> None:
    """Without `ca_file` the system's own trust alone decides."""
    async with gateway(authority) as there, session(node_config(tmp_path, there.url(), None)) as node:
        await _never_trusted(node, there)


async def test_a_gateway_with_a_certificate_for_another_name_gets_no_hello(
    tmp_path: Path, authority: trustme.CA
) -> None:
    """A certificate of the right authority is not enough."""
    async with (
        gateway(authority, host="elsewhere.example.com") as there,
        session(node_config(tmp_path, there.url(), authority)) as node,
    ):
        await _never_trusted(node, there)
    assert "localhost" in node.errors[0]


async def test_an_expired_gateway_gets_no_hello(tmp_path: Path) -> None:
    """TLS says so."""
    expired = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    from datetime import UTC, datetime, timedelta

    yesterday = datetime.now(UTC) - timedelta(days=1)
    expired.issue_cert("localhost", not_before=yesterday - timedelta(days=1), not_after=yesterday).configure_cert(tls)

    async def nobody(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(nobody, "127.0.0.1", 0, ssl=tls)
    url = f"wss://localhost:{server.sockets[0].getsockname()[1]}/"
    async with server, session(node_config(tmp_path, url, expired)) as node:
        await node.tries(2)
    assert "expired" in node.errors[0]
    assert node.handler.refusals == []


@asynccontextmanager
async def port_that(answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]) -> AsyncIterator[int]:
    """Something on a port that is no gateway."""

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await answer(reader, writer)
        writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _hangs_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def _talks_plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(100)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()


@pytest.mark.parametrize("answer", [_hangs_up, _talks_plain], ids=["hangs-up", "speaks-no-tls"])
async def test_something_else_on_the_port_is_neither_welcome_nor_refusal(
    tmp_path: Path, authority: trustme.CA, answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]
) -> None:
    """What it says without TLS is nobody's word."""
    async with (
        port_that(answer) as port,
        session(node_config(tmp_path, f"wss://localhost:{port}/", authority)) as node,
    ):
        await node.tries(2)
    assert node.handler.welcomes == node.handler.refusals == []
    assert all(node.errors)


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert isinstance(port, int)
        return port


@pytest.mark.parametrize(
    "url",
    ["wss://localhost:{closed}/", "wss://no-such-host.invalid/", "wss://", "wss://localhost:99999999/", "wss://[::1/"],
    ids=["nobody-listens", "no-such-name", "no-host", "no-such-port", "no-url"],
)
async def test_an_address_without_a_gateway_is_tried_for_ever(tmp_path: Path, authority: trustme.CA, url: str) -> None:
    """An error with a sentence, never the end of the agent."""
    config = node_config(tmp_path, url.format(closed=_closed_port()), authority)
    async with session(config) as node:
        await node.tries(2)
    assert all(node.errors)
    assert node.handler.refusals == []


@pytest.mark.parametrize("missing", ["ca_file", "cert_file"])
async def test_a_certificate_that_is_not_there_is_tried_for_ever(
    tmp_path: Path, authority: trustme.CA, missing: str
) -> None:
    """It may come back with the next run of whatever places it; nobody is asked without it."""
    async with gateway(authority) as there:
        config = node_config(tmp_path, there.url(), authority)._replace(**{missing: str(tmp_path / "none")})
        async with session(config) as node:
            await _never_trusted(node, there)


async def test_without_a_gateway_it_says_so_once_and_waits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No busy loop and no error."""
    with caplog.at_level(logging.INFO):
        async with session(node_config(tmp_path, None, None)) as node:
            await asyncio.sleep(0.1)
            assert not node.task.done()
    assert len(caplog.records) == 1
    assert node.live.sessions[-1]["error"] == "no gateway is configured"


async def test_a_clear_text_gateway_is_spoken_to_where_it_was_let_through(tmp_path: Path) -> None:
    """Who may have one is decided before, by bcd.node.main."""
    async with gateway(None) as there, session(node_config(tmp_path, there.url(), None)) as node:
        await eventually(lambda: node.handler.welcomes)


async def test_a_gateway_that_redirects_to_clear_text_is_not_followed(authority: trustme.CA, tmp_path: Path) -> None:
    """Nobody in the middle gets to welcome the node."""
    async with gateway(None) as plain:

        def handshake(there: Gateway, connection: ServerConnection) -> Any:
            response = connection.respond(302, "elsewhere")  # type: ignore[arg-type]  # an int is a status
            response.headers["Location"] = plain.url()
            return response

        async with (
            gateway(authority, handshake=handshake) as there,
            session(node_config(tmp_path, there.url(), authority)) as node,
        ):
            await node.tries(2)
        assert plain.requests == []
    assert node.handler.welcomes == []


# Proxies (field report 41) -------------------------------------------------------------------------------------------


async def test_the_environments_proxy_leads_to_the_gateway(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tunnels, and TLS is with the gateway behind it."""
    with Proxy() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        async with gateway(authority) as there, session(node_config(tmp_path, there.url(), authority)) as node:
            await eventually(lambda: node.handler.welcomes)
        assert proxy.heads[0].line == f"CONNECT localhost:{there.port} HTTP/1.1"


async def test_a_proxy_that_refuses_is_no_gateway_that_refused(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error tells that it was the proxy."""
    with Proxy(refuse="407 Proxy Authentication Required") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        async with session(node_config(tmp_path, "wss://localhost:1/", authority)) as node:
            await node.tries(2)
    assert "proxy" in node.errors[0]
    assert node.handler.refusals == []


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "gopher://127.0.0.1:1", "http://user@127.0.0.1:1", "nonsense"])
async def test_a_proxy_that_cannot_be_used_does_not_end_the_agent(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """An agent that ends is started again, and five times of that roll back a good release."""
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    async with session(node_config(tmp_path, "wss://localhost:1/", authority)) as node:
        await node.tries(2)
    assert all(node.errors)


# In the session ------------------------------------------------------------------------------------------------------


async def test_what_is_not_understood_in_a_session_is_passed_over(authority: trustme.CA, tmp_path: Path) -> None:
    """Garbage, unknown types, a second welcome: the session and what came in order are not touched."""
    garbage = ["", "{", "[]", "null", '{"type":"ack"}', "[" * 50_000, b"\xff\xfe", json.dumps({"type": "quota", "n": 1})]

    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.welcome(connection)
        await say(connection, {**SECTION, "since_v9": True})
        for frame in garbage:
            await say(connection, frame)
        await say(connection, WELCOME)
        await say(connection, {"type": "command", "id": "c1", "kind": "daemon.upgrade", "args": {}})
        await say(connection, {"type": "ack", "id": "c0"})
        await there.listen(connection)

    async with gateway(authority, script) as there, session(node_config(tmp_path, there.url(), authority)) as node:
        await eventually(lambda: len(node.handler.frames) == 3)
    assert node.handler.frames == [
        Section(name="daemon", generation=7, spec={"version": "1.4.1"}),
        Command(id="c1", kind="daemon.upgrade", args={}),
        Ack(id="c0"),
    ]
    assert len(node.handler.welcomes) == there.calls == 1


async def test_a_frame_of_4_mib_is_read_and_a_larger_one_ends_the_session_alone(
    authority: trustme.CA, tmp_path: Path
) -> None:
    """The agent comes again, and nothing of the large frame is acted on."""
    sizes = [FRAME_LIMIT_BYTES, FRAME_LIMIT_BYTES + 1]
    empty = len(json.dumps({**SECTION, "spec": ""}))

    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.welcome(connection)
        if there.calls == 1:
            for size in sizes:
                await say(connection, {**SECTION, "spec": "x" * (size - empty)})
        await there.listen(connection)

    async with gateway(authority, script) as there, session(node_config(tmp_path, there.url(), authority)) as node:
        await eventually(lambda: len(node.handler.welcomes) == 2)
    (frame,) = node.handler.frames
    assert isinstance(frame, Section)
    assert frame.spec == "x" * (FRAME_LIMIT_BYTES - empty)
    assert node.handler.refusals == []


async def test_a_large_frame_before_the_welcome_is_no_refusal(authority: trustme.CA, tmp_path: Path) -> None:
    """It was the node that closed."""

    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.hear(connection)
        await connection.send("x" * (FRAME_LIMIT_BYTES + 1))
        await there.listen(connection)

    async with gateway(authority, script) as there, session(node_config(tmp_path, there.url(), authority)) as node:
        await node.tries(1)
    assert node.handler.refusals == node.handler.welcomes == []


async def test_a_bye_ends_the_session_and_the_node_comes_again(authority: trustme.CA, tmp_path: Path) -> None:
    """A gateway that is to be restarted says goodbye; that is no refusal, it had welcomed."""

    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.welcome(connection)
        if there.calls == 1:
            await say(connection, {"type": "bye", "reason": "restarting"})
        await there.listen(connection)

    async with gateway(authority, script) as there, session(node_config(tmp_path, there.url(), authority)) as node:
        await eventually(lambda: len(node.handler.welcomes) == 2)
    assert node.handler.refusals == []


async def test_a_session_that_is_cut_is_made_anew_and_says_hello_first(authority: trustme.CA, tmp_path: Path) -> None:
    """A status that is sent into a dead session is no error."""

    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.welcome(connection)
        if there.calls == 1:
            connection.transport.abort()
        await there.listen(connection)

    async with gateway(authority, script) as there, session(node_config(tmp_path, there.url(), authority)) as node:
        while len(node.handler.welcomes) < 2:
            await node.session.send(SectionStatus(name="daemon", observed_generation=1, state="READY"))
            await asyncio.sleep(0.001)
        await eventually(lambda: len(there.heard[1]) > 1)
    assert [frames[0]["type"] for frames in there.heard] == ["hello", "hello"]


async def test_goodbye_is_said_with_its_reason(authority: trustme.CA, tmp_path: Path) -> None:
    """And after it the session is not made anew."""
    async with gateway(authority) as there, session(node_config(tmp_path, there.url(), authority)) as node:
        await eventually(lambda: node.handler.welcomes)
        await node.session.close("bcd 1.4.0 ends")
        async with asyncio.timeout(5):
            await node.task
        await node.session.send(Bye(reason="to nobody"))
    assert there.heard[0][1:] == [{"type": "bye", "reason": "bcd 1.4.0 ends"}]
    assert there.calls == 1


async def test_what_is_shown_follows_the_session(authority: trustme.CA, tmp_path: Path) -> None:
    """Connecting, welcomed with id and time, disconnected with why and when it is tried again."""

    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.hear(connection)
        await say(connection, {**WELCOME, "session_id": "\x1b[2J" + "s" * 200})
        connection.transport.abort()

    began = int(time.time())
    async with gateway(authority, script) as there, session(node_config(tmp_path, there.url(), authority)) as node:
        await node.tries(1)
    connecting, welcomed, disconnected = node.live.sessions[:3]
    assert connecting == {"state": "connecting", "id": None, "since": None, "error": None}
    assert welcomed["state"] == "welcomed"
    assert welcomed["id"].startswith("\\x1b[2Jsss")
    assert len(welcomed["id"]) < 100
    assert began <= welcomed["since"] <= time.time()
    assert disconnected["error"]
    assert began <= disconnected["retry_at"] <= time.time() + 1


# Trying again --------------------------------------------------------------------------------------------------------


async def test_the_pauses_between_tries_grow_and_a_welcome_makes_them_short_again(
    authority: trustme.CA, tmp_path: Path
) -> None:
    """Exponential backoff, counted anew after each welcome."""

    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.welcome(connection)

    def handshake(there: Gateway, connection: ServerConnection) -> Any:
        return None if len(there.requests) == 5 else turned_away(503, "")(there, connection)

    backoff = Backoff(first=0.02, most=1.0, jitter=lambda: 1.0)
    async with (
        gateway(authority, script, handshake=handshake) as there,
        session(node_config(tmp_path, there.url(), authority), backoff=backoff) as node,
    ):
        await eventually(lambda: len(there.at) >= 7)
    assert len(node.handler.welcomes) == 1
    pauses = [after - before for before, after in zip(there.at, there.at[1:], strict=False)]
    for pause, whole in zip(pauses, [0.02, 0.04, 0.08, 0.16, 0.02, 0.04], strict=False):
        assert pause >= whole
    assert pauses[4] < pauses[3]


async def test_a_release_that_waits_for_its_welcome_never_pauses_for_long(authority: trustme.CA, tmp_path: Path) -> None:
    """A pause of a minute would be half of its time: while an update is pending none is longer than 5 s."""
    asked: list[float | None] = []

    class Watched(Backoff):
        def next(self, most: float | None = None) -> float:
            asked.append(most)
            return 0.01

    handler = Handler(pending=True)
    config = node_config(tmp_path, f"wss://localhost:{_closed_port()}/", authority)
    async with session(config, handler=handler, backoff=Watched()) as node:
        await node.tries(2)
        handler.pending = False
        await node.tries(4)
    assert asked[:2] == [5.0, 5.0]
    assert asked[-1] is None


async def test_the_same_failure_again_and_again_is_one_line(
    authority: trustme.CA, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A gateway that is gone for a week does not fill the log; another failure is told."""
    config = node_config(tmp_path, f"wss://localhost:{_closed_port()}/", authority)
    with caplog.at_level(logging.INFO):
        async with session(config, backoff=Backoff(first=0.001, most=0.001)) as node:
            await node.tries(50)
    assert len([record for record in caplog.records if record.name.startswith("bcd")]) == 1


async def test_garbage_again_and_again_is_one_line(
    authority: trustme.CA, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor does a gateway that has gone mad."""

    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.welcome(connection)
        for _ in range(500):
            await say(connection, "{garbage")
        await say(connection, {"type": "ack", "id": "c1"})
        await there.listen(connection)

    with caplog.at_level(logging.WARNING):
        async with gateway(authority, script) as there, session(node_config(tmp_path, there.url(), authority)) as node:
            await eventually(lambda: node.handler.frames)
    assert len([record for record in caplog.records if record.name.startswith("bcd")]) == 1


async def test_cancelling_ends_it_at_once_whatever_it_waits_for(authority: trustme.CA, tmp_path: Path) -> None:
    """In a welcomed session, and with a gateway that keeps silent."""

    async def silent(there: Gateway, connection: ServerConnection) -> None:
        await there.listen(connection)

    for script in (welcoming, silent):
        async with gateway(authority, script) as there, session(node_config(tmp_path, there.url(), authority)) as node:
            await eventually(lambda: there.calls and there.heard[0])  # noqa: B023  # awaited in this round
            began = time.monotonic()
            node.task.cancel()
            with suppress(asyncio.CancelledError):
                await node.task
            assert time.monotonic() - began < 1
