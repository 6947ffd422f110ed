"""A small real release server for tests: loopback, real TLS by trustme, and faults by script.

`ReleaseServer.files` are served with ETag, Range and If-Range as a good server does; each function in `script` takes
the place of one answer, the first request's first. A `Proxy` tunnels CONNECT and remembers what it was asked.
`World` is a downloader with its server, its authority and its staging directory.
"""

import hashlib
import os
import re
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
import trustme

from bcd.core.download import Downloader, DownloadFailed, Progress, Wanted

RELEASE = hashlib.shake_128(b"a release").digest(100_000)
VERSION = "1.4.1"
PATH = "/bcd"
_PATIENCE = 10.0
"""Seconds after which a fault that hangs gives up, so that a failing test ends."""


class Request(NamedTuple):
    """What a client asked."""

    line: str
    headers: Mapping[str, str]
    """By lower-case name."""

    @property
    def path(self) -> str:
        """The path, also of an absolute target as a proxy gets it."""
        return urlsplit(self.line.split(" ")[1]).path


class Exchange:
    """One request and the connection to answer it on."""

    def __init__(self, connection: socket.socket, request: Request, closing: threading.Event) -> None:
        self.connection = connection
        self.request = request
        self._closing = closing

    def head(self, status: int, *headers: str, reason: str = "As Scripted") -> None:
        """Send the status line and the headers."""
        self.send("\r\n".join([f"HTTP/1.1 {status} {reason}", *headers, "", ""]).encode("latin-1"))

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.connection.sendall(data)

    def dribble(self, data: bytes, *, each: int, every: float) -> None:
        """Send `each` bytes every so many seconds, until the client has gone."""
        for start in range(0, len(data), each):
            self.send(data[start : start + each])
            if self._closing.wait(every):
                return

    def hang(self) -> None:
        """Say nothing more, and keep the connection until the client leaves it."""
        self.connection.recv(1)


Fault = Callable[[Exchange], None]


