"""A node in a directory of its own, for the tests of the manager: real files and links, and a clock that is told.

`Node.start()` is what a start of the agent is to the disk: settle by whatever program the entrypoint leads to, and
again by the next one when settle says so. A program is a small script whose bytes follow from its version, so that
"it runs" can be asserted as "it is whole" without starting anything.
"""

import json
import os
import signal
import stat
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

import pytest

from bcd.core.answers import Settled
from bcd.core.build import PRODUCT, Build, this_platform
from bcd.core.clock import ManualClock
from bcd.core.config import parse_config
from bcd.core.errors import BcdError
from bcd.core.layout import layout_of
from bcd.core.manager import Manager
from bcd.core.manifest import Artifact
from bcd.core.records import PendingRecord
from bcd.core.service import NoServiceManager, ServiceManager
from bcd.core.status import Status, read_status
from bcd.release.keys import ReleaseKey, generate_key
from bcd.release.manifest import ReleaseDraft
from bcd.release.signing import sign_release

NOW = 1_800_000_000
PLATFORM = this_platform()
URL = "https://releases.example.com/bcd"

_ROOM_BYTES = 256 * 1024 * 1024
_HEAD = b"#!/bin/sh\n"


class Entry(NamedTuple):
    """One name of a tree."""

    kind: Literal["dir", "file", "link", "other"]
    mode: int
    """0 for a link, which has none of its own."""
    content: bytes
    """The bytes, or the link's target."""


Tree = dict[str, Entry]
"""Path relative to the root -> what is there."""


def read_tree(root: Path) -> Tree:
    """All of what is below `root`."""
    tree: Tree = {}
    for directory, folders, files in os.walk(root):
        for name in sorted(folders + files):
            path = os.path.join(directory, name)
            found = os.lstat(path)
            mode = stat.S_IMODE(found.st_mode)
            if stat.S_ISLNK(found.st_mode):
                entry = Entry("link", 0, os.fsencode(os.readlink(path)))
            elif stat.S_ISDIR(found.st_mode):
                entry = Entry("dir", mode, b"")
            elif stat.S_ISREG(found.st_mode):
                entry = Entry("file", mode, Path(path).read_bytes())
            else:
                entry = Entry("other", mode, b"")
            tree[os.path.relpath(path, root)] = entry
    return tree


def write_tree(root: Path, tree: Tree) -> None:
    """Make what is below `root` be `tree`."""
    root.mkdir(parents=True, exist_ok=True)
    found = read_tree(root)
    for name in sorted(found, reverse=True):
        if tree.get(name) == found[name]:
            continue
        path = root / name
        path.rmdir() if found[name].kind == "dir" else path.unlink()
    for name in sorted(tree):
        kind, mode, content = tree[name]
        path = root / name
        if found.get(name) == tree[name]:
            continue
        if kind == "link":
            path.symlink_to(os.fsdecode(content))
            continue
        if kind == "dir":
            path.mkdir()
        else:
            path.write_bytes(content)
        path.chmod(mode)


def program(version: str) -> bytes:
    """A whole program that says that it is `version`."""
    said = json.dumps({"version": version})
    return _HEAD + f"echo '{said}'\n".encode() + b"#" * 300 + b"\n"


def version_of(path: str) -> str | None:
    """The version of the program at `path`, without starting it; None where it is not one, or not all of one."""
    data = Path(path).read_bytes()
    try:
        version = str(json.loads(data.removeprefix(_HEAD + b"echo '").partition(b"'")[0])["version"])
    except ValueError:
        return None
    return version if data == program(version) else None


@cache
def signing_keys() -> tuple[ReleaseKey, ReleaseKey, ReleaseKey]:
    """The three keys of whoever publishes; two must sign."""
    return generate_key("one"), generate_key("two"), generate_key("three")


@dataclass(frozen=True, kw_only=True)
class Release:
    """Something published."""

    version: str
    sequence: int
    data: bytes
    section: dict[str, object]


def make_release(
    version: str,
    sequence: int,
    *,
    data: bytes | None = None,
    artifacts: tuple[Artifact, ...] | None = None,
    expires_at: int = NOW + 365 * 86_400,
    product: str = PRODUCT,
    signers: Iterable[ReleaseKey] | None = None,
    section: Mapping[str, object] | None = None,
) -> Release:
    """Sign a release; `section` overrides fields of the section that names it."""
    data = program(version) if data is None else data
    digest = sha256(data).hexdigest()
    if artifacts is None:
        artifacts = (Artifact(name=f"bcd-{version}", platform=PLATFORM, sha256=digest, size=len(data)),)
    draft = ReleaseDraft(
        version=version,
        sequence=sequence,
        issued_at=min(NOW, expires_at) - 60,
        expires_at=expires_at,
        keys=signing_keys(),
        artifacts=artifacts,
        product=product,
    )
    signature = sign_release(draft, signing_keys()[:2] if signers is None else signers)
    named = {"version": version, "url": URL, "sha256": digest, "signature": signature}
    return Release(version=version, sequence=sequence, data=data, section={**named, **(section or {})})


