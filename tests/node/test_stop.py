"""SIGTERM: whatever the agent is waiting for, it is gone within a second, and nothing of it stays behind.

In this process, by the very loop that `bcd node` runs; a thread sends the signal once the agent is where it is to be.
"""

import asyncio
import gc
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bcd.lab.behaviour import SILENT
from bcd.lab.gateway import Gateway
from bcd.lab.pki import Authority
from bcd.node.agent import Agent, Ending
from bcd.node.client import SOCKET_NAME
from bcd.node.main import _run
from tests.core.node_root import make_release, quick_node
from tests.node.stations import NODE_ID, Station

ONE = make_release("1.1.0", 11)


@pytest.fixture
def station(tmp_path: Path, lab_authority: Authority, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> Station:
    """A node that runs 1.0.0."""
    return Station(quick_node(tmp_path, monkeypatch), gateway, lab_authority)


def stop(agent: Agent, there: Callable[[], object], number: int = signal.SIGTERM) -> float:
    """Run an agent until a signal, sent when it is `there`, ends it; the seconds that this took."""
    over = threading.Event()
    sent: list[float] = []
    arrived: list[bool] = []

    def send() -> None:
        until = time.monotonic() + 10
        while not (came := bool(there())) and time.monotonic() < until:
            if over.wait(0.005):
                return
        arrived.append(came)
        sent.append(time.monotonic())
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        ending = _run(agent)
    finally:
        over.set()
        thread.join()
    took = time.monotonic() - sent[0]
    assert arrived == [True], "it never came to where the signal was to meet it"
    assert ending is Ending.STOPPED
    return took


def is_shown(agent: Agent, state: str) -> Callable[[], bool]:
    """Whether the agent shows its session to be in a state."""
    live: Any = agent._live
    return lambda: live._state["session"]["state"] == state


def towards(station: Station, url: str) -> Station:
    """The same station with another gateway."""
    station.node.config = station.node.config._replace(node=station.node.config.node._replace(gateway=url))
    return station


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_in_a_welcomed_session(station: Station, number: int) -> None:
    """It says goodbye on the way."""
    agent = station.agent()
    assert stop(agent, is_shown(agent, "welcomed"), number) < 1
    goodbye = {"type": "bye", "reason": "bcd 1.0.0 ends"}
    assert station.gateway.wait(NODE_ID, lambda page: page.frames[-1].body == goodbye, 5)


def test_before_a_gateway_that_keeps_silent(station: Station) -> None:
    """The welcome is not waited for."""
    station.behave(SILENT)
    assert stop(station.agent(), lambda: station.page.sessions) < 1


@contextmanager
def black_hole() -> Iterator[int]:
    """A port whose backlog is full: a connection to it is never made and never refused."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            with suppress(BlockingIOError):
                one.connect(listener.getsockname())
        yield listener.getsockname()[1]
        for one in waiting:
            one.close()


def test_while_it_connects_to_a_black_hole(station: Station) -> None:
    """TCP's own patience is minutes."""
    with black_hole() as port:
        agent = towards(station, f"wss://127.0.0.1:{port}/").agent()
        at = time.monotonic()
        connecting = is_shown(agent, "connecting")
        assert stop(agent, lambda: connecting() and time.monotonic() > at + 0.2) < 1


def test_in_a_handshake_that_is_not_answered(station: Station) -> None:
    """Something took the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        agent = towards(station, f"wss://127.0.0.1:{listener.getsockname()[1]}/").agent()
        taken: list[socket.socket] = []

        def hello() -> bool:
            with suppress(BlockingIOError):
                taken.append(listener.accept()[0])
            return bool(taken)

        assert stop(agent, hello) < 1
        for one in taken:
            one.close()


def test_between_two_tries(station: Station) -> None:
    """The pause is not waited for."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    agent = towards(station, f"wss://127.0.0.1:{port}/").agent()
    live: Any = agent._live
    assert stop(agent, lambda: live._state["session"].get("retry_at")) < 1


def test_while_a_name_server_does_not_answer(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver's thread is left behind: an interpreter, or an exec, waits for nobody."""
    asked, release = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> Any:
        asked.set()
        release.wait(20)
        raise socket.gaierror(socket.EAI_AGAIN, "at last")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        assert stop(towards(station, "wss://gateway.example.com/").agent(), asked.is_set) < 1
    finally:
        release.set()


@pytest.mark.parametrize("hung", ["the-download", "the-look-at-the-disk", "the-settle"])
def test_while_a_thread_hangs(station: Station, monkeypatch: pytest.MonkeyPatch, hung: str) -> None:
    """A server or a disk that does not answer: the thread is left behind (ADR 0006)."""
    begun, release = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> Any:
        begun.set()
        release.wait(20)
        raise OSError("at last")

    manager = station.node.manager()
    settled = manager.settle()
    match hung:
        case "the-download":
            monkeypatch.setattr(station.shelf, "fetch", hang)
        case "the-look-at-the-disk":
            monkeypatch.setattr(manager, "prepare", hang)
        case "the-settle":
            monkeypatch.setattr("bcd.node.agent._SETTLE_AGAIN_SECONDS", 0.01)
            monkeypatch.setattr(manager, "settle", hang)
    station.gateway.push_section(NODE_ID, ONE.section)
    try:
        assert stop(station.agent(manager, None if hung == "the-settle" else settled), begun.is_set) < 1
    finally:
        release.set()


def test_without_a_gateway(station: Station) -> None:
    """There is nothing to wait for, and it can be stopped all the same."""
    station.node.config = station.node.config._replace(node=station.node.config.node._replace(gateway=None))
    agent = station.agent()
    assert stop(agent, lambda: os.path.exists(station.live_socket)) < 1


def test_with_somebody_looking(station: Station, caplog: pytest.LogCaptureFixture) -> None:
    """Clients of the live state are let go, and no task of the loop is left for the collector to complain about."""
    agent = station.agent()
    clients: list[socket.socket] = []

    def look() -> bool:
        if not clients and station.page.welcomed() is not None:
            client = socket.socket(socket.AF_UNIX)
            handle = os.open(station.node.config.node.data_dir, os.O_PATH)
            client.connect(f"/proc/self/fd/{handle}/{SOCKET_NAME}")
            os.close(handle)
            client.settimeout(5)
            assert client.recv(1)
            clients.append(client)
        return bool(clients)

    with caplog.at_level(logging.WARNING):
        assert stop(agent, look) < 1
        del agent
        gc.collect()
    while clients[0].recv(65_536):
        pass
    clients[0].close()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_a_second_signal_changes_nothing(station: Station) -> None:
    """Whoever is impatient does not break its goodbye."""
    agent = station.agent()
    close = agent._session.close

    async def close_slowly(reason: str) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.02)
        await close(reason)

    agent._session.close = close_slowly  # type: ignore[method-assign]  # in the middle of its end
    assert stop(agent, is_shown(agent, "welcomed")) < 1
    goodbye = {"type": "bye", "reason": "bcd 1.0.0 ends"}
    assert station.gateway.wait(NODE_ID, lambda page: page.frames[-1].body == goodbye, 5)
