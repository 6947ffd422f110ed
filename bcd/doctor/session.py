"""How far a session with the gateway comes: name, TCP, TLS, WebSocket. The welcome is not awaited.

Nothing is said to the gateway but the WebSocket handshake, so looking disturbs no session of the agent's.
"""

import socket
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from bcd.core.config import Config
from bcd.core.text import clean

STAGES = ("name", "tcp", "tls", "websocket")


@dataclass(kw_only=True)
class SessionProbe:
    """What a try gave."""

    host: str = ""
    port: int = 0
    reached: list[str] = field(default_factory=list)
    """The stages that were passed, of `STAGES`."""
    failed: str | None = None
    """The stage that did not work; None where all did."""
    error: str = ""
    addresses: list[str] = field(default_factory=list)
    certificate_until: float | None = None
    """Unix seconds; None where there is no TLS or it did not come to that."""
    server_time: float | None = None
    """Unix seconds, by the gateway's `Date` header; None where it sends none."""
    asked_at: float = 0.0
    """Unix seconds, by this machine's clock, when `server_time` was read."""
    seconds: float = 0.0


def probe_session(config: Config, timeout_seconds: float) -> SessionProbe:
    """Try to open a session, all stages within `timeout_seconds` but the name's lookup. Never raises."""
    probe = SessionProbe()
    started = time.monotonic()
    stage = "name"
    try:
        parts = urlsplit(config.node.gateway or "")
        secure = parts.scheme == "wss"
        probe.host = parts.hostname or ""
        if not probe.host:
            raise ValueError("[node] gateway names no host")
        probe.port = parts.port or (443 if secure else 80)
        found = socket.getaddrinfo(probe.host, probe.port, type=socket.SOCK_STREAM)
        probe.addresses = list(dict.fromkeys(str(address[4][0]) for address in found))
        probe.reached.append(stage)
        stage = "tcp"
        left = _Deadline(timeout_seconds)
        with _connect(probe, left) as plain:
            probe.reached.append(stage)
            stage = "tls" if secure else "websocket"
            if secure:
                plain.settimeout(left.seconds())
                with _trust(config).wrap_socket(plain, server_hostname=probe.host) as connection:
                    until = (connection.getpeercert() or {}).get("notAfter")
                    probe.certificate_until = ssl.cert_time_to_seconds(until) if isinstance(until, str) else None
                    probe.reached.append(stage)
                    stage = "websocket"
                    _open_websocket(connection, config, probe, left)
            else:
                _open_websocket(plain, config, probe, left)
            probe.reached.append(stage)
    except (OSError, ValueError) as error:
        probe.failed = stage
        probe.error = clean(getattr(error, "strerror", None) or str(error) or type(error).__name__, 300)
    probe.seconds = time.monotonic() - started
    return probe


class _Deadline:
    """One for all stages: each address and each byte with a timeout of its own would add up to many."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def seconds(self, among: int = 1) -> float:
        """What is left for one of so many tries; never 0, which would mean not to wait at all."""
        return max(0.001, (self._until - time.monotonic()) / among)


def _connect(probe: SessionProbe, left: _Deadline) -> socket.socket:
    for tried, address in enumerate(probe.addresses):
        last = tried == len(probe.addresses) - 1
        try:
            return socket.create_connection((address, probe.port), left.seconds(len(probe.addresses) - tried))
        except OSError:
            if last:
                raise
    raise OSError("the name has no address")


def _trust(config: Config) -> ssl.SSLContext:
    from bcd.node.trust import gateway_trust  # noqa: PLC0415  # TLS only where there is some

    try:
        return gateway_trust(config.node)
    except OSError as error:
        # OpenSSL names no file.
        raise ValueError(f"[node] ca_file, cert_file or key_file can't be used: {error.strerror or error}") from error


def _open_websocket(connection: socket.socket, config: Config, probe: SessionProbe, left: _Deadline) -> None:
    from websockets.client import ClientProtocol  # noqa: PLC0415  # its parser; no event loop is needed for a handshake
    from websockets.exceptions import InvalidURI  # noqa: PLC0415
    from websockets.http11 import Response  # noqa: PLC0415
    from websockets.protocol import State  # noqa: PLC0415
    from websockets.typing import Subprotocol  # noqa: PLC0415
    from websockets.uri import parse_uri  # noqa: PLC0415

    from bcd.node.protocol import SUBPROTOCOL  # noqa: PLC0415

    try:
        where = parse_uri(config.node.gateway or "")
    except InvalidURI as error:
        raise ValueError(str(error)) from error
    protocol = ClientProtocol(where, subprotocols=[Subprotocol(SUBPROTOCOL)])
    protocol.send_request(protocol.connect())
    for data in protocol.data_to_send():
        connection.sendall(data)
    while protocol.state is State.CONNECTING and protocol.handshake_exc is None:
        connection.settimeout(left.seconds())
        received = connection.recv(4096)
        if received:
            protocol.receive_data(received)
        else:
            protocol.receive_eof()
        for event in protocol.events_received():
            if isinstance(event, Response):
                probe.asked_at = time.time()
                probe.server_time = _seconds(next(iter(event.headers.get_all("Date")), None))
    if protocol.handshake_exc is not None:
        cause = protocol.handshake_exc.__cause__
        raise ValueError(f"{protocol.handshake_exc}{'' if cause is None else f': {cause}'}")
    protocol.send_close(1000)
    with suppress(OSError):  # it opened, which is what was asked
        for data in protocol.data_to_send():
            connection.sendall(data)


def _seconds(date: str | None) -> float | None:
    # A date that can't be read says no time, and is no reason to call the gateway unreachable.
    try:
        found = parsedate_to_datetime(date) if date else None
    except ValueError:
        return None
    if found is None:
        return None
    # "-0000" means UTC of an unknown place; without a zone Python would take it for this machine's.
    return found.timestamp() if found.tzinfo is not None else found.replace(tzinfo=UTC).timestamp()
