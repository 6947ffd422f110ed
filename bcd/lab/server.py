"""The lab's release server: real HTTPS on loopback, with faults by path and a record of every request.

Unspoilt it is a proper one: ranges (`Range`, `If-Range`), strong entity tags, 206, 416, HEAD, kept-alive
connections. Each connection has a thread; whatever is shared is behind one lock.
"""

import hashlib
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bcd.lab.spoiling import SOUND, Spoiling

_CHUNK_BYTES = 16 * 1024
_PATIENCE_SECONDS = 90.0
"""How long a connection may be silent, in the handshake or between requests, before it is dropped."""
_FLIPPED = bytes(byte ^ 0xFF for byte in range(256))
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request, when its answer had ended."""

    path: str
    range: str | None
    """The `Range` header, as it came."""
    status: int
    sent: int
    """Bytes of body that went out."""
    length: int
    """Bytes of body that the answer promised."""


@dataclass(frozen=True, kw_only=True)
class _File:
    body: bytes
    etag: str


class ReleaseServer:
    """Serves what is published, from the moment it is made until `close`."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, _File] = {}
        self._spoilt: dict[str, Spoiling] = {}
        self._requests: list[Request] = []
        self._next: Spoiling | None = None
        self.tell: Callable[[str], None] = lambda _: None
        """Called, in a connection's thread, with each thing that it does."""
        self._closing = threading.Event()
        self._server = _HttpsServer(context, self)
        self._thread = threading.Thread(target=self._server.serve_forever, name="release-server", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def publish(self, path: str, body: bytes) -> str:
        """Serve `body` at `path` (which starts with a slash) from now on, and return its URL."""
        with self._lock:
            self._files[path] = _File(body=body, etag=f'"{hashlib.sha256(body).hexdigest()[:32]}"')
        return self.url + path

    def spoil(self, path: str, spoiling: Spoiling) -> None:
        """Spoil the answers for `path` from now on; `SOUND` mends them."""
        with self._lock:
            self._spoilt[path] = spoiling

    def spoil_next(self, spoiling: Spoiling | None) -> None:
        """Spoil the next download, whatever it is of, and only that; None takes it back."""
        with self._lock:
            self._next = spoiling

    @property
    def next_spoiling(self) -> Spoiling | None:
        """What waits for the next download; None when it is to be as it ought to be."""
        with self._lock:
            return self._next

    def requests(self, path: str) -> list[Request]:
        """The requests for `path` so far, oldest first."""
        with self._lock:
            return [request for request in self._requests if request.path == path]

    def close(self) -> None:
        """Stop listening and let go of every connection."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # What follows is for the handlers.

    def look_up(self, path: str, *, with_body: bool) -> tuple[_File | None, Spoiling]:
        """The file at `path`, and how this one answer is to be spoilt."""
        with self._lock:
            if self._next is not None and with_body and path in self._files:
                spoiling, self._next = self._next, None
                return self._files[path], spoiling
            spoiling = self._spoilt.get(path, SOUND)
            if spoiling.answers == 0:
                spoiling = SOUND
            elif spoiling.answers is not None:
                self._spoilt[path] = replace(spoiling, answers=spoiling.answers - 1)
            return self._files.get(path), spoiling

    def record(self, request: Request) -> None:
        """Keep `request` in the record."""
        with self._lock:
            self._requests.append(request)
        self.tell(_worded(request))

    def hold(self, seconds: float) -> bool:
        """Wait; true when the server is closing and there is nothing more to wait for."""
        return self._closing.wait(seconds)


class _HttpsServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, context: ssl.SSLContext, releases: ReleaseServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._context = context
        self.releases = releases

    def finish_request(self, request: Any, client_address: Any) -> None:
        # Here, in the connection's own thread: a peer that is slow with its handshake holds up nobody else.
        request.settimeout(_PATIENCE_SECONDS)
        with self._context.wrap_socket(request, server_side=True) as connection:
            _Handler(connection, client_address, self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: nodes that are killed and downloads that are cut break connections all the time."""


class _Handler(BaseHTTPRequestHandler):
    server: _HttpsServer
    connection: ssl.SSLSocket
    protocol_version = "HTTP/1.1"
    server_version = "bcd-lab"

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as it is called there
        """Nothing: the record of requests says it better."""

    def _answer(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        file, spoiling = self.server.releases.look_up(path, with_body=with_body)
        sent, length, status = 0, 0, 404 if file is None else 200
        if spoiling.status is not None:
            status = spoiling.status
        if file is None or spoiling.status is not None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            first, end, status = self._range(file)
            body = file.body[first:end] + (spoiling.surplus if end == len(file.body) else b"")
            if spoiling.flipped:
                body = body.translate(_FLIPPED)
            length = len(body)
            self._send_head(file, status, first, end, length)
            if with_body and status != 416:
                sent = self._send_body(body, spoiling)
        self.server.releases.record(
            Request(path=path, range=self.headers.get("Range"), status=status, sent=sent, length=length)
        )

    def _range(self, file: _File) -> tuple[int, int, int]:
        """First byte, the byte after the last, and the status of the answer to this request for `file`."""
        size = len(file.body)
        asked = _RANGE.fullmatch(self.headers.get("Range") or "")
        condition = self.headers.get("If-Range")
        if asked is None or (condition is not None and condition != file.etag):
            return 0, size, 200
        first = int(asked[1])
        end = min(int(asked[2]) + 1, size) if asked[2] else size
        return (first, end, 206) if first < end else (0, 0, 416)

    def _send_head(self, file: _File, status: int, first: int, end: int, length: int) -> None:
        self.send_response(status)
        self.send_header("ETag", file.etag)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Type", "application/octet-stream")
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{len(file.body)}")
        elif status == 416:
            self.send_header("Content-Range", f"bytes */{len(file.body)}")
        self.send_header("Content-Length", str(length if status != 416 else 0))
        self.end_headers()

    def _send_body(self, body: bytes, spoiling: Spoiling) -> int:
        """Send the body as far as it is to go, and return how many bytes went out."""
        until = min(
            len(body) if limit is None else limit for limit in (len(body), spoiling.cut_after, spoiling.stall_after)
        )
        sent = 0
        while sent < until:
            chunk = body[sent : min(sent + _CHUNK_BYTES, until)]
            try:
                self.wfile.write(chunk)
            except OSError:
                break
            sent += len(chunk)
            if spoiling.bytes_per_second is not None:
                time.sleep(len(chunk) / spoiling.bytes_per_second)
        if spoiling.stall_after is not None and sent == spoiling.stall_after:
            self._hold_open()
        if sent < len(body):
            self._drop()
        return sent

    def _hold_open(self) -> None:
        """Be silent until the node has gone away or the server closes."""
        self.connection.settimeout(0.2)
        while not self.server.releases.hold(0.0):
            try:
                if not self.connection.recv(1):
                    return
            except TimeoutError:
                continue
            except OSError:
                return

    def _drop(self) -> None:
        """End the connection in the middle of a body."""
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def _worded(request: Request) -> str:
    # Published are /<shelf>/bcd/<version>/<platform>; people know the version.
    name = request.path.split("/")[-2] if request.path.count("/") > 2 else request.path
    asked = f" from byte {first}" if (first := _first_byte(request.range)) else ""
    sent = f"{request.sent // 1024} KiB" if request.sent >= 1024 else f"{request.sent} bytes"
    how = f"{sent} sent" if request.sent == request.length else f"cut after {sent} of {request.length // 1024} KiB"
    return f"GET {name}{asked}: {request.status}, {how}"


def _first_byte(asked: str | None) -> str:
    found = _RANGE.fullmatch(asked or "")
    return found[1] if found and found[1] != "0" else ""