class Node:
    """A machine with bcd 1.0.0 as a plain file at its entrypoint, never updated."""

    def __init__(
        self,
        root: Path,
        *,
        helper: bool = False,
        update: str = "",
        data_dir: Path | None = None,
        fresh: bool = True,
    ) -> None:
        """Make it; with `fresh` false, find what an earlier one left at `root`."""
        self.root = root
        self.clock = ManualClock(NOW)
        self.service: ServiceManager = NoServiceManager()
        pins = ",".join(key.pin for key in signing_keys())
        text = (
            f'[node]\ndata_dir = "{data_dir or root / "data"}"\n'
            f'[update]\nslots_dir = "{root / "lib" / "bcd"}"\nentrypoint = "{root / "bin" / "bcd"}"\n'
            + (update or f'release_pins = "{pins}"')
            + ("\n[helper]\n" if helper else "\n")
        )
        self.config = parse_config(text.encode(), str(root / "config.toml"))
        self.layout = layout_of(self.config)
        if not fresh:
            return
        for folder in (root / "bin", root / "lib", Path(self.layout.staging)):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)
        self.install("1.0.0")

    # -- what happens to it ---------------------------------------------------------------------------------------

    def install(self, version: str) -> None:
        """What an install script's `mv -f` does: a plain file takes the entrypoint's place."""
        fresh = self.root / "bin" / "fresh"
        fresh.write_bytes(program(version))
        fresh.chmod(0o755)
        fresh.rename(self.layout.entrypoint)

    def stage(self, release: Release) -> Path:
        """What a download leaves."""
        path = Path(self.layout.staging) / f"bcd-{release.version}"
        path.write_bytes(release.data)
        os.utime(path, (self.clock.now, self.clock.now))
        return path

    def manager(
        self, version: str | None = None, *, sequence: int = 0, built_at: int = 0, staging_owner: int | None = None
    ) -> Manager:
        """The manager of a process that runs `version`: by default, of what the service would start."""
        return Manager(
            config=self.config,
            build=Build(version or self.runs(), sequence, built_at, fakehw=False),
            clock=self.clock,
            service=self.service,
            staging_owner=staging_owner,
            ask=version_of,
        )

    def start(self) -> list[Settled]:
        """One start of the agent. Returns what each process that it took found."""
        found: list[Settled] = []
        while not found or found[-1].restart:
            assert len(found) < 3, found
            found.append(self.manager().settle())
        return found

    def swap(self, release: Release, *, command_id: str | None = None) -> PendingRecord:
        """Prepare, download and swap."""
        manager = self.manager()
        prepared = manager.prepare(release.section, server_time=None)
        assert prepared is not None
        staged = None if prepared.fetch is None else self.stage(release)
        pending = manager.swap(release.section, server_time=None, command_id=command_id)
        if staged is not None:
            staged.unlink()
        return pending

    def update(self, release: Release) -> None:
        """The whole of a good update."""
        self.start()
        self.swap(release)
        self.start()
        assert self.manager().confirm() is not None

    def fail(self, release: Release) -> None:
        """A release that no gateway welcomes: swapped in, rolled back at its deadline, settled."""
        self.start()
        self.swap(release)
        self.start()
        self.clock.passes(121)
        assert self.manager().rollback(way="deadline")
        assert self.start()[-1].failed is not None

    # -- what it is -----------------------------------------------------------------------------------------------

    def runs(self) -> str:
        """The version that the service would start. Fails where that is not a whole program."""
        path = os.path.realpath(self.layout.entrypoint)
        found = os.stat(path)
        assert stat.S_ISREG(found.st_mode), path
        assert found.st_mode & 0o111 == 0o111, path
        version = version_of(path)
        assert version is not None, path
        return version

    def link(self, name: str) -> str | None:
        """Where one of the two links points."""
        try:
            return os.readlink(os.path.join(self.layout.slots_dir, name))
        except FileNotFoundError:
            return None

    def slot(self, slot: str) -> Path:
        """A slot's file."""
        return Path(self.layout.slots_dir) / f"bcd-{slot}"

    def json(self, path: str) -> dict[str, object] | None:
        """A record as it lies there; None where there is none."""
        try:
            document = json.loads(Path(path).read_bytes())
        except FileNotFoundError:
            return None
        assert isinstance(document, dict)
        return document

    def status(self) -> Status:
        """What a reader sees."""
        return read_status(self.config, Build("0.0.0", 0, 0, fakehw=False), self.clock)

    def floor(self) -> int:
        """The release floor."""
        return self.status().floor

    def events(self) -> list[dict[str, object]]:
        """The history, oldest first."""
        try:
            lines = Path(self.layout.history).read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]

    def tree(self, *, history: bool = False) -> Tree:
        """Everything on its disk; the history only where asked for."""
        tree = read_tree(self.root)
        if not history:
            tree.pop(os.path.relpath(self.layout.history, self.root), None)
        return tree


def quick_node(root: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node whose fsync returns at once. What fsync is for is seen where power is lost, in `test_manager_power`."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return Node(root)


@contextmanager
def quick_directory(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory, for what makes thousands of trees; on the disk where there is no room for one."""
    shared = "/dev/shm"
    has = os.statvfs(shared) if os.access(shared, os.W_OK) else None
    if has is None or has.f_flag & os.ST_NOEXEC or has.f_bavail * has.f_frsize < _ROOM_BYTES:
        yield tmp_path
    else:
        with TemporaryDirectory(dir=shared) as made:
            yield Path(made)


class Process:
    """A child of this one that runs a function of it, as another process of the node would."""

    def __init__(self, work: Callable[[], object]) -> None:
        with warnings.catch_warnings():
            # From 3.12 on, when the runner itself has threads. Nothing here holds a lock at this place.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            code = 1
            try:
                made = work()
                code = made if type(made) is int else 0
            except BaseException:  # noqa: BLE001  # whatever it is, it must not go on as a second test run
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(code)

    def ended(self) -> int:
        """Wait. Returns what its work returned where that is a number, 1 where it failed, or minus a signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def killed(self) -> int:
        """Kill it, unless it has ended already."""
        os.kill(self._pid, signal.SIGKILL)
        return self.ended()


def code_of(error: BcdError) -> str:
    """The code, with which family it is of."""
    return f"{type(error).__name__}: {error.code}"
