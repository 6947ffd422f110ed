"""Fetching a release into staging, resumed where it broke off (spec/self-update.md section 11).

Guarantees: `bcd-<version>` appears in staging only with exactly the size and the SHA-256 that the signed manifest
names, durably, by a rename of the `.part` whose bytes were hashed as they were written. Nothing that a server, a proxy
or a left-over file does makes it hang, grow past the signed size by more than a byte, or fail for ever. The room for
it is checked by `bcd.core.space` before; what lies in staging is opened by `bcd.core.staging`; `bcd.core.wire` talks.

    .part there?         full size: hash it, keep it or drop it
                         shorter, its note fits the wanted file: hash it, ask for the rest
                         otherwise: drop it, ask for the whole
    asked for the rest   206 of exactly that: append      200: start over with that body
                         any other 206, 416: drop the .part, ask once for the whole
    body done            right: publish                    longer, or wrong digest: drop the .part
                         broken off: keep the .part
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from bcd.core import route, steps
from bcd.core.errors import HostError, Refusal, TransferError
from bcd.core.partial import Partial, hash_file
from bcd.core.staging import Staging, file_name, open_staging
from bcd.core.text import clean
from bcd.core.watch import Broken, Watch
from bcd.core.wire import Answer, Wire

CHUNK_BYTES = 64 * 1024
_PROGRESS_SECONDS = 0.2
_OK, _PARTIAL_CONTENT, _RANGE_NOT_SATISFIABLE = 200, 206, 416

_log = logging.getLogger(__name__)


class Wanted(NamedTuple):
    """What to fetch: all from the signed manifest but the URL, which is only a place to look."""

    version: str
    url: str
    sha256: str
    """64 lower-case hex digits."""
    size: int
    """Bytes."""


class Progress(NamedTuple):
    """How far a download is."""

    bytes_done: int
    """Bytes in staging, those of earlier tries included."""
    bytes_total: int
    rate: float
    """Bytes a second over the last few seconds."""


class Fetcher(Protocol):
    """Brings a release into staging."""

    def fetch(
        self,
        wanted: Wanted,
        staging: Path,
        *,
        progress: Callable[[Progress], None],
        cancelled: threading.Event,
    ) -> Path:
        """Fetch `wanted` into the directory `staging` and return the checked file's path; raises `BcdError` only."""


class DownloadFailed(TransferError):
    """`download-failed`, with the cause and how far it came. Retryable.

    Attributes:
        retry_after: seconds that the server asks to wait for before the next try, or None.
    """

    def __init__(self, message: str, hint: str = "", *, retry_after: float | None = None) -> None:
        super().__init__("download-failed", message, hint)
        self.retry_after = retry_after


class Downloader:
    """The real fetcher: https with the system's trust, through the environment's proxies.

    Args:
        ca_file: certificates to trust beside the system's.
        clear_text: let http through, for development and the lab.
        environ: where the proxies are named.
        idle_seconds: the window in which a transfer must move 16 KiB, and the longest wait for an answer.
        connect_seconds: how long connecting to one host may take.
    """

    def __init__(
        self,
        *,
        ca_file: Path | None = None,
        clear_text: bool = False,
        environ: Mapping[str, str] = os.environ,
        idle_seconds: float = 30.0,
        connect_seconds: float = 10.0,
    ) -> None:
        self._ca_file = ca_file
        self._clear_text = clear_text
        self._environ = environ
        self._idle_seconds = idle_seconds
        self._connect_seconds = connect_seconds

    def fetch(
        self,
        wanted: Wanted,
        staging: Path,
        *,
        progress: Callable[[Progress], None],
        cancelled: threading.Event,
    ) -> Path:
        """Fetch `wanted` into `staging`, and return the path of the checked file there. Safe to repeat.

        On disk: `bcd-<version>` when it returns; else at most a `.part` and its note, worth resuming. Steps told:
        `download-started` at the first byte written, `downloaded` at the end.

        Raises:
            Refusal: `bad-section`, the version is none; `bad-url`, the URL is not one to fetch.
            DownloadFailed: `download-failed`, the transfer did not work, or was stopped by `cancelled`.
            HostError: `no-space`, `io-error`, or `update-in-progress` where another download holds staging.
        """
        name = file_name(wanted.version)
        try:
            route.checked(wanted.url, clear_text=self._clear_text)
        except Broken as error:
            raise Refusal("bad-url", f"the release's URL cannot be fetched: {error}") from error
        told = _Told(wanted.size, progress)
        watch = Watch(cancelled, self._idle_seconds)
        with (
            open_staging(staging) as place,
            closing(Partial(place, wanted.version, wanted.url, wanted.sha256, wanted.size)) as partial,
            _numbers(partial, watch),
        ):
            watch.check()
            if _is_finished(place, name, wanted, watch):
                with suppress(HostError):  # left-overs beside it are no reason to fail
                    partial.drop()
            else:
                partial.resume(watch)
                if not partial.is_whole:
                    self._transfer(wanted, partial, told, watch)
                partial.publish()
        told.last(watch.rate())
        steps.reached("downloaded")
        return staging / name

    def _transfer(self, wanted: Wanted, partial: Partial, told: "_Told", watch: Watch) -> None:
        """Bring the missing bytes from the network."""
        trust = route.trust(self._ca_file)
        with watch:
            connection = Wire(
                trust=trust,
                clear_text=self._clear_text,
                environ=self._environ,
                connect_seconds=self._connect_seconds,
                watch=watch,
            )
            while True:
                with connection.get(wanted.url, partial.range_headers()) as answer:
                    if _accepts(answer, partial):
                        _receive(answer, partial, told, watch)
                        return
                # Once at most: with nothing held, no range is asked for, and only a whole file is accepted.
                partial.drop()


class _Told:
    """Progress as the caller hears it: a few times a second, and once at the end."""

    def __init__(self, total: int, progress: Callable[[Progress], None]) -> None:
        self._total = total
        self._progress = progress
        self._next = 0.0

    def now_and_then(self, done: int, watch: Watch) -> None:
        """Tell how far it is, if it was not told just now."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _PROGRESS_SECONDS
            self._tell(Progress(done, self._total, watch.rate()))

    def last(self, rate: float) -> None:
        """Tell that it is all there."""
        self._tell(Progress(self._total, self._total, rate))

    def _tell(self, progress: Progress) -> None:
        try:
            self._progress(progress)
        except Exception:  # noqa: BLE001 - a display that broke must not stop an update
            _log.warning("the display of a download's progress failed", exc_info=True)
            self._progress = lambda _: None


def _is_finished(place: Staging, name: str, wanted: Wanted, watch: Watch) -> bool:
    """Whether the wanted file is there already; a file that only has its name is removed."""
    handle = place.take(name)
    if handle is None:
        return False
    try:
        if os.fstat(handle).st_size == wanted.size:
            with suppress(OSError):  # unreadable is as good as wrong
                running, size = hash_file(handle, watch)
                if (size, running.hexdigest()) == (wanted.size, wanted.sha256):
                    return True
    finally:
        os.close(handle)
    place.remove(name)
    return False


def _accepts(answer: Answer, partial: Partial) -> bool:
    """Make the partial file ready for the answer's body. False: there is no such range to be had, start over.

    Raises:
        Broken: another status, or a body of another length than the wanted file's; nothing on disk has changed.
    """
    length = answer.header("Content-Length") if not answer.chunked else None
    if partial.held and answer.status in (_PARTIAL_CONTENT, _RANGE_NOT_SATISFIABLE):
        # The exact bytes asked for, or none: appending others spoils the file (field report 16).
        exact = f"bytes {partial.held}-{partial.size - 1}/{partial.size}"
        return (
            answer.status == _PARTIAL_CONTENT
            and (answer.header("Content-Range") or "").strip() == exact
            and length in (None, str(partial.size - partial.held))
        )
    if answer.status != _OK:
        raise answer.refusal()
    if length is not None and length != str(partial.size):
        raise answer.unexpected(
            f"the body is {clean(length, 40)} bytes long, the manifest says {partial.size}",
            "the release server holds another file, or something on the way answers in its place",
        )
    etag = answer.header("ETag") or ""
    partial.restart(etag if etag.startswith('"') else answer.header("Last-Modified") or "")
    return True


def _receive(answer: Answer, partial: Partial, told: _Told, watch: Watch) -> None:
    """Write the body behind what is held, to its end.

    Raises:
        Broken: it broke off (what came is kept), or is longer than the wanted file (nothing is).
        HostError: the disk did not take it.
    """
    watch.begin(body=True)
    started = False
    while data := answer.read(min(CHUNK_BYTES, partial.size + 1 - partial.held)):
        if partial.held + len(data) > partial.size:
            partial.drop()
            raise answer.unexpected(f"the body is longer than the {partial.size} bytes of the manifest")
        partial.write(data)
        if not started:
            started = True
            steps.reached("download-started")
        told.now_and_then(partial.held, watch)
    if partial.held < partial.size:
        held = partial.held
        if answer.chunked:
            partial.drop()  # whole, by its own word: another file, not a cut one
        raise answer.unexpected(f"the body ended after {held} of {partial.size} bytes")


@contextmanager
def _numbers(partial: Partial, watch: Watch) -> Iterator[None]:
    """Tell what broke with how far it came."""
    try:
        yield
    except Broken as error:
        raise DownloadFailed(
            f"{error}; {watch.bytes_moved} bytes moved at {watch.rate():.0f} bytes/s, "
            f"{partial.held} of {partial.size} are kept",
            error.hint,
            retry_after=error.retry_after,
        ) from error
