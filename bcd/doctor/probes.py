"""What checks look through: the node's state read once, and the few ways out of this process, each replaceable.

Every property is read at most once a run, whichever checks ask for it and however many at the same time, so that one
run does not contradict itself and a hanging gateway costs one timeout. Nothing here writes.
"""

import os
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from bcd.core.build import Build, this_build, this_platform
from bcd.core.clock import Clock, SystemClock
from bcd.core.config import DEFAULT_PATH, Config, HelperConfig, UpdateConfig, load_config
from bcd.core.errors import BcdError, UsageError
from bcd.core.layout import Layout, layout_of
from bcd.core.service import properties_of, systemd_version
from bcd.core.status import Status, read_status
from bcd.core.units import NODE_UNIT, SYSTEMD_DIRECTORY, UNIT_DIRECTORY
from bcd.doctor.session import SessionProbe, probe_session
from bcd.helper.client import Info, ask_info
from bcd.helper.guard import find_node_user
from bcd.node.client import read_live_state

T = TypeVar("T")


class CannotTell(Exception):
    """Something could not be looked at; the check that wanted it ends as `unknown` with this sentence."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """A command that was run."""

    status: int
    stdout: str
    stderr: str


Runner = Callable[[Sequence[str], float], Ran]
"""Runs a command with a timeout in seconds; raises OSError or subprocess.TimeoutExpired."""


def run_command(command: Sequence[str], timeout_seconds: float) -> Ran:
    """Run a command and collect what it says. Raises OSError and subprocess.TimeoutExpired."""
    ran = subprocess.run(  # noqa: S603  # the checks' own commands
        command,
        capture_output=True,
        text=True,
        errors="backslashreplace",
        timeout=timeout_seconds,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Ran(status=ran.returncode, stdout=ran.stdout, stderr=ran.stderr)


def why_it_did_not_run(error: Exception) -> str:
    """What a `Runner` raised, as a few words."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"no answer within {error.timeout:g} s"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def available_memory() -> int:
    """Bytes of memory that a new process could have."""
    import psutil  # noqa: PLC0415  # for one check

    return int(psutil.virtual_memory().available)


def free_disk(path: str) -> tuple[int, float]:
    """What is free on the file system of a path that exists: bytes, and per cent in use. Raises OSError."""
    import psutil  # noqa: PLC0415  # for one check

    usage = psutil.disk_usage(path)
    return int(usage.free), float(usage.percent)


DISTRIBUTION_STORES = (
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/ca-bundle.pem",
)


def trust_stores() -> tuple[str, ...]:
    """Where downloads look for this machine's certificates: OpenSSL's own places, then the distributions'."""
    import ssl  # noqa: PLC0415  # for one check

    paths = ssl.get_default_verify_paths()
    return tuple(dict.fromkeys(path for path in (paths.cafile, paths.capath, *DISTRIBUTION_STORES) if path))


