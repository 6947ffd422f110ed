"""What systemd is told of a start, an exec and an end; by a socket of ours in its place."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from bcd.core.notify import leaving, notify, ready, staying


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listening


def said(manager: socket.socket) -> list[str]:
    return manager.recv(4096).decode().split("\n")


def test_ready_lifts_whatever_limit_the_binary_before_set(manager: socket.socket) -> None:
    ready("bcd 1.4.1 runs as node")
    assert said(manager) == ["READY=1", "WATCHDOG_USEC=0", "STATUS=bcd 1.4.1 runs as node"]


def test_an_exec_has_a_minute_and_one_that_failed_none(manager: socket.socket) -> None:
    leaving()
    staying()
    assert said(manager)[0] == "WATCHDOG_USEC=60000000"
    assert said(manager) == ["WATCHDOG_USEC=0"]


def test_a_status_from_outside_can_add_no_assignment(manager: socket.socket) -> None:
    """A line of its own would be one more thing that systemd is told."""
    ready("a\nMAINPID=1")
    assert said(manager) == ["READY=1", "WATCHDOG_USEC=0", "STATUS=a\\x0aMAINPID=1"]


@pytest.mark.parametrize("path", ["", "relative", "/nonexistent/notify", "@bcd-test-nobody-listens"])
def test_where_nobody_listens_nothing_happens(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    notify("READY=1")


def test_a_manager_that_reads_nothing_holds_nobody_up(manager: socket.socket) -> None:
    for _ in range(2000):
        if not _fits(manager):
            break
    notify("READY=1")


def _fits(manager: socket.socket) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        try:
            sender.sendto(b"x", manager.getsockname())
        except BlockingIOError:
            return False
    return True
