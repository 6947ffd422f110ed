"""A node that is split in two, for the attacks: root's places in a directory of root's alone, a real `bcd helper`.

The node's user is a number that nobody else has. Its half is played by `tests.helper.attacker`, in processes of that
uid. Everything of root's is compared as one value: names, types, owners, modes, links and bytes.
"""

import json
import os
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bcd.core.build import Build
from bcd.core.clock import SystemClock
from bcd.core.config import load_config
from bcd.core.errors import BcdError
from bcd.core.manager import Manager
from bcd.core.service import NoServiceManager
from bcd.core.wayin import way_to
from bcd.helper import wire
from bcd.helper.client import ask_info
from tests.core.node_root import make_release, program, signing_keys, version_of

UID = 61_234
"""The node's user."""
OTHER_UID = 61_235
"""Somebody else's."""
TREE = Path(__file__).parent.parent.parent
SERVED_SECONDS = 1.0
"""Within which whoever asks must be answered, whatever another client does."""

_LATER = int(time.time()) + 365 * 86_400
ONE = make_release("1.1.0", 11, expires_at=_LATER)
TWO = make_release("1.2.0", 12, expires_at=_LATER)
GONE = make_release("1.3.0", 13, expires_at=int(time.time()) - 3600)
OLD = make_release("1.0.5", 5, expires_at=_LATER)
BIG = make_release("1.4.0", 14, expires_at=_LATER, data=program("1.4.0") + b"#" * 4_000_000)


@cache
def why_not() -> str | None:
    """Why there can be no attack here; None where there can."""
    if os.geteuid() != 0:
        return "needs root and a second user"
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        return "needs mount namespaces, which this container does not give"
    if _roots_place() is None:
        return "needs a directory that is root's alone (/run, /var/lib or /root)"
    return None


def _roots_place() -> str | None:
    for place in ("/run", "/var/lib", "/root"):
        if os.path.isdir(place) and os.access(place, os.W_OK) and all(step.is_roots_alone for step in way_to(place)):
            return place
    return None


@contextmanager
def roots_directory() -> Iterator[Path]:
    """A directory of root's alone, which pytest's own, below the sticky /tmp, is not."""
    place = _roots_place()
    assert place is not None
    made = Path(tempfile.mkdtemp(prefix="bcd-attacks-", dir=place))
    made.chmod(0o755)
    try:
        yield made
    finally:
        shutil.rmtree(made)


class Entry(NamedTuple):
    """One name of root's."""

    kind: int
    mode: int
    uid: int
    gid: int
    content: bytes
    """A file's bytes or a link's target."""


Tree = dict[str, Entry]