@dataclass(kw_only=True)
class Probes:
    """What a run of doctor looks through."""

    config_path: str
    build: Build = field(default_factory=this_build)
    clock: Clock = field(default_factory=SystemClock)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    euid: int = field(default_factory=os.geteuid)
    run: Runner = run_command
    timeout_seconds: float = 2.0
    """What one look may take."""
    systemd_directory: str = SYSTEMD_DIRECTORY
    unit_directory: str = UNIT_DIRECTORY
    look_at_live: Callable[[str, float], dict[str, object] | None] = read_live_state
    available_memory: Callable[[], int] = available_memory
    """Bytes of memory that a new process could have."""
    free_disk: Callable[[str], tuple[int, float]] = free_disk
    """What is free on a path's file system: bytes, and per cent in use."""
    monotonic: Callable[[], float] = time.monotonic
    """CLOCK_MONOTONIC seconds: what systemd tells its own times by."""
    statvfs: Callable[[Path], os.statvfs_result] = os.statvfs
    """How a file system is asked for its room and its mount's flags."""
    trust_stores: Callable[[], tuple[str, ...]] = trust_stores
    platform: str = field(default_factory=this_platform)
    """This machine as a manifest names it."""
    proc_directory: str = "/proc"
    top: str = "/"
    """Directories above this one are not looked at: `/`, but for the self-test's root."""
    ask_helper: Callable[[str, float], Info] = ask_info
    """Asks the helper's socket which version it is; raises HostError."""
    look_at_session: Callable[[Config, float], SessionProbe] = probe_session
    _doing: dict[int, str] = field(default_factory=dict)
    _once: dict[str, "_Once"] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def config(self) -> Config:
        """The configuration.

        Raises:
            CannotTell: it can't be read; `configuration.parses` says why.
        """
        try:
            return self.load_config()
        except BcdError as error:
            raise CannotTell("the configuration could not be read (configuration.parses says why)") from error

    def load_config(self) -> Config:
        """The configuration. Raises what `bcd.core.config.load_config` does, for the one check that says why."""
        return self.remember("config", lambda: load_config(self.config_path))

    @property
    def layout(self) -> Layout:
        """Where the files live. Raises CannotTell as `config` does."""
        return layout_of(self.config)

    @property
    def status(self) -> Status:
        """The update state. Raises CannotTell as `config` does."""
        config = self.config
        return self.remember("status", lambda: read_status(config, self.build, self.clock))

    @property
    def live(self) -> dict[str, object] | None:
        """The agent's live state; None where no agent answers. Raises CannotTell as `config` does."""
        config = self.config
        return self.remember("live", lambda: self.look_at_live(config.node.data_dir, self.timeout_seconds))

    @property
    def owners(self) -> tuple[int, ...]:
        """Whose things may choose what starts: root's, and the looking user's own, unless that is the node's under a helper.

        Raises CannotTell as `config` does.
        """
        config = self.config
        if config.helper is not None:
            with suppress(UsageError):  # no such user, so nothing is its
                if find_node_user(config).uid == self.euid:
                    return (0,)
        return (0, self.euid)

    @property
    def has_systemd(self) -> bool:
        """Whether systemd is the service manager of this machine."""
        return os.path.isdir(self.systemd_directory)

    @property
    def session(self) -> SessionProbe:
        """How far a session with the gateway comes. Raises CannotTell as `config` does."""
        config = self.config
        return self.remember("session", lambda: self.look_at_session(config, self.timeout_seconds))

    @property
    def helper(self) -> Info:
        """Who answers at the helper's socket.

        Raises:
            HostError: `helper-unreachable`.
            CannotTell: as `config` does.
        """
        helper = self.config.helper or HelperConfig()
        return self.remember("helper", lambda: self.ask_helper(helper.socket, self.timeout_seconds))

    def command(self, *words: str, root: bool = False) -> str:
        """A `bcd` command line for a hint: this node's program and configuration, quoted for a shell.

        Args:
            words: what comes after `bcd`, a word each.
            root: whether only root can do it; `sudo` is put before it for everybody else.
        """
        try:
            entrypoint = self.config.update.entrypoint
        except CannotTell:
            entrypoint = UpdateConfig().entrypoint
        program = "bcd" if entrypoint == UpdateConfig().entrypoint else entrypoint
        config = () if self.config_path == DEFAULT_PATH else ("--config", self.config_path)
        return shlex.join([*(("sudo",) if root and self.euid != 0 else ()), program, *words, *config])

    def doing(self, what: str) -> None:
        """Say what this check is at now, for the sentence of a check that times out: `hashing slot b`."""
        self._doing[threading.get_ident()] = what

    def done_by(self, thread: int | None) -> str:
        """What the check in a thread was last at; empty where it did not say."""
        return "" if thread is None else self._doing.get(thread, "")

    def unit(self, name: str = NODE_UNIT) -> dict[str, str]:
        """A unit's properties, as `systemctl show` says them.

        Raises:
            CannotTell: systemctl is not there, does not answer, or may not be asked.
        """
        return self.remember(f"unit {name}", lambda: self._show_unit(name))

    @property
    def systemd_version(self) -> int:
        """Raises CannotTell as `unit` does."""
        return self.remember("systemd version", self._ask_version)

    def remember(self, key: str, look: Callable[[], T]) -> T:
        """Look once; whoever asks meanwhile waits for the same look. What it raised is raised to each."""
        with self._lock:
            once = self._once.setdefault(key, _Once())
        return cast("T", once.get(look))

    def _ask_version(self) -> int:
        try:
            return systemd_version(self.run(["systemctl", "--version"], self.timeout_seconds).stdout)
        except (OSError, subprocess.TimeoutExpired, ValueError) as error:
            raise CannotTell(f"systemctl did not say its version: {why_it_did_not_run(error)}") from error

    def _show_unit(self, name: str) -> dict[str, str]:
        try:
            ran = self.run(["systemctl", "show", "--no-pager", name], self.timeout_seconds)
        except FileNotFoundError as error:
            raise CannotTell("systemctl is not installed") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotTell(f"systemctl did not answer: {why_it_did_not_run(error)}") from error
        if ran.status != 0:
            said = next(iter(ran.stderr.strip().splitlines()), "no word why")
            raise CannotTell(f"systemctl show {name} ended with {ran.status}: {said}", f"systemctl status {name}")
        return properties_of(ran.stdout)


class _Once:
    """A value that is computed at most once, by whoever comes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known = False
        self._value: Any = None
        self._error: Exception | None = None

    def get(self, look: Callable[[], object]) -> object:
        with self._lock:
            if not self._known:
                try:
                    self._value = look()
                except Exception as error:  # noqa: BLE001  # raised below, to each who asks
                    self._error = error
                self._known = True
        if self._error is not None:
            raise self._error
        return self._value
