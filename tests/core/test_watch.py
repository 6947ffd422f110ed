"""The rule that ends a transfer: less than 16 KiB in a window (field report 15)."""

import socket
import threading

import pytest

from bcd.core.errors import HostError
from bcd.core.watch import LEAST_BYTES, Broken, Watch

WINDOW = 30.0
TICK = 0.25


def ends_at(moves: dict[float, int], until: float = 200.0) -> float | None:
    """Let bytes arrive at these seconds, and return when the transfer is ended, in a world without threads."""
    watch = Watch(threading.Event(), WINDOW)
    watch.begin(body=True)
    start = watch._samples[0].at
    for tick in range(1, int(until / TICK) + 1):
        now = tick * TICK
        watch.moved(sum(size for at, size in moves.items() if now - TICK < at <= now))
        if watch._stalled(start + now):
            return now
    return None


@pytest.mark.parametrize(
    ("moves", "ended"),
    [
        ({}, 30.0),
        ({1.0: LEAST_BYTES - 1}, 30.0),
        ({1.0: LEAST_BYTES}, 31.0),
        ({30.0: LEAST_BYTES}, 60.0),
        ({1.0: 10**9}, 31.0),
        ({20.0 * n: 1 for n in range(20)}, 30.0),
        ({15.0 * n: LEAST_BYTES // 2 for n in range(1, 14)}, None),
        ({15.0 * n: LEAST_BYTES // 2 - 1 for n in range(1, 14)}, 30.0),
        ({float(n): 40_000 for n in range(200)}, None),
        ({float(n): 40_000 for n in range(100)}, 129.0),
    ],
    ids=[
        "nothing",
        "one-byte-too-few",
        "enough-once",
        "at-the-last-moment",
        "a-burst-then-nothing",
        "a-byte-each-20-s",
        "just-enough",
        "just-too-little",
        "slow-but-live",
        "live-then-dead",
    ],
)
def test_a_transfer_ends_when_a_window_moved_too_little(moves: dict[float, int], ended: float | None) -> None:
    """At once then, and never before; a transfer that goes on has no limit."""
    assert ends_at(moves) == ended


def test_memory_of_the_past_is_one_window() -> None:
    """Days of transfer keep no more samples than half a minute."""
    watch = Watch(threading.Event(), WINDOW)
    for tick in range(10_000):
        watch.moved(LEAST_BYTES)
        assert not watch._stalled(watch._samples[-1].at + TICK), tick
    assert len(watch._samples) <= WINDOW / TICK + 2


def test_a_connection_made_after_the_verdict_is_shut_down_too() -> None:
    """The reader may have been between two requests."""
    cancelled = threading.Event()
    one, other = socket.socketpair()
    with Watch(cancelled, WINDOW) as watch, one, other:
        cancelled.set()
        watch.guard(one)
        assert one.recv(1) == b""
        with pytest.raises(Broken, match="here: the download was stopped"):
            watch.check("here")


def test_the_duplicate_is_closed_with_the_watch() -> None:
    """Or the connection would outlive its download."""
    ours, theirs = socket.socketpair()
    with theirs:
        with Watch(threading.Event(), WINDOW) as watch, ours:
            watch.guard(ours)
        assert theirs.recv(1) == b""


def test_no_thread_to_be_had_is_this_hosts_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on tasks is no foreign exception."""

    def fail(_: threading.Thread) -> None:
        message = "can't start new thread"
        raise RuntimeError(message)

    monkeypatch.setattr(threading.Thread, "start", fail)
    with pytest.raises(HostError, match="can't start new thread") as caught, Watch(threading.Event(), WINDOW):
        pass
    assert caught.value.code == "io-error"
