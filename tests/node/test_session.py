"""The session with a gateway, against real ones: WebSocket over TLS on loopback (spec/gateway.md)."""

import asyncio
import json
import logging
import re
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trustme
from websockets.asyncio.server import ServerConnection
from websockets.typing import Subprotocol

from bcd.node.backoff import Backoff
from bcd.node.frames import Ack, Bye, Command, CommandStatus, Section, SectionStatus, Welcome
from bcd.node.protocol import FRAME_LIMIT_BYTES
from tests.node.gateways import (
    WELCOME,
    Gateway,
    Json,
    Script,
    eventually,
    gateway,
    node_config,
    say,
    turned_away,
    welcoming,
)
from tests.node.sessions import Handler, closed_port, session

SECTION = {"type": "section", "name": "daemon", "generation": 7, "spec": {"version": "1.4.1"}}


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
    node.handler.heard_nothing()
    assert there.heard[0] == there.heard[1]


async def test_what_comes_before_the_welcome_waits_for_it(authority: trustme.CA, tmp_path: Path) -> None:
    """A gateway may replay after hello and welcome after that: nothing is lost, and nothing is done before it."""

    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.hear(connection)
        command = {"type": "command", "id": "c1", "kind": "daemon.upgrade", "args": {}}
        early: list[Json | str | bytes] = [SECTION, command, "garbage", b"\xff\0", {"type": "new"}, {"type": "welcome"}]
        for frame in early:
            await say(connection, frame)
        await say(connection, WELCOME)
        await say(connection, {"type": "ack", "id": "c9"})
        await there.listen(connection)

    async with gateway(authority, script) as there, session(node_config(tmp_path, there.url(), authority)) as node:
        await eventually(lambda: len(node.handler.frames) == 3)
    assert len(node.handler.welcomes) == 1
    assert [type(frame).__name__ for frame in node.handler.frames] == ["Section", "Command", "Ack"]


async def test_what_comes_before_the_welcome_is_kept_up_to_a_bound(authority: trustme.CA, tmp_path: Path) -> None:
    """The attack: frames of megabytes before the welcome fill the node's memory. The welcome itself is still heard."""

    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.hear(connection)
        padding = "x" * (FRAME_LIMIT_BYTES // 2)
        for number in range(3):
            await say(connection, {"type": "command", "id": f"c{number}", "kind": "k", "args": padding})
        await say(connection, {"type": "command", "id": "c3", "kind": "k", "args": {}})
        await say(connection, WELCOME)
        await say(connection, {"type": "ack", "id": "c9"})
        await there.listen(connection)

    async with gateway(authority, script) as there, session(node_config(tmp_path, there.url(), authority)) as node:
        await eventually(lambda: node.handler.frames and isinstance(node.handler.frames[-1], Ack))
    kept = [frame.id for frame in node.handler.frames if isinstance(frame, Command)]
    assert kept == ["c0"]


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
        (
            200,
            "<html>Sign in to the hotel's network</html>",
            "HTTP 200 OK: <html>Sign in to the hotel's network</html>",
        ),
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
    assert len(node.handler.refusals) >= 2
    assert all(re.fullmatch(said, refusal) for refusal in node.handler.refusals)


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


# In the session ------------------------------------------------------------------------------------------------------


async def test_what_is_not_understood_in_a_session_is_passed_over(authority: trustme.CA, tmp_path: Path) -> None:
    """Garbage, unknown types, a second welcome: the session and what came in order are not touched."""
    garbage: list[str | bytes] = [
        "",
        "{",
        "[]",
        "null",
        '{"type":"ack"}',
        "[" * 50_000,
        b"\xff\xfe",
        json.dumps({"type": "quota", "n": 1}),
    ]

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
    node.handler.heard_nothing()


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
        while there.calls < 2 or len(there.heard[1]) < 2:
            await node.session.send(SectionStatus(name="daemon", observed_generation=1, state="READY"))
            await asyncio.sleep(0.001)
    assert [frames[0]["type"] for frames in there.heard] == ["hello", "hello"]
    assert len(node.handler.welcomes) == 2


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
    """Exponential backoff, counted anew after a session that lasted (here: any)."""

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
    pauses = [after - before for before, after in pairwise(there.at)]
    for pause, whole in zip(pauses, [0.02, 0.04, 0.08, 0.16, 0.02, 0.04], strict=False):
        assert pause >= whole
    assert pauses[4] < pauses[3]


async def test_a_gateway_that_welcomes_and_hangs_up_is_left_alone_for_longer_each_time(
    authority: trustme.CA, tmp_path: Path
) -> None:
    """A flapping gateway is not asked once a second by a whole fleet: only a session that lasted counts as a success."""

    async def script(there: Gateway, connection: ServerConnection) -> None:
        await there.welcome(connection)

    backoff = Backoff(first=0.02, most=1.0, jitter=lambda: 1.0)
    async with (
        gateway(authority, script) as there,
        session(node_config(tmp_path, there.url(), authority), backoff=backoff, steady_seconds=60) as node,
    ):
        await eventually(lambda: len(there.at) >= 6)
    assert len(node.handler.welcomes) >= 5
    pauses = [after - before for before, after in pairwise(there.at)]
    for pause, whole in zip(pauses, [0.02, 0.04, 0.08, 0.16, 0.32], strict=False):
        assert pause >= whole


async def test_a_release_that_waits_for_its_welcome_never_pauses_for_long(
    authority: trustme.CA, tmp_path: Path
) -> None:
    """A pause of a minute would be half of its time: while an update is pending none is longer than 5 s."""
    asked: list[float | None] = []

    class Watched(Backoff):
        def next(self, most: float | None = None) -> float:
            asked.append(most)
            return 0.01

    handler = Handler(pending=True)
    config = node_config(tmp_path, f"wss://localhost:{closed_port()}/", authority)
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
    config = node_config(tmp_path, f"wss://localhost:{closed_port()}/", authority)
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
            await eventually(lambda: there.calls and there.heard[0])
            began = time.monotonic()
            node.task.cancel()
            with suppress(asyncio.CancelledError):
                await node.task
            assert time.monotonic() - began < 1
