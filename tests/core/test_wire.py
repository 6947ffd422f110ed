"""Who is spoken to and through what: certificates, proxies, and servers that are not there."""

import contextlib
import datetime as dt
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bcd.core.errors import HostError
from tests.core.release_server import (
    PATH,
    RELEASE,
    Listener,
    Proxy,
    ReleaseServer,
    World,
    at_most,
    hanging_after,
    world_in,
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A downloader with a good server."""
    with world_in(tmp_path) as made:
        yield made


# Trust ---------------------------------------------------------------------------------------------------------------


def test_a_certificate_of_an_unknown_authority_is_refused(world: World) -> None:
    """No request was made, and the hint names the setting."""
    error = world.refused(trusting=False)
    assert "certificate is not trusted" in error.message
    assert "ca_file" in error.hint
    assert world.server.requests == []
    assert world.on_disk == {}


def test_an_authority_of_the_systems_store_is_trusted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file of the operator's."""
    monkeypatch.setenv("SSL_CERT_FILE", str(world.ca_file))
    assert world.fetch(trusting=False).read_bytes() == RELEASE


def test_an_expired_certificate_is_refused(world: World) -> None:
    """The error says that it has expired."""
    past = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    with ReleaseServer(world.authority.issue_cert("localhost", not_before=past, not_after=past)) as server:
        error = world.refused(world.wanted(server.url()))
    assert "expired" in error.message
    assert world.on_disk == {}


def test_a_certificate_of_another_host_is_refused(world: World) -> None:
    """The error says which host it should have been for."""
    with ReleaseServer(world.authority.issue_cert("example.com")) as server:
        error = world.refused(world.wanted(server.url()))
    assert "localhost" in error.message
    assert "certificate is not trusted" in error.message
    assert server.requests == []


def test_a_server_that_speaks_no_tls_is_refused(world: World) -> None:
    """Nothing is sent to it in clear."""

    class ClearText(Listener):
        heard = b""

        def serve(self, connection: socket.socket) -> None:
            self.heard = connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with ClearText() as clear:
        assert "TLS" in world.refused(world.wanted(f"https://localhost:{clear.port}{PATH}")).message
        assert PATH.encode() not in clear.heard


@pytest.mark.parametrize("content", [None, b"", b"no certificate"], ids=["missing", "empty", "garbage"])
def test_a_ca_file_that_cannot_be_used_is_named(world: World, content: bytes | None) -> None:
    """It is this host's fault, and no request was made."""
    world.ca_file.unlink()
    if content is not None:
        world.ca_file.write_bytes(content)
    with pytest.raises(HostError, match=r"ca\.pem") as caught:
        world.fetch()
    assert caught.value.code == "io-error"
    assert world.server.requests == []


# Servers that are not there, or not all there ------------------------------------------------------------------------


def test_a_name_that_does_not_resolve_is_said(world: World) -> None:
    """The name is in the error."""
    error = world.refused(world.wanted("https://nowhere.invalid/bcd"))
    assert "nowhere.invalid" in error.message
    assert "does not resolve" in error.message


def test_a_refused_connection_is_said(world: World) -> None:
    """With where it was tried."""
    error = world.refused(world.wanted("https://127.0.0.1:1/bcd"))
    assert "https://127.0.0.1:1/bcd: Connection refused" in error.message


@pytest.fixture
def deaf() -> Iterator[str]:
    """The URL of a server that completes no connection: its queue is full."""
    with socket.socket() as full, contextlib.ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        yield f"https://127.0.0.1:{full.getsockname()[1]}/bcd"


def test_a_server_that_never_accepts_is_given_up(world: World, deaf: str) -> None:
    """Connecting is bounded by its own limit."""
    with at_most(3):
        error = world.refused(world.wanted(deaf), connect_seconds=0.4)
    assert "no connection within 0.4 s" in error.message


def test_connecting_can_be_called_off(world: World, deaf: str) -> None:
    """At once, not when its limit is over."""
    timer = threading.Timer(0.2, world.cancelled.set)
    timer.start()
    with at_most(2):
        error = world.refused(world.wanted(deaf), connect_seconds=20, idle_seconds=20)
    timer.join()
    assert "the download was stopped" in error.message


def test_all_addresses_of_a_host_share_its_time(world: World, deaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead address neither hides a live one nor makes the wait longer."""
    real = socket.getaddrinfo
    dead = real("127.0.0.1", int(deaf.rsplit(":", maxsplit=1)[-1].split("/", maxsplit=1)[0]), type=socket.SOCK_STREAM)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **named: dead * 3 + real(*args, **named))
    with at_most(3):
        world.fetch(connect_seconds=1)
    assert world.final.read_bytes() == RELEASE
    world.final.unlink()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: dead * 20)
    with at_most(3):
        assert "no connection within 1 s" in world.refused(connect_seconds=1).message


def test_a_name_that_can_be_none_is_said(world: World) -> None:
    """A label of 64 characters ends in no foreign exception."""
    assert "a" * 64 in world.refused(world.wanted(f"https://{'a' * 64}.example/bcd")).message


def test_a_server_that_never_begins_tls_is_given_up(world: World) -> None:
    """The handshake counts as waiting for an answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent, at_most(3):
        error = world.refused(world.wanted(f"https://127.0.0.1:{silent.getsockname()[1]}/bcd"), idle_seconds=0.4)
    assert "no answer within 0.4 s" in error.message


# Proxies -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_proxy_in_the_environment_is_used(world: World, name: str, scheme: str) -> None:
    """By CONNECT, so that it sees no byte of the file, with its password where it has one (field report 41)."""
    with Proxy() as proxy:
        world.fetch(environ={name: f"{scheme}u%40x:hunter2@127.0.0.1:{proxy.port}"})
        assert proxy.heads[0].line.startswith(f"CONNECT localhost:{world.server.port} ")
        assert proxy.heads[0].headers["proxy-authorization"] == "Basic dUB4Omh1bnRlcjI="
    assert world.final.read_bytes() == RELEASE
    assert "proxy-authorization" not in world.server.requests[0].headers


@pytest.mark.parametrize(
    "environ",
    [
        {"no_proxy": "localhost"},
        {"NO_PROXY": "example.com, localhost"},
        {"NO_PROXY": "*"},
        {"https_proxy": ""},
        {"HTTPS_PROXY": "", "ALL_PROXY": "http://127.0.0.1:1"},
    ],
)
def test_an_exception_from_the_proxy_is_honoured(world: World, environ: dict[str, str]) -> None:
    """The server is asked directly (field report 41)."""
    world.fetch(environ={"HTTPS_PROXY": "http://127.0.0.1:1"} | environ)
    assert world.final.read_bytes() == RELEASE


def test_a_proxy_that_refuses_is_named_without_its_password(world: World) -> None:
    """Not just "timed out" (field report 41)."""
    with Proxy(refuse="403 Forbidden \x1b[2J") as proxy:
        error = world.refused(environ={"https_proxy": f"http://user:hunter2@127.0.0.1:{proxy.port}"})
        assert f"through the proxy http://127.0.0.1:{proxy.port}" in error.message
    assert "403 Forbidden" in error.message
    assert error.message.isprintable()
    assert "hunter2" not in error.message + error.hint
    assert "proxy" in error.hint
    assert world.server.requests == []
    assert world.on_disk == {}


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:1", "http://nowhere.invalid:3128"])
def test_a_proxy_that_is_not_there_is_named(world: World, proxy: str) -> None:
    """The server's name alone would send people to the wrong machine."""
    assert f"through the proxy {proxy}" in world.refused(environ={"ALL_PROXY": proxy}).message


def test_a_proxy_that_never_answers_is_given_up_and_named(world: World) -> None:
    """The wait for a tunnel counts as waiting for an answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent, at_most(3):
        proxy = f"http://127.0.0.1:{silent.getsockname()[1]}"
        error = world.refused(environ={"https_proxy": proxy}, idle_seconds=0.4)
    assert f"through the proxy {proxy}: no answer within 0.4 s" in error.message


@pytest.mark.parametrize(
    "proxy", ["socks5://u:hunter2@127.0.0.1:1", "http://u:hunt/er2@127.0.0.1:1", "http://[", "x://"]
)
def test_a_proxy_that_cannot_be_spoken_to_is_said(world: World, proxy: str) -> None:
    """Nothing goes around it, and no part of its password is shown."""
    error = world.refused(environ={"https_proxy": proxy})
    assert "proxy in the environment" in error.message
    assert "hunt" not in error.message
    assert world.server.requests == []


def test_a_clear_text_download_goes_through_its_own_proxy(world: World) -> None:
    """`http_proxy` is for http; the whole URL is asked of it."""
    with ReleaseServer(None) as proxy:
        proxy.files[PATH] = RELEASE
        world.fetch(
            world.wanted("http://release.invalid/bcd"),
            clear_text=True,
            environ={"http_proxy": proxy.url(""), "https_proxy": "http://127.0.0.1:1"},
        )
        assert proxy.requests[0].line == "GET http://release.invalid/bcd HTTP/1.1"
    assert world.final.read_bytes() == RELEASE


def test_a_proxy_over_tls_is_used(world: World) -> None:
    """TLS to the server runs inside of TLS to the proxy, and the watch still ends it."""
    certificate = world.authority.issue_cert("localhost")

    class SecureProxy(Proxy):
        def serve(self, connection: socket.socket) -> None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(context)
            with context.wrap_socket(connection, server_side=True) as secured:
                super().serve(secured)

    with SecureProxy() as proxy:
        environ = {"https_proxy": f"https://localhost:{proxy.port}"}
        world.server.script = [hanging_after(30_000)]
        with at_most(4):
            assert "stalled" in world.refused(environ=environ, idle_seconds=0.5).message
        world.fetch(environ=environ)
    assert world.final.read_bytes() == RELEASE
    assert world.asked() == ["", "bytes=30000-"]
