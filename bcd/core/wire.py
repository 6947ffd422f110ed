"""One GET over the network: connect, ask, follow redirects, read; and what went wrong, in words.

Guarantees: every hop is one that `bcd.core.route` lets pass (field report 17); every wait is bounded by a `Watch` (field
report 15); nothing but `Broken`, or an error of our own, leaves here, whatever the server, the proxy or the name service
sends, and it says which hop and which proxy. The name lookup alone has no bound but the resolver's own. What the body is
worth is for the caller to judge (spec/self-update.md section 11).
"""

import re
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException, IncompleteRead
from typing import Self
from urllib.parse import unquote_to_bytes, urljoin

from urllib3 import BaseHTTPResponse, HTTPSConnectionPool, PoolManager, ProxyManager, Timeout
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.util import Url

from bcd import __version__
from bcd.core.errors import BcdError
from bcd.core.route import PROXY_HINT, checked, proxy_for, shown
from bcd.core.text import clean
from bcd.core.watch import Broken, Watch

REDIRECTS = 5
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_HEADERS = {"User-Agent": f"bcd/{__version__}", "Accept": "*/*", "Accept-Encoding": "identity"}
_SHOWN = 200
"""Characters of a server's words that an error shows."""
_LONGEST_RETRY_AFTER = 24 * 60 * 60
_BACKSTOP_SECONDS = 5.0
"""How much longer than the watch's window a read may block: only for a watch that is not scheduled in time."""


class Wire:
    """The network as a download sees it, for one fetch.

    Args:
        trust: whose certificates count, from `route.trust`.
        clear_text: let http through.
        environ: where the proxies are named.
        connect_seconds: how long a connection may take, over all of a host's addresses.
        watch: bounds everything else.
    """

    def __init__(
        self,
        *,
        trust: ssl.SSLContext,
        clear_text: bool,
        environ: Mapping[str, str],
        connect_seconds: float,
        watch: Watch,
    ) -> None:
        self._trust = trust
        self._clear_text = clear_text
        self._environ = environ
        self._connect_seconds = connect_seconds
        self._watch = watch

    def get(self, url: str, headers: Mapping[str, str]) -> "Answer":
        """Ask for `url` and follow its redirects.

        Raises:
            Broken: no answer, or a redirect that must not be followed; it names which hop.
        """
        at = checked(url, clear_text=self._clear_text)
        where = shown(at)
        for hop in range(REDIRECTS + 1):
            proxy = proxy_for(at, self._environ)
            place = where if proxy is None else f"{where} through the proxy {shown(proxy)}"
            answer = self._ask(at, proxy, headers, place)
            location = answer.header("Location")
            if answer.status not in _REDIRECT_STATUSES or not location:
                return answer
            answer.close()
            at = self._next(at, location, where)
            where = f"{shown(at)} (redirect {hop + 1} from {shown(checked(url, clear_text=self._clear_text))})"
        raise Broken(f"{where}: more than {REDIRECTS} redirects", "name the file's own URL in the daemon section")

    def _next(self, at: Url, location: str, where: str) -> Url:
        try:
            return checked(urljoin(at.url, location), clear_text=self._clear_text)
        except (Broken, ValueError) as error:
            reason = error if isinstance(error, Broken) else "it is no URL"
            raise Broken(
                f"{where} redirects to a place that is not followed: {reason}",
                "the release server must redirect to plain https URLs only",
            ) from error

    def _ask(self, at: Url, proxy: Url | None, headers: Mapping[str, str], place: str) -> "Answer":
        self._watch.check(place)
        self._watch.begin(body=False)
        with broken(place, self._watch, "" if proxy is None else PROXY_HINT):
            manager = self._manager(proxy)
            pool = manager.connection_from_host(at.host, at.port, at.scheme)
            pool.ConnectionCls = self._connections(tls=isinstance(pool, HTTPSConnectionPool))
            response = manager.urlopen(
                "GET",
                at.url,
                headers=_HEADERS | dict(headers),
                redirect=False,
                retries=False,
                preload_content=False,
                decode_content=False,
                timeout=Timeout(connect=self._connect_seconds, read=self._watch.idle_seconds + _BACKSTOP_SECONDS),
            )
            return Answer(response, pool, place, self._watch)

    def _manager(self, proxy: Url | None) -> PoolManager:
        if proxy is None:
            return PoolManager(ssl_context=self._trust)
        headers = {}
        if proxy.auth:
            headers["Proxy-Authorization"] = f"Basic {b64encode(unquote_to_bytes(proxy.auth)).decode()}"
        return ProxyManager(
            proxy._replace(auth=None).url,
            proxy_headers=headers,
            proxy_ssl_context=self._trust,
            ssl_context=self._trust,
        )

    def _connections(self, *, tls: bool) -> type[HTTPConnection]:
        """Connection classes whose sockets the watch holds from before they connect."""
        watch, seconds = self._watch, self._connect_seconds

        class Plain(HTTPConnection):
            def _new_conn(self) -> socket.socket:
                return _connect(self._dns_host, self.port, seconds, watch)

        class Tls(HTTPSConnection):
            def _new_conn(self) -> socket.socket:
                return _connect(self._dns_host, self.port, seconds, watch)

        return Tls if tls else Plain


