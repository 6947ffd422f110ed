"""The node taken over: processes of its uid, with whatever they like in `data_dir` and on the socket."""

import ctypes
import json
import os
import resource
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from bcd.helper import wire
from tests.core.node_root import Release
from tests.helper.world import UID, World, request

_PR_SET_DUMPABLE = 4
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_SECONDS = 40


class Told(NamedTuple):
    """What an attack brought back."""

    outcome: str
    """`ok`, an error's code, or a word of the attack's own."""
    heard: str
    """All that the helper said, for the search for root's secrets; latin-1."""


class Attacker:
    """What such a process does."""

    def __init__(self, world: World) -> None:
        self.data = world.data
        self.staging = world.data / "staging"
        self.root = world.root
        self.socket = world.socket
        self.heard = bytearray()
        self.word = -1

    def so_far(self) -> None:
        """Tell the test that it may look."""
        os.write(self.word, b" ")

    def connect(self) -> socket.socket:
        """A connection to the helper."""
        made = socket.socket(socket.AF_UNIX)
        made.connect(self.socket)  # waiting, where the helper's queue is full
        made.settimeout(20)
        return made

    def line(self, connection: socket.socket) -> dict[str, Any]:
        """The next answer; `{"code": "closed"}` at the end."""
        read = bytearray()
        with suppress(ConnectionResetError, BrokenPipeError):
            while not read.endswith(b"\n"):
                chunk = connection.recv(1)
                if not chunk:
                    break
                read += chunk
        self.heard += read
        answer = json.loads(read) if read.endswith(b"\n") else {"code": "closed"}
        assert isinstance(answer, dict)
        return answer

    def say(self, data: bytes) -> dict[str, Any]:
        """Say something and hear one answer."""
        with self.connect() as connection:
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(data)
            return self.line(connection)

    def ask(self, method: str, params: object = None) -> dict[str, Any]:
        """Ask one question."""
        return self.say(request(method, params))

    def swap(self, release: Release, **changes: object) -> dict[str, Any]:
        """Ask for a swap; `changes` are of the parameters."""
        return self.ask(wire.SWAP, {"spec": release.section, "server_time": None, "command_id": "c1", **changes})

    def stage(self, release: Release, data: bytes | None = None) -> Path:
        """Put a file where the download of a release lies."""
        path = self.staging / f"bcd-{release.version}"
        path.write_bytes(release.data if data is None else data)
        return path

    @contextmanager
    def meanwhile(self, work: Callable[[], None]) -> Iterator[None]:
        """Do something again and again, beside."""
        stop = threading.Event()

        def again() -> None:
            while not stop.is_set():
                with suppress(OSError):
                    work()

        thread = threading.Thread(target=again)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def exchange(one: Path, other: Path) -> None:
    """Let two names trade places at once (renameat2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def outcome(answer: dict[str, Any] | str) -> str:
    """An answer in one word."""
    if isinstance(answer, str):
        return answer
    return "ok" if answer.get("ok") is True else str(answer["code"])


def attack(world: World, play: Callable[[Attacker], dict[str, Any] | str], *, uid: int = UID) -> Told:
    """Play an attack in a process of another user."""
    with started(world, play, uid=uid) as running:
        return running.ended()


class Running:
    """An attacker at work."""

    def __init__(self, pid: int, source: int) -> None:
        self.pid = pid
        self._source = source
        self._status: int | None = None

    def ended(self) -> Told:
        """Wait for its end, and tell what it brought back."""
        with open(self._source, "rb", closefd=False) as source:
            data = source.read()
        self.reap()
        assert self._status == 0, f"the attacker itself failed: {self._status}"
        return Told(*json.loads(data))

    def wait_for_word(self) -> None:
        """Wait until it says that it is so far."""
        assert os.read(self._source, 1) == b" "

    def reap(self) -> int:
        """Its exit status, or minus the signal that ended it."""
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status

    def kill(self) -> None:
        """End it."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.reap()


@contextmanager
def started(world: World, play: Callable[[Attacker], dict[str, Any] | str], *, uid: int = UID) -> Iterator[Running]:
    """The same, beside the test; killed at the end."""
    source, target = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the runner's threads hold no lock that is needed here
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(source)
            _become(uid)
            attacker = Attacker(world)
            attacker.word = target
            told = outcome(play(attacker))
            with open(target, "wb") as to:
                to.write(json.dumps([told, attacker.heard.decode("latin-1")]).encode())
            status = 0
        except BaseException:  # noqa: BLE001  # whatever it is, it must not go on as a second test run
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    os.close(target)
    running = Running(pid, source)
    try:
        yield running
    finally:
        running.kill()
        os.close(source)


def _become(uid: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.alarm(_SECONDS)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    # As every process is that was started and not only forked; without it its /proc is root's, and nobody holds it.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    os.umask(0o022)


def wait_until(happened: Callable[[], bool], seconds: float = 15.0) -> None:
    """Wait for something; waiting in vain is a failure."""
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def remove(path: Path) -> None:
    """Remove whatever it is."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
