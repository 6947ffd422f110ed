"""The look at the gateway, against real sockets, real TLS and a real WebSocket server: how far a session comes, and why not."""

import contextlib
import http
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import pytest
import trustme
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve
from websockets.typing import Subprotocol

from bcd.core.config import Config, parse_config
from bcd.doctor.session import STAGES, SessionProbe, probe_session
from bcd.node.protocol import SUBPROTOCOL

SECONDS = 5.0
SHORT_SECONDS = 0.5

Answer = Callable[[ServerConnection, Request], Response | None]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Whom the node trusts."""
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its certificate."""
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


def context(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*(names or ("127.0.0.1", "localhost"))).configure_cert(made)
    return made


class Gateway:
    """A gateway that waits for a hello, and notes what it got."""

    def __init__(self, tls: ssl.SSLContext | None, answer: Answer | None = None) -> None:
        self.said: list[str | bytes] = []
        self.closed = threading.Event()
        self._server: Server = serve(
            self._session,
            "127.0.0.1",
            0,
            ssl=tls,
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            process_request=answer,
        )
        self.port = int(self._server.socket.getsockname()[1])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def _session(self, connection: ServerConnection) -> None:
        try:
            self.said.append(connection.recv(10))
        except (ConnectionClosed, TimeoutError):
            self.closed.set()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()


@contextlib.contextmanager
def gateway(tls: ssl.SSLContext | None, answer: Answer | None = None) -> Iterator[Gateway]:
    made = Gateway(tls, answer)
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def listening(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """A socket at which each who comes is talked to; its port."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve_all() -> None:
            while not over.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    talk(connection)
                    over.wait(20)

        thread = threading.Thread(target=serve_all, daemon=True)
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            over.set()
            server.shutdown(socket.SHUT_RDWR)
    thread.join()


def config(where: str, ca_file: Path | None = None, more: str = "") -> Config:
    ca = "" if ca_file is None else f'ca_file = "{ca_file}"\n'
    return parse_config(f'[node]\ngateway = "{where}"\n{ca}{more}'.encode(), "config.toml")


def probe(port: int, ca_file: Path | None, seconds: float = SECONDS, host: str = "127.0.0.1") -> SessionProbe:
    return probe_session(config(f"wss://{host}:{port}/v1/node", ca_file), seconds)


def test_a_gateway_that_is_well_is_reached_through_all_stages(authority: trustme.CA, ca_file: Path) -> None:
    """With its certificate's end, its time, and how long it took."""
    with gateway(context(authority)) as well:
        before = time.time()
        found = probe(well.port, ca_file)
    assert (found.failed, found.error) == (None, "")
    assert tuple(found.reached) == STAGES
    assert found.addresses == ["127.0.0.1"]
    assert found.certificate_until is not None
    assert found.certificate_until > before
    assert found.server_time is not None
    assert abs(found.server_time - before) <= 5
    assert before <= found.asked_at <= time.time()
    assert 0 < found.seconds < SECONDS


def test_looking_says_nothing_to_the_gateway_and_lets_it_go(authority: trustme.CA, ca_file: Path) -> None:
    """No hello, so no session of the agent's is disturbed; and nothing is left open."""
    with gateway(context(authority)) as well:
        assert probe(well.port, ca_file).failed is None
        assert well.closed.wait(SECONDS)
        assert well.said == []


def test_a_gateway_in_clear_text_is_reached_without_a_certificate() -> None:
    """For development; there is no TLS stage to be passed."""
    with gateway(None) as well:
        found = probe_session(config(f"ws://127.0.0.1:{well.port}/v1/node"), SECONDS)
    assert found.failed is None
    assert found.reached == ["name", "tcp", "websocket"]
    assert found.certificate_until is None


def test_a_name_that_nobody_knows_ends_at_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver is the outside here."""

    def unknown(*_args: object, **_more: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    found = probe(443, None, host="gateway.invalid")
    assert (found.failed, found.error) == ("name", "Name or service not known")
    assert (found.host, found.port, found.reached) == ("gateway.invalid", 443, [])


@pytest.mark.parametrize(
    ("where", "stage"),
    [("wss://", "name"), ("wss://a..b/", "name"), ("wss://127.0.0.1:99999/", "name"), ("wss://[::1/", "name")],
)
def test_an_address_that_is_none_ends_at_the_name(where: str, stage: str) -> None:
    """In a sentence, whatever the configuration says."""
    found = probe_session(config(where), SECONDS)
    assert found.failed == stage
    assert found.error


def test_a_port_at_which_nobody_listens_ends_at_tcp() -> None:
    """Refused, at once."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    found = probe(port, None)
    assert (found.failed, found.error, found.reached) == ("tcp", "Connection refused", ["name"])


def test_a_second_address_is_tried_where_the_first_does_not_answer(
    authority: trustme.CA, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name with a dead IPv6 address and a live IPv4 one is no dead gateway."""
    with gateway(context(authority)) as well:

        def two(*_args: object, **_more: object) -> list[object]:
            return [(0, 0, 0, "", (address, well.port)) for address in ("127.0.0.2", "127.0.0.1")]

        resolve = socket.getaddrinfo
        monkeypatch.setattr(
            socket,
            "getaddrinfo",
            lambda host, *rest, **more: (two if host == "localhost" else resolve)(host, *rest, **more),
        )
        found = probe(well.port, ca_file, host="localhost")
    assert found.failed is None
    assert found.addresses == ["127.0.0.2", "127.0.0.1"]


def test_a_server_that_speaks_no_tls_ends_at_tls(ca_file: Path) -> None:
    """It came to TCP."""
    with gateway(None) as plain:
        found = probe(plain.port, ca_file)
    assert (found.failed, found.reached) == ("tls", ["name", "tcp"])
    assert "SSL" in found.error
    assert found.certificate_until is None


def test_a_certificate_of_another_authority_ends_at_tls(ca_file: Path) -> None:
    """The attack: someone on the way answers as the gateway."""
    with gateway(context(trustme.CA())) as stranger:
        found = probe(stranger.port, ca_file)
    assert found.failed == "tls"
    assert "certificate verify failed" in found.error


def test_a_certificate_for_another_name_ends_at_tls(authority: trustme.CA, ca_file: Path) -> None:
    """Also of the right authority."""
    with gateway(context(authority, "other.example.com")) as other:
        found = probe(other.port, ca_file)
    assert found.failed == "tls"
    assert "mismatch" in found.error or "not valid for" in found.error


def test_a_file_of_the_nodes_that_is_missing_is_named_for_what_it_is(authority: trustme.CA) -> None:
    """It is not the gateway that is broken; OpenSSL alone would not say which file."""
    with gateway(context(authority)) as well:
        where = f"wss://127.0.0.1:{well.port}/"
        found = probe_session(config(where, more='cert_file = "/nonexistent/node.pem"\n'), SECONDS)
    assert found.failed == "tls"
    assert found.error == "[node] ca_file, cert_file or key_file can't be used: No such file or directory"


def test_a_server_that_knows_no_such_path_ends_at_the_websocket(authority: trustme.CA, ca_file: Path) -> None:
    """With its status, its certificate and its time, which are as good as a gateway's."""

    def not_found(connection: ServerConnection, _request: Request) -> Response:
        return connection.respond(http.HTTPStatus.NOT_FOUND, "no such thing\n")

    with gateway(context(authority), not_found) as wrong:
        found = probe(wrong.port, ca_file)
    assert (found.failed, found.reached) == ("websocket", ["name", "tcp", "tls"])
    assert "404" in found.error
    assert found.certificate_until is not None


@pytest.mark.parametrize("tls", [False, True], ids=["before TLS", "after TLS"])
def test_silence_costs_one_timeout(authority: trustme.CA, ca_file: Path, tls: bool) -> None:
    """Of all stages together."""
    server = context(authority)

    def keep_silent(connection: socket.socket) -> None:
        if tls:
            with server.wrap_socket(connection, server_side=True) as secure:
                while secure.recv(4096):
                    pass

    with listening(keep_silent) as port:
        started = time.monotonic()
        found = probe(port, ca_file, SHORT_SECONDS)
        took = time.monotonic() - started
    assert found.failed == ("websocket" if tls else "tls")
    assert "timed out" in found.error
    assert SHORT_SECONDS * 0.9 <= took < SHORT_SECONDS * 4


def test_an_answer_that_drips_does_not_outlast_the_timeout() -> None:
    """The attack: a byte at a time, each within any timeout of its own."""

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 101 Switching")
        for _ in range(200):
            connection.sendall(b" ")
            time.sleep(0.05)

    with listening(drip) as port:
        started = time.monotonic()
        found = probe_session(config(f"ws://127.0.0.1:{port}/"), SHORT_SECONDS)
        assert time.monotonic() - started < SHORT_SECONDS * 4
    assert found.failed == "websocket"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", "did not receive a valid HTTP response: "),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "did not receive a valid HTTP response: "),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "HTTP 200"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "missing Connection header"),
    ],
    ids=["nothing", "ssh", "a web page", "half a handshake"],
)
def test_what_answers_as_no_gateway_would_ends_at_the_websocket(answer: bytes, error: str) -> None:
    """In a sentence that says what was wrong."""

    def say(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)

    with listening(say) as port:
        found = probe_session(config(f"ws://127.0.0.1:{port}/"), SECONDS)
    assert found.failed == "websocket"
    assert error in found.error


