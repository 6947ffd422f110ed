"""Several processes on one node at once, and who looks on meanwhile (field reports 21, 28, 40)."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from bcd.core.errors import HostError
from bcd.core.lock import locked
from bcd.core.manager import Manager
from tests.core.node_root import Node, Process, Release, make_release, quick_directory, quick_node
from tests.core.update_stories import STORIES, Scene

ONE = make_release("1.1.0", 11)
TWO = make_release("1.2.0", 12)
THREE = make_release("1.3.0", 13)
WON, LOST = 10, 11


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where fsync takes no time, so that two really meet."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    with quick_directory(tmp_path) as made:
        yield made / "node"


def at_once(*works: Callable[[], object]) -> list[int]:
    """Run each in a process of its own, all let go at one instant."""
    gate, opened = os.pipe()

    def work(one: Callable[[], object]) -> object:
        os.close(opened)
        os.read(gate, 1)
        return one()

    processes = [Process(partial(work, one)) for one in works]
    os.close(gate)
    os.close(opened)
    return [process.ended() for process in processes]


def try_swap(node: Node, release: Release) -> int:
    """Swap, and say whether this process won."""
    manager = node.manager()
    try:
        manager.swap(release.section, server_time=None, command_id=None)
    except HostError as error:
        return LOST if error.code == "update-in-progress" and error.retryable else 1
    return WON


@pytest.mark.parametrize("name", ["first swap", "swap", "swap after an install"])
def test_of_two_swaps_at_once_one_wins(root: Path, name: str) -> None:
    """The other may try again later; what is current is the winner's, whole, and it is confirmed."""
    scene = Scene(root, STORIES[name])
    node = scene.node
    for _ in range(8):
        scene.begin()
        for release in (TWO, THREE):
            node.stage(release)
        statuses = at_once(partial(try_swap, node, TWO), partial(try_swap, node, THREE))
        assert sorted(statuses) == [WON, LOST]
        winner = (TWO, THREE)[statuses.index(WON)]
        assert node.runs() == winner.version
        node.start()
        assert node.manager().confirm() is not None
        assert node.floor() == winner.sequence
        node.start()
        assert not [path for path in node.tree() if path.endswith(".tmp")]


def confirm(manager: Manager) -> int:
    """Whether this process confirmed."""
    return WON if manager.confirm() is not None else LOST


def roll_back(manager: Manager) -> int:
    """Whether this process went back."""
    return WON if manager.rollback(way="deadline") else LOST


def test_a_welcome_at_the_very_deadline_is_confirmed_or_gone_back_from(root: Path) -> None:
    """Never both, never neither."""
    scene = Scene(root, STORIES["rollback"])
    for _ in range(8):
        manager = scene.begin()
        confirmed, back = at_once(partial(confirm, manager), partial(roll_back, manager))
        assert sorted((confirmed, back)) == [WON, LOST]
        assert scene.node.runs() == ("1.2.0" if confirmed == WON else "1.1.0")
        scene.node.start()
        assert scene.node.floor() == (12 if confirmed == WON else 11)


def test_two_starts_at_once_settle_once(root: Path) -> None:
    """A second service, or an operator's `bcd node` beside the service's: the failure is recorded once."""
    scene = Scene(root, STORIES["settle a rollback"])
    for _ in range(5):
        manager = scene.begin()
        statuses = at_once(*(lambda: WON if manager.settle().failed is not None else LOST for _ in range(3)))  # noqa: B023  # run at once
        assert sorted(statuses) == [WON, LOST, LOST]
        assert list(manager.look.failed()) == ["1.2.0"]


def test_a_holder_that_is_killed_frees_the_lock(root: Path) -> None:
    """At once, however it died."""
    scene = Scene(root, STORIES["swap"])
    scene.begin()
    node = scene.node
    told, tell = os.pipe()

    def hold() -> None:
        with locked(node.layout.records_dir, 0.0):
            os.write(tell, b"!")
            time.sleep(600)

    holder = Process(hold)
    assert os.read(told, 1) == b"!"
    assert try_swap(node, TWO) == LOST
    assert holder.killed() == -signal.SIGKILL
    assert try_swap(node, TWO) == WON
    os.close(told)
    os.close(tell)


def test_what_an_exec_inherits_does_not_hold_the_lock(root: Path) -> None:
    """The lock's descriptor is closed on exec: a child that is started meanwhile frees nothing and keeps nothing."""
    scene = Scene(root, STORIES["swap"])
    scene.begin()
    with locked(scene.node.layout.records_dir, 0.0):
        inherited = [
            name
            for name in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{name}")
            and os.readlink(f"/proc/self/fd/{name}").endswith("/update.lock")
            and os.get_inheritable(int(name))
        ]
        assert inherited == []


# Looking on ----------------------------------------------------------------------------------------------------------


class Watcher(threading.Thread):
    """Reads `current`, and what it leads to, as fast as it can."""

    def __init__(self, node: Node) -> None:
        super().__init__(daemon=True)
        self._node = node
        self.done = threading.Event()
        self.seen: dict[str, int] = {}
        self.missing: list[str] = []

    def run(self) -> None:
        """Until it is done."""
        layout = self._node.layout
        while not self.done.is_set():
            try:
                target = os.readlink(layout.current)
                # As the service would start it.
                os.close(os.open(layout.entrypoint, os.O_RDONLY))
            except OSError as error:
                self.missing.append(repr(error))
            else:
                self.seen[target] = self.seen.get(target, 0) + 1


@pytest.fixture
def often() -> Iterator[None]:
    """Threads change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_current_is_there_at_every_instant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, often: None) -> None:
    """Through 50 swaps and rollbacks nobody who looks finds no launcher, or anything but a slot (field report 28)."""
    node = quick_node(tmp_path, monkeypatch)
    node.update(ONE)
    watcher = Watcher(node)
    watcher.start()
    try:
        for number in range(25):
            release = TWO if number == 0 else make_release("1.2.0", 12 + number)
            node.swap(release)
            assert node.manager().rollback(way="deadline")
            node.start()
            node.manager().clear_failed()
    finally:
        watcher.done.set()
        watcher.join(10)
    assert watcher.missing == []
    assert watcher.seen.keys() == {"bcd-a", "bcd-b"}
    assert sum(watcher.seen.values()) > 500


def test_a_reader_sees_each_record_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, often: None) -> None:
    """Status is read while it all changes: no record is ever half, and none is taken for broken."""
    node = quick_node(tmp_path, monkeypatch)
    node.update(ONE)
    done = threading.Event()
    problems: list[object] = []
    read = 0

    def look() -> None:
        nonlocal read
        while not done.is_set():
            status = node.status()
            read += 1
            problems.extend(status.problems)
            assert status.floor >= 11

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        for number in range(10):
            node.update(make_release(f"1.2.{number}", 12 + number))
    finally:
        done.set()
        looking.join(10)
    assert problems == []
    assert read > 20
