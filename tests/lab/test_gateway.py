"""The gateway keeps to spec/gateway.md, and behaves otherwise only where it is told to."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus

from bcd.lab.behaviour import CUT, SILENT, WELCOME, busy, refuse
from bcd.lab.gateway import SUBPROTOCOL, Gateway, LabClosed
from bcd.lab.pki import Authority, Credentials

NODE = "a-node"
SPEC = {"version": "1.4.1"}


class Peer:
    """A node by hand."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def say(self, **body: object) -> None:
        await self.socket.send(json.dumps(body))

    async def hear(self) -> dict[str, Any]:
        heard = json.loads(await self.socket.recv())
        assert isinstance(heard, dict)
        return heard

    async def hello(self, version: str = "1.4.0", node_id: str = NODE) -> None:
        await self.say(type="hello", protocol=1, node_id=node_id, version=version)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def credentials(authority: Authority) -> Credentials:
    return authority.for_node(NODE)


@pytest.fixture
def gateway(authority: Authority) -> Iterator[Gateway]:
    made = Gateway(authority.server_context(asks_for_certificate=True))
    yield made
    made.close()


def context(ca: Path, credentials: Credentials | None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(ca))
    if credentials is not None:
        made.load_cert_chain(credentials.certificate, credentials.key)
    return made


@pytest.fixture
async def peers(gateway: Gateway, authority: Authority, credentials: Credentials) -> AsyncIterator["Connect"]:
    made = Connect(gateway.url, context(authority.certificate, credentials))
    yield made
    for peer in made.peers:
        await peer.socket.close()


class Connect:
    """Makes peers."""

    def __init__(self, url: str, tls: ssl.SSLContext) -> None:
        self.url = url
        self.tls = tls
        self.peers: list[Peer] = []

    async def __call__(self) -> Peer:
        self.peers.append(
            Peer(await connect(self.url, ssl=self.tls, subprotocols=[SUBPROTOCOL], proxy=None, open_timeout=10))
        )
        return self.peers[-1]


async def test_a_hello_is_welcomed_and_everything_is_replayed(gateway: Gateway, peers: Connect) -> None:
    generation = gateway.push_section(NODE, SPEC)
    command = gateway.push_command(NODE, SPEC)
    for _ in range(2):
        peer = await peers()
        assert peer.socket.subprotocol == SUBPROTOCOL
        await peer.hello()
        assert (await peer.hear())["type"] == "welcome"
        assert await peer.hear() == {"type": "section", "name": "daemon", "generation": generation, "spec": SPEC}
        assert await peer.hear() == {"type": "command", "id": command, "kind": "daemon.upgrade", "args": SPEC}


async def test_a_final_status_is_acked_and_its_command_not_replayed(gateway: Gateway, peers: Connect) -> None:
    command = gateway.push_command(NODE, SPEC)
    peer = await peers()
    await peer.hello()
    assert [(await peer.hear())["type"] for _ in range(2)] == ["welcome", "command"]
    await peer.say(type="command_status", id=command, state="RUNNING")
    await peer.say(type="command_status", id=command, state="SUCCEEDED")
    assert await peer.hear() == {"type": "ack", "id": command}
    again = await peers()
    await again.hello()
    assert (await again.hear())["type"] == "welcome"
    later = gateway.push_command(NODE, SPEC)
    assert (await again.hear())["id"] == later


async def test_without_acks_a_command_stays_unfinished(gateway: Gateway, peers: Connect) -> None:
    with gateway.page(NODE) as page:
        page.acks = False
    command = gateway.push_command(NODE, SPEC)
    peer = await peers()
    await peer.hello()
    await peer.say(type="command_status", id=command, state="SUCCEEDED")
    assert gateway.wait(NODE, lambda page: bool(page.answers(command)), 5)
    again = await peers()
    await again.hello()
    assert [(await again.hear())["type"] for _ in range(2)] == ["welcome", "command"]


async def test_nobody_comes_in_without_a_certificate(gateway: Gateway, authority: Authority) -> None:
    with pytest.raises((ssl.SSLError, OSError, ConnectionClosed, InvalidMessage)):  # by TLS version and timing
        async with connect(gateway.url, ssl=context(authority.certificate, None), proxy=None) as socket:
            await socket.recv()


async def test_a_hello_in_another_name_is_not_heard(gateway: Gateway, peers: Connect) -> None:
    peer = await peers()
    await peer.hello(node_id="another")
    with pytest.raises(ConnectionClosed):
        await peer.hear()
    with gateway.page(NODE) as page:
        assert page.sessions == []


async def test_busy_is_an_http_status(gateway: Gateway, peers: Connect) -> None:
    gateway.behave(NODE, busy(429))
    with pytest.raises(InvalidStatus) as answer:
        await peers()
    assert answer.value.response.status_code == 429
    with gateway.page(NODE) as page:
        assert page.turned_away == 1


async def test_cut_is_no_answer(gateway: Gateway, peers: Connect) -> None:
    gateway.behave(NODE, CUT)
    with pytest.raises((OSError, InvalidMessage, EOFError)):
        await peers()


async def test_one_version_can_be_refused_alone(gateway: Gateway, peers: Connect) -> None:
    gateway.behave(NODE, refuse("not you"), version="1.4.1")
    new, old = await peers(), await peers()
    await new.hello("1.4.1")
    assert await new.hear() == {"type": "bye", "reason": "not you"}
    await old.hello("1.4.0")
    assert (await old.hear())["type"] == "welcome"


async def test_a_node_held_in_silence_is_welcomed_when_that_is_wanted(gateway: Gateway, peers: Connect) -> None:
    gateway.behave(NODE, SILENT)
    peer = await peers()
    await peer.hello()
    assert gateway.wait(NODE, lambda page: bool(page.sessions), 5)
    assert not gateway.wait(NODE, lambda page: page.welcomed() is not None, 0.5)
    gateway.behave(NODE, WELCOME)
    assert (await peer.hear())["type"] == "welcome"


async def test_the_time_without_a_session_is_from_its_end_to_the_next_welcome(gateway: Gateway, peers: Connect) -> None:
    first = await peers()
    await first.hello()
    assert gateway.wait(NODE, lambda page: page.welcomed() is not None, 5)
    with gateway.page(NODE) as page:
        assert page.longest_gap() is None
    gateway.drop_session(NODE)
    assert gateway.wait(NODE, lambda page: page.welcomed() is None, 5)
    await asyncio.sleep(0.3)
    second = await peers()
    await second.hello()
    assert gateway.wait(NODE, lambda page: page.welcomed() is not None, 5)
    gap = page.longest_gap()
    assert gap is not None
    assert 0.3 < gap < 10.0


def test_what_comes_before_the_hello_cannot_be_by_version(gateway: Gateway) -> None:
    with pytest.raises(ValueError, match="version"):
        gateway.behave(NODE, busy(503), version="1.4.1")


def test_a_closing_gateway_wakes_whoever_waits(authority: Authority) -> None:
    gateway = Gateway(authority.server_context(asks_for_certificate=True))
    gateway.close()
    with pytest.raises(LabClosed):
        gateway.wait(NODE, lambda _: False, 60)