NOW = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)
_RFC = format_datetime(NOW, usegmt=True)


@pytest.mark.parametrize(
    ("dates", "server_time"),
    [
        ([_RFC], NOW.timestamp()),
        ([_RFC, "Thu, 01 Jan 1970 00:00:00 GMT"], NOW.timestamp()),
        (["Sun, 29 Nov 2026 12:00:00 -0000"], NOW.timestamp()),
        ([], None),
        (["yesterday"], None),
        (["Sun, 99 Nov 2026 12:00:00 GMT"], None),
    ],
    ids=["a date", "two dates", "UTC of nowhere", "no date", "no date at all", "an impossible date"],
)
def test_the_gateways_time_is_read_or_is_none(
    dates: list[str], server_time: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A date that can't be read is no reason to call the gateway unreachable; a time is UTC wherever the node stands."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    head = "".join(f"Date: {date}\r\n" for date in dates)

    def say(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(f"HTTP/1.1 404 Not Found\r\n{head}Content-Length: 0\r\n\r\n".encode())

    try:
        with listening(say) as port:
            found = probe_session(config(f"ws://127.0.0.1:{port}/"), SECONDS)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "404" in found.error
    assert found.server_time == server_time


def test_what_a_gateway_says_is_made_safe_to_show() -> None:
    """The attack: escapes in a status line."""

    def say(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 404 \x1b]0;owned\x07\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)

    with listening(say) as port:
        found = probe_session(config(f"ws://127.0.0.1:{port}/"), SECONDS)
    assert found.failed == "websocket"
    assert found.error.isprintable()
