"""Whom a session believes: real gateways, impostors, ports without one, and proxies between (spec/gateway.md)."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import trustme
from websockets.asyncio.server import ServerConnection

from tests.core.release_server import Proxy
from tests.node.gateways import Gateway, eventually, gateway, node_config
from tests.node.sessions import Running, closed_port, session


async def _never_trusted(node: Running, there: Gateway) -> None:
    await node.tries(2)
    assert there.requests == []
    node.handler.heard_nothing()


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


async def test_a_gateway_that_the_system_trusts_needs_no_ca_file(
    tmp_path: Path, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine's own store is enough."""
    authority.cert_pem.write_to_path(str(tmp_path / "store.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "store.pem"))
    async with gateway(authority) as there, session(node_config(tmp_path, there.url(), None)) as node:
        await eventually(lambda: node.handler.welcomes)


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
    node.handler.heard_nothing()
    assert all(node.errors)


@pytest.mark.parametrize(
    "url",
    ["wss://localhost:{closed}/", "wss://no-such-host.invalid/", "wss://", "wss://localhost:99999999/", "wss://[::1/"],
    ids=["nobody-listens", "no-such-name", "no-host", "no-such-port", "no-url"],
)
async def test_an_address_without_a_gateway_is_tried_for_ever(tmp_path: Path, authority: trustme.CA, url: str) -> None:
    """An error with a sentence, never the end of the agent."""
    config = node_config(tmp_path, url.format(closed=closed_port()), authority)
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
        none = str(tmp_path / "none")
        config = node_config(tmp_path, there.url(), authority)
        config = config._replace(ca_file=none) if missing == "ca_file" else config._replace(cert_file=none)
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
            response = connection.respond(HTTPStatus.FOUND, "elsewhere")
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


@pytest.mark.parametrize(
    "proxy", ["socks5://127.0.0.1:1", "gopher://127.0.0.1:1", "http://user@127.0.0.1:1", "nonsense"]
)
async def test_a_proxy_that_cannot_be_used_does_not_end_the_agent(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """An agent that ends is started again, and five times of that roll back a good release."""
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    async with session(node_config(tmp_path, "wss://localhost:1/", authority)) as node:
        await node.tries(2)
    assert all(node.errors)