class World:
    """The two halves' disk, and the helper that runs on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.secret = secrets.token_hex(16).encode()
        self.data = root / "data"
        self.slots = root / "lib" / "bcd"
        self.socket = str(root / "run" / "helper.sock")
        self.config_path = str(root / "etc" / "config.toml")
        self.log = root / "helper.log"
        self._helper: subprocess.Popen[bytes] | None = None
        self._starts: dict[str, Tree] = {}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", lambda _: None)  # no power fails while a test is made ready
            self._make()

    # -- its disk -------------------------------------------------------------------------------------------------

    def _make(self) -> None:
        for name in ("bin", "lib", "run", "etc"):
            (self.root / name).mkdir(mode=0o755)
        (self.root / "secret").write_bytes(self.secret)
        (self.root / "secret").chmod(0o600)
        (self.root / "bin" / "bcd").write_bytes(program("1.0.0"))
        (self.root / "bin" / "bcd").chmod(0o755)
        self.configure()
        self.empty_data()
        manager = self.manager()
        manager.settle()
        self.stage(ONE.version, ONE.data)
        manager.swap(ONE.section, server_time=None, command_id=None)
        manager.settle()
        manager.confirm()
        self._starts["updated"] = self.tree()
        self.stage(TWO.version, TWO.data)
        manager.swap(TWO.section, server_time=None, command_id="c1")
        self._starts["swapped"] = self.tree()

    def configure(self, **changes: str) -> None:
        """Write root's configuration; `changes` are other values of its keys."""
        pins = ",".join(key.pin for key in signing_keys())
        values = {
            "data_dir": str(self.data),
            "slots_dir": str(self.slots),
            "entrypoint": str(self.root / "bin" / "bcd"),
            "socket": self.socket,
            "node_user": str(UID),
            **changes,
        }
        text = (
            '[node]\ndata_dir = "{data_dir}"\n'
            f'[update]\nrelease_pins = "{pins}"\nslots_dir = "{{slots_dir}}"\nentrypoint = "{{entrypoint}}"\n'
            '[helper]\nnode_user = "{node_user}"\nsocket = "{socket}"\n'
        ).format(**values)
        Path(self.config_path).write_text(text)

    def manager(self) -> Manager:
        """Root's own, in this process."""
        return Manager(
            config=load_config(self.config_path),
            build=Build("1.0.0", 0, 0, fakehw=False),
            clock=SystemClock(),
            service=NoServiceManager(),
            staging_owner=UID,
            ask=version_of,
        )

    def empty_data(self) -> None:
        """The node's half as it is after an installation."""
        shutil.rmtree(self.data, ignore_errors=True)
        for path in (self.data, self.data / "staging"):
            path.mkdir(mode=0o755)
            os.chown(path, UID, UID)

    def stage(self, version: str, data: bytes) -> None:
        """What the node's download leaves."""
        path = self.data / "staging" / f"bcd-{version}"
        path.write_bytes(data)
        os.chown(path, UID, UID)

    def reset(self, start: str) -> None:
        """Bring the disk to one of the starts: `updated` (on 1.1.0), `swapped` (1.2.0 pending), `late` (overdue by a second)."""
        self.empty_data()
        wanted = self._starts["updated" if start == "updated" else "swapped"]
        for name, found in self.tree().items():
            if name.startswith("lib/bcd/") and wanted.get(name) != found:
                (self.root / name).unlink()
        for name, entry in wanted.items():
            path = self.root / name
            if not name.startswith("lib/bcd/") or os.path.lexists(path):
                continue
            if stat.S_ISLNK(entry.kind):
                path.symlink_to(os.fsdecode(entry.content))
            else:
                path.write_bytes(entry.content)
                path.chmod(entry.mode)
        if start != "updated":
            self.age(121 if start == "late" else 0)

    def age(self, seconds: float) -> None:
        """Let the pending swap be that long ago, by the boot clock, which decides; and another swap for whoever remembers."""
        path = self.slots / "upgrade.json"
        record = json.loads(path.read_bytes())
        record["swapped_boottime"] = SystemClock().boottime() - seconds
        record["swap_id"] = secrets.token_hex(16)
        fresh = path.with_name(".fresh")
        fresh.write_text(json.dumps(record))
        fresh.rename(path)

    def tree(self) -> Tree:
        """All of root's, but the helper's log, the history and the socket."""
        found: Tree = {}
        for directory, folders, files in os.walk(self.root):
            if directory == str(self.root):
                folders[:] = [name for name in folders if name != "data"]
            for name in (*folders, *files):
                path = os.path.join(directory, name)
                looked = os.lstat(path)
                content = b""
                if stat.S_ISLNK(looked.st_mode):
                    content = os.fsencode(os.readlink(path))
                elif stat.S_ISREG(looked.st_mode):
                    content = Path(path).read_bytes()
                mode = stat.S_IMODE(looked.st_mode)
                entry = Entry(stat.S_IFMT(looked.st_mode), mode, looked.st_uid, looked.st_gid, content)
                found[os.path.relpath(path, self.root)] = entry
        return {
            name: entry
            for name, entry in found.items()
            if not name.startswith(("run/", "helper.log", "lib/bcd/history.jsonl"))
        }

    def json(self, name: str) -> dict[str, Any]:
        """A record; empty where there is none."""
        try:
            found = json.loads((self.slots / name).read_bytes())
        except FileNotFoundError:
            return {}
        assert isinstance(found, dict)
        return found

    def state(self) -> str:
        """Which of the states that the rules know root's half is in, every byte looked at.

        `updated`, `swapped`, `confirmed`, `back` (rolled back, not settled), `failed`; an assertion where it is in none.
        """
        names = {name.removeprefix("lib/bcd/"): entry for name, entry in self.tree().items() if "lib/bcd/" in name}
        known = {"bcd-a", "bcd-b", "current", "previous", "slots.json", "update.json", "update.lock"}
        extra = set(names) - known
        assert known <= set(names), names.keys()
        assert extra <= {"upgrade.json", "rolled-back"}, extra
        for name, entry in names.items():
            assert (entry.uid, entry.gid) == (0, 0), name
            wanted = {"bcd-a": 0o755, "bcd-b": 0o755, "update.lock": 0o600, "current": 0o777, "previous": 0o777}
            assert entry.mode == wanted.get(name, 0o644), (name, oct(entry.mode))
        recorded = self.json("slots.json")
        for slot in ("a", "b"):
            record = recorded[slot]
            assert names[f"bcd-{slot}"].content == program(record["version"]), slot
        current, update = names["current"].content.decode(), self.json("update.json")
        pending = "upgrade.json" in extra
        runs = recorded[current.removeprefix("bcd-")]["version"]
        failed = [entry["version"] for entry in update["failed"]]
        situation = (runs, pending, "rolled-back" in extra, update["sequence"], failed)
        return {
            "('1.1.0', False, False, 11, [])": "updated",
            "('1.2.0', True, False, 11, [])": "swapped",
            "('1.2.0', False, False, 12, [])": "confirmed",
            "('1.1.0', True, True, 11, [])": "back",
            "('1.1.0', False, False, 11, ['1.2.0'])": "failed",
        }[repr(situation)]

    def state_is(self, state: str) -> bool:
        """Whether it is in that state by now; between two steps it is in none."""
        try:
            return self.state() == state
        except (AssertionError, KeyError, OSError, ValueError):
            return False

    # -- its helper -----------------------------------------------------------------------------------------------

    def start(self, *, script: tuple[str, ...] = (), seconds: float = 30.0) -> None:
        """Start the helper, in a mount namespace of its own, and wait for it. `script` runs in its place."""
        what = script or ("-c", "from bcd.cli import entry; entry()", "helper", "--config")
        words = ["unshare", "--mount", "--propagation", "private", sys.executable, *what, self.config_path]
        environment = {**os.environ, "PYTHONPATH": str(TREE)}
        with self.log.open("ab") as log:
            self._helper = subprocess.Popen(words, cwd="/", env=environment, stderr=log, stdin=subprocess.DEVNULL)
        until = time.monotonic() + seconds
        while not self._answers():
            assert self._helper.poll() is None, self.log.read_text()
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            ask_info(self.socket, 5.0)
        except BcdError:
            return False
        return True

    @property
    def helper(self) -> subprocess.Popen[bytes]:
        """The helper's process."""
        assert self._helper is not None
        return self._helper

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End the helper and return its status."""
        helper = self.helper
        helper.send_signal(number)
        self._helper = None
        return helper.wait(15)

    def end(self) -> None:
        """Kill the helper where it runs."""
        if self._helper is not None and self._helper.poll() is None:
            self.stop(signal.SIGKILL)

    def inside(self, *command: str) -> None:
        """Run a command of root's where the helper sees its mounts."""
        subprocess.run(["nsenter", "-t", str(self.helper.pid), "-m", "--", *command], check=True)

    def serves(self) -> float:
        """Ask who answers, as root, and return how long it took. Fails where that was too long."""
        began = time.monotonic()
        ask_info(self.socket, 10.0)
        took = time.monotonic() - began
        assert took < SERVED_SECONDS, took
        return took


def request(method: str, params: object = None, **more: object) -> bytes:
    """One line."""
    document = {"protocol": wire.PROTOCOL, "method": method, "params": {} if params is None else params, **more}
    return json.dumps(document).encode() + b"\n"