class Answer:
    """A server's answer, its body still on the wire. Close it, or use it as a context manager."""

    def __init__(self, response: BaseHTTPResponse, pool: HTTPConnectionPool, place: str, watch: Watch) -> None:
        self.status: int = response.status
        self.chunked: bool = bool(getattr(response, "chunked", False))
        """Whether the body says itself where it ends, so that a short one is no cut one."""
        self._response = response
        self._pool = pool
        self._place = place
        self._watch = watch

    def header(self, name: str) -> str | None:
        """A header's value as the server spells it, or None."""
        return self._response.headers.get(name)

    def read(self, limit: int) -> bytes:
        """What has arrived of the body, at least a byte and at most `limit`; nothing at its end.

        Raises:
            Broken: the connection broke, or the watch ended it.
        """
        self._watch.check(self._place)
        with broken(self._place, self._watch):
            data = self._response.read1(limit, decode_content=False)
        # Without a length, an end that the watch made looks like the body's own.
        if not data:
            self._watch.check(self._place)
        self._watch.moved(len(data))
        return data

    def refusal(self) -> Broken:
        """This answer as an error: its status, its reason, and how long it asks to wait."""
        reason = clean(self._response.reason or "", 80)
        wait = self.header("Retry-After") or ""
        seconds = float(wait) if re.fullmatch("[0-9]{1,6}", wait) else None
        if seconds is not None and seconds > _LONGEST_RETRY_AFTER:
            seconds = None
        return Broken(f"{self._place}: the server answered {self.status} {reason}".rstrip(), retry_after=seconds)

    def unexpected(self, what: str, hint: str = "") -> Broken:
        """An error about what this answer says."""
        return Broken(f"{self._place}: {what}", hint)

    def close(self) -> None:
        """Drop the connection, whatever is still on it."""
        self._response.close()
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def broken(place: str, watch: Watch, hint: str = "") -> Iterator[None]:
    """Let nothing of the network's leave but as `Broken`, told in the words of its innermost cause; `hint` by default."""
    try:
        yield
    except (Broken, BcdError):
        raise
    except Exception as error:  # whatever libraries raise over what a hostile server sends
        if watch.verdict is not None:
            raise Broken(f"{place}: {watch.why()}", hint) from error
        cause, better = _words(_root(error))
        raise Broken(f"{place}: {cause}", better or hint) from error


def _connect(host: str, port: int | None, seconds: float, watch: Watch) -> socket.socket:
    """Connect to the first address that answers. Each has its share of the time, or a dead IPv6 would eat it all."""
    until = time.monotonic() + seconds
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    last: OSError = OSError("the name has no address")
    for tried, (family, kind, protocol, _, address) in enumerate(addresses):
        share = (until - time.monotonic()) / (len(addresses) - tried)
        connection = socket.socket(family, kind, protocol)
        try:
            watch.guard(connection)
            connection.settimeout(max(share, 0.01))
            connection.connect(address)
        except BaseException as error:
            connection.close()
            if not isinstance(error, OSError) or watch.verdict is not None:
                raise
            last = TimeoutError(f"no connection within {seconds:g} s") if isinstance(error, TimeoutError) else error
        else:
            connection.settimeout(watch.idle_seconds + _BACKSTOP_SECONDS)
            watch.begin(body=False)
            return connection
    raise last


def _root(error: BaseException) -> BaseException:
    """The innermost of errors wrapped by urllib3, which keeps what it wraps in four ways."""
    for _ in range(8):
        inside = [getattr(error, "original_error", None), *reversed(error.args), error.__cause__]
        inner = next((one for one in inside if isinstance(one, BaseException) and one is not error), None)
        if inner is None:
            break
        error = inner
    return error


def _verification(error: BaseException) -> tuple[str, str]:
    return (
        f"the certificate is not trusted: {clean(getattr(error, 'verify_message', '') or str(error), _SHOWN)}",
        (
            "without a trust store (`bcd doctor` tells) install the package ca-certificates; a private authority's "
            "certificate goes into ca_file in [update]; a wrong clock fails certificates too"
        ),
    )


def _tls(error: BaseException) -> tuple[str, str]:
    return f"TLS failed: {clean(getattr(error, 'reason', '') or str(error), _SHOWN)}", ""


def _lookup(error: BaseException) -> tuple[str, str]:
    return f"the name does not resolve: {clean(getattr(error, 'strerror', '') or str(error), _SHOWN)}", ""


def _system(error: BaseException) -> tuple[str, str]:
    return clean(getattr(error, "strerror", "") or str(error) or type(error).__name__, _SHOWN), ""


def _cut(_: BaseException) -> tuple[str, str]:
    return "the connection broke off before the end of the body", ""


def _no_http(error: BaseException) -> tuple[str, str]:
    return f"the answer is no HTTP: {clean(str(error) or type(error).__name__, _SHOWN)}", ""


_KINDS: tuple[tuple[type[BaseException], Callable[[BaseException], tuple[str, str]]], ...] = (
    (ssl.SSLCertVerificationError, _verification),
    (ssl.SSLError, _tls),
    (socket.gaierror, _lookup),
    (OSError, _system),
    (IncompleteRead, _cut),
    (HTTPException, _no_http),
)


def _words(error: BaseException) -> tuple[str, str]:
    """An innermost cause as a sentence, and a hint."""
    for kind, words in _KINDS:
        if isinstance(error, kind):
            return words(error)
    return clean(f"{type(error).__name__}: {error}", _SHOWN), ""
