"""How far a session with the gateway comes: name, TCP, TLS, WebSocket. The welcome is not awaited.

Nothing is said to the gateway but the WebSocket handshake, so looking disturbs no session of the agent's.
"""

import socket
import ssl
import time
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
        probe.port = parts.port or (443 if secure else 80)
        found = socket.getaddrinfo(probe.host, probe.port, type=socket.SOCK_STREAM)
        probe.addresses = sorted({str(address[4][0]) for address in found})
        probe.reached.append(stage)
        stage = "tcp"
        with socket.create_connection((probe.host, probe.port), timeout_seconds) as plain:
            probe.reached.append(stage)
            stage = "tls" if secure else "websocket"
            if secure:
                with _trust(config).wrap_socket(plain, server_hostname=probe.host) as connection:
                    until = (connection.getpeercert() or {}).get("notAfter")
                    probe.certificate_until = ssl.cert_time_to_seconds(until) if isinstance(until, str) else None
                    probe.reached.append(stage)
                    stage = "websocket"
                    _open_websocket(connection, config, probe)
            else:
                _open_websocket(plain, config, probe)
            probe.reached.append(stage)
    except (OSError, ValueError, UnicodeError) as error:
        probe.failed = stage
        probe.error = clean(getattr(error, "strerror", None) or str(error) or type(error).__name__, 300)
    probe.seconds = time.monotonic() - started
    return probe


def _trust(config: Config) -> ssl.SSLContext:
    from bcd.node.trust import gateway_trust  # noqa: PLC0415  # TLS only where there is some

    try:
        return gateway_trust(config.node)
    except OSError as error:
        # OpenSSL names no file.
        raise ValueError(f"[node] ca_file, cert_file or key_file can't be used: {error.strerror or error}") from error


def _open_websocket(connection: socket.socket, config: Config, probe: SessionProbe) -> None:
    from websockets.client import ClientProtocol  # noqa: PLC0415  # its parser; no event loop is needed for a handshake
    from websockets.http11 import Response  # noqa: PLC0415
    from websockets.protocol import State  # noqa: PLC0415
    from websockets.typing import Subprotocol  # noqa: PLC0415
    from websockets.uri import parse_uri  # noqa: PLC0415

    from bcd.node.frames import SUBPROTOCOL  # noqa: PLC0415

    protocol = ClientProtocol(parse_uri(config.node.gateway or ""), subprotocols=[Subprotocol(SUBPROTOCOL)])
    protocol.send_request(protocol.connect())
    for data in protocol.data_to_send():
        connection.sendall(data)
    while protocol.state is State.CONNECTING and protocol.handshake_exc is None:
        received = connection.recv(4096)
        if received:
            protocol.receive_data(received)
        else:
            protocol.receive_eof()
        for event in protocol.events_received():
            if isinstance(event, Response):
                probe.asked_at = time.time()
                probe.server_time = _seconds(event.headers.get("Date"))
    if protocol.handshake_exc is not None:
        cause = protocol.handshake_exc.__cause__
        raise ValueError(f"{protocol.handshake_exc}{f': {cause}' if cause is not None else ''}")
    protocol.send_close(1000)
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