class Listener:
    """Accepts connections on loopback, each in a thread of its own."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.closing = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(_PATIENCE)
        self._socket.close()

    def serve(self, connection: socket.socket) -> None:
        """Serve one connection; overridden."""

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                connection.settimeout(_PATIENCE)
                thread = threading.Thread(target=self._guarded, args=(connection,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _guarded(self, connection: socket.socket) -> None:
        # A client that goes away in the middle is what half of the tests are about.
        with suppress(OSError), connection:
            self.serve(connection)


class ReleaseServer(Listener):
    """Serves `files`, and faults."""

    def __init__(self, certificate: trustme.LeafCert | None, host: str = "localhost") -> None:
        self.files: dict[str, bytes] = {}
        self.mark = '"v1"'
        """The ETag of every file."""
        self.script: list[Fault] = []
        self.requests: list[Request] = []
        self._host = host
        self._tls: ssl.SSLContext | None = None
        if certificate is not None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(self._tls)
        super().__init__()

    def url(self, path: str = PATH) -> str:
        """The URL of `path` here."""
        return f"{'http' if self._tls is None else 'https'}://{self._host}:{self.port}{path}"

    def serve(self, connection: socket.socket) -> None:
        """Answer one request."""
        if self._tls is None:
            self._answer(connection)
        else:
            with self._tls.wrap_socket(connection, server_side=True) as secured:
                self._answer(secured)

    def _answer(self, connection: socket.socket) -> None:
        request = _read_request(connection)
        self.requests.append(request)
        fault = self.script.pop(0) if self.script else self.good
        fault(Exchange(connection, request, self.closing))

    def good(self, exchange: Exchange) -> None:
        """Answer as a good server does."""
        content = self.files.get(exchange.request.path)
        if content is None:
            exchange.head(404, "Content-Length: 0", reason="Not Found")
            return
        asked = re.fullmatch(r"bytes=([0-9]+)-", exchange.request.headers.get("range", ""))
        if asked and exchange.request.headers.get("if-range") == self.mark:
            start = int(asked[1])
            exchange.head(
                206,
                f"Content-Range: bytes {start}-{len(content) - 1}/{len(content)}",
                f"Content-Length: {len(content) - start}",
                f"ETag: {self.mark}",
            )
            exchange.send(content[start:])
        else:
            exchange.head(200, f"Content-Length: {len(content)}", f"ETag: {self.mark}")
            exchange.send(content)


class Proxy(Listener):
    """Tunnels CONNECT, or refuses it."""

    def __init__(self, *, refuse: str = "") -> None:
        self.heads: list[Request] = []
        self._refuse = refuse
        super().__init__()

    def serve(self, connection: socket.socket) -> None:
        """Tunnel to wherever the client wants."""
        request = _read_request(connection)
        self.heads.append(request)
        if self._refuse:
            connection.sendall(f"HTTP/1.1 {self._refuse}\r\n\r\n".encode())
            return
        host, _, port = request.line.split(" ")[1].rpartition(":")
        with socket.create_connection((host, int(port)), _PATIENCE) as server:
            connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            _tunnel(connection, server)


def _tunnel(client: socket.socket, server: socket.socket) -> None:
    """Pass bytes both ways until one side ends, in one thread: a TLS connection must not be used by two."""
    other = {client: server, server: client}
    while True:
        for source in select.select([client, server], [], [], _PATIENCE)[0]:
            more = True
            while more:
                data = source.recv(65_536)
                if not data:
                    return
                other[source].sendall(data)
                more = isinstance(source, ssl.SSLSocket) and source.pending() > 0


def _read_request(connection: socket.socket) -> Request:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65_536)
        if not more:
            raise ConnectionError
        data += more
    line, *lines = data.decode("latin-1").split("\r\n\r\n")[0].split("\r\n")
    pairs = (one.partition(":") for one in lines)
    return Request(line, {name.lower(): value.strip() for name, _, value in pairs})


# Faults --------------------------------------------------------------------------------------------------------------


def cut_after(count: int, content: bytes = RELEASE, mark: str = '"v1"') -> Fault:
    """Begin the whole file, or the rest that was asked for, and cut the connection after `count` bytes of it."""

    def fault(exchange: Exchange) -> None:
        asked = re.fullmatch(r"bytes=([0-9]+)-", exchange.request.headers.get("range", ""))
        start = int(asked[1]) if asked else 0
        ranged = [f"Content-Range: bytes {start}-{len(content) - 1}/{len(content)}"] if asked else []
        exchange.head(206 if asked else 200, f"Content-Length: {len(content) - start}", f"ETag: {mark}", *ranged)
        exchange.send(content[start : start + count])

    return fault


def answering(status: int, *headers: str, body: bytes = b"", reason: str = "As Scripted") -> Fault:
    """Answer with exactly this, and close."""

    def fault(exchange: Exchange) -> None:
        exchange.head(status, *headers, reason=reason)
        exchange.send(body)

    return fault


def hanging_after(count: int) -> Fault:
    """Send the headers and the start of the body, then nothing."""

    def fault(exchange: Exchange) -> None:
        exchange.head(200, f"Content-Length: {len(RELEASE)}", 'ETag: "v1"')
        exchange.send(RELEASE[:count])
        exchange.hang()

    return fault


def redirecting(location: str, status: int = 302) -> Fault:
    """Send the client elsewhere."""
    return answering(status, f"Location: {location}", "Content-Length: 0")


def chunked(body: bytes, *, end: bytes = b"0\r\n\r\n") -> Fault:
    """Send the body in chunks, without a length."""
    return answering(200, "Transfer-Encoding: chunked", body=b"%x\r\n%b\r\n%b" % (len(body), body, end))


# The world -----------------------------------------------------------------------------------------------------------


class World:
    """A downloader, its server, and its staging directory."""

    def __init__(self, directory: Path, server: ReleaseServer, authority: trustme.CA) -> None:
        self.staging = directory / "staging"
        self.ca_file = directory / "ca.pem"
        self.server = server
        self.authority = authority
        self.told: list[Progress] = []
        self.cancelled = threading.Event()
        authority.cert_pem.write_to_path(self.ca_file)
        server.files[PATH] = RELEASE

    @property
    def part(self) -> Path:
        """Where the unfinished download lies."""
        return self.staging / f"bcd-{VERSION}.part"

    @property
    def note(self) -> Path:
        """Where the note on it lies."""
        return self.staging / f"bcd-{VERSION}.part.meta"

    @property
    def final(self) -> Path:
        """Where the finished download lies."""
        return self.staging / f"bcd-{VERSION}"

    @property
    def on_disk(self) -> dict[str, int]:
        """The names in staging, with their sizes."""
        return {path.name: path.lstat().st_size for path in self.staging.iterdir()} if self.staging.exists() else {}

    def wanted(self, url: str | None = None, content: bytes = RELEASE) -> Wanted:
        """The release, from the good URL or another."""
        return Wanted(VERSION, url or self.server.url(), hashlib.sha256(content).hexdigest(), len(content))

    def fetch(
        self,
        wanted: Wanted | None = None,
        *,
        idle_seconds: float = 5.0,
        clear_text: bool = False,
        environ: Mapping[str, str] | None = None,
        trusting: bool = True,
        connect_seconds: float = 5.0,
    ) -> Path:
        """Fetch, as the agent does."""
        downloader = Downloader(
            ca_file=self.ca_file if trusting else None,
            clear_text=clear_text,
            environ=environ or {},
            idle_seconds=idle_seconds,
            connect_seconds=connect_seconds,
        )
        return downloader.fetch(
            wanted or self.wanted(), self.staging, progress=self.told.append, cancelled=self.cancelled
        )

    def refused(self, wanted: Wanted | None = None, **how: Any) -> DownloadFailed:
        """Fetch, and return the error that it ends in; no finished file is there."""
        with pytest.raises(DownloadFailed) as caught:
            self.fetch(wanted, **how)
        assert caught.value.code == "download-failed"
        assert caught.value.retryable
        assert not self.final.exists()
        return caught.value

    def asked(self) -> list[str]:
        """The Range header of each request so far; empty where the whole was asked for."""
        return [request.headers.get("range", "") for request in self.server.requests]


@contextmanager
def world_in(directory: Path) -> Iterator[World]:
    """A world with a good server, on a machine whose own trust store knows somebody else."""
    authority, system = trustme.CA(), directory / "system.pem"
    trustme.CA().cert_pem.write_to_path(system)
    store = {"SSL_CERT_FILE": str(system), "SSL_CERT_DIR": str(directory / "none")}
    with patch.dict(os.environ, store), ReleaseServer(authority.issue_cert("localhost")) as server:
        yield World(directory, server, authority)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """What happens inside does not hang."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds
