"""The watch over one download: ends it from outside when it stalls or when it is called off.

The accidents (field report 15): a limit on the whole time kills a slow but live transfer; no limit lets a dead one
hang; a limit on each read is fed for ever by one byte now and then. So: a sliding window, judged by a thread of its
own, over everything that follows the name lookup: connecting, TLS, a proxy's answer, headers, body.

How it ends a transfer: by shutting down a duplicate of its socket, which wakes whoever reads or waits. Closing the
reader's own would free its number for the next file opened, and shutting down an `SSLSocket` from another thread makes
it forget its TLS, so that a read under way may return ciphertext as if it were the body.
"""

import socket
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Literal, NamedTuple, Self

from bcd.core.errors import HostError

LEAST_BYTES = 16 * 1024
"""What a body must move in each window of `idle_seconds`."""
_TICK_SECONDS = 0.25
_TICKS_A_WINDOW = 20
_RATE_SECONDS = 5.0

Verdict = Literal["cancelled", "stalled"]


class Broken(Exception):
    """A transfer that did not work, in words; whoever catches it adds how far it came.

    Attributes:
        hint: what to do about it; may be empty.
        retry_after: seconds that the server asks to wait for, or None.
    """

    def __init__(self, cause: str, hint: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(cause)
        self.hint = hint
        self.retry_after = retry_after


class _Sample(NamedTuple):
    at: float
    bytes_moved: int


class Watch:
    """A context manager: the watching thread lives inside of it.

    Args:
        cancelled: set by whoever calls the download off.
        idle_seconds: the length of the window.
    """

    def __init__(self, cancelled: threading.Event, idle_seconds: float) -> None:
        self.idle_seconds = idle_seconds
        self.bytes_moved = 0
        """Bytes of bodies so far, over all requests."""
        self._cancelled = cancelled
        self._verdict: Verdict | None = None
        self._in_body = False
        self._samples = deque([_Sample(time.monotonic(), 0)])
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bcd-download-watch", daemon=True)

    def __enter__(self) -> Self:
        try:
            self._thread.start()
        except RuntimeError as error:  # a limit on threads (TasksMax=)
            raise HostError("io-error", f"could not watch over the download: {error}") from error
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        if self._socket is not None:
            self._socket.close()

    @property
    def verdict(self) -> Verdict | None:
        """Why the transfer must end, or None.

        Set before the connection is shut down: a reader who looks here tells an end that was made from one that came.
        """
        if self._cancelled.is_set():
            return "cancelled"
        return self._verdict

    def check(self, place: str = "") -> None:
        """Raise the verdict as `Broken`, if there is one, about what was going on at `place`."""
        if self.verdict is not None:
            raise Broken(f"{place}: {self.why()}" if place else self.why())

    def why(self) -> str:
        """The verdict as a sentence."""
        if self.verdict == "cancelled":
            return "the download was stopped"
        if self._in_body:
            return f"the transfer stalled: less than {LEAST_BYTES} bytes in {self.idle_seconds:g} s"
        return f"no answer within {self.idle_seconds:g} s"

    def begin(self, *, body: bool) -> None:
        """Open a new window: a wait for an answer (nothing moves, so it lasts one window), or a body."""
        with self._lock:
            self._in_body = body
            self._samples = deque([_Sample(time.monotonic(), self.bytes_moved)])

    def guard(self, connection: socket.socket) -> None:
        """Hold on to a connection that is about to be made, so that it can be shut down; one made after the verdict is, at the next tick."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = connection.dup()

    def moved(self, size: int) -> None:
        """Count `size` more bytes of body."""
        with self._lock:
            self.bytes_moved += size

    def rate(self) -> float:
        """Bytes a second over the last few seconds of this window."""
        now = time.monotonic()
        with self._lock:
            since = next((sample for sample in self._samples if sample.at >= now - _RATE_SECONDS), self._samples[-1])
            return (self.bytes_moved - since.bytes_moved) / max(now - since.at, 0.001)

    def _run(self) -> None:
        tick = min(_TICK_SECONDS, self.idle_seconds / _TICKS_A_WINDOW)
        while not self._done.wait(tick):
            with self._lock:
                if self._verdict is None and self._stalled(time.monotonic()):
                    self._verdict = "stalled"
                # At each tick, not once: the reader may be just about to open the next connection.
                if self.verdict is not None:
                    self._shut_down()

    def _stalled(self, now: float) -> bool:
        """Take a sample, keep one that is a whole window old, and judge what moved since."""
        samples = self._samples
        samples.append(_Sample(now, self.bytes_moved))
        while len(samples) > 1 and samples[1].at <= now - self.idle_seconds:
            samples.popleft()
        oldest = samples[0]
        return oldest.at <= now - self.idle_seconds and self.bytes_moved - oldest.bytes_moved < LEAST_BYTES

    def _shut_down(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # not connected yet, or not any more
                self._socket.shutdown(socket.SHUT_RDWR)
