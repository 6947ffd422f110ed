"""What starts bcd on this machine, as the swap must know it: a port, and who stands behind it.

The fault (field report 20): an updater switches one path while the service starts another, reports success and changes
nothing. So before anything is switched the running unit is asked what it starts. Writing the crash-loop units of
spec/self-update.md section 9 stands behind this same port.
"""

import logging
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from bcd.core.build import Build
from bcd.core.durable import as_host_error, make_directories, write_durably
from bcd.core.errors import HostError, Refusal
from bcd.core.layout import Layout
from bcd.core.text import clean
from bcd.core.units import MARKER, SYSTEMD_DIRECTORY, UNIT_DIRECTORY, UnitFile, rollback_units

_ASK_SECONDS = 10

_log = logging.getLogger(__name__)

Ask = Callable[[Sequence[str]], str]
"""Runs a command and returns its standard output; raises OSError or subprocess.SubprocessError."""


class ServiceManager(Protocol):
    """What a swap asks of whatever starts bcd."""

    def require_entrypoint(self, layout: Layout) -> None:
        """Make sure that the service starts what will be switched.

        Raises:
            Refusal: `unsafe-entrypoint`, it starts something else.
        """

    def write_rollback_units(self, layout: Layout) -> None:
        """Make sure that a crash-looping release is rolled back without its help.

        Raises:
            HostError: `io-error`, the units could not be written; the swap does not happen.
        """


class NoServiceManager:
    """Nothing known starts bcd, so nothing rolls a crash-looping release back; said once."""

    def __init__(self) -> None:
        self._said = False

    def require_entrypoint(self, layout: Layout) -> None:
        """Nothing to compare with."""

    def write_rollback_units(self, layout: Layout) -> None:  # noqa: ARG002  # the port's shape
        """Nothing to write."""
        if not self._said:
            self._said = True
            _log.warning("bcd does not run under systemd; a crash-looping update is not rolled back")


class Systemd:
    """A systemd unit starts bcd."""

    def __init__(self, unit: str, ask: Ask, *, directory: str = UNIT_DIRECTORY) -> None:
        self._unit = unit
        self._ask = ask
        self._directory = directory
        self._said = False

    def require_entrypoint(self, layout: Layout) -> None:
        """Compare the unit's `ExecStart` with the entrypoint. A manager that can't be reached is no refusal (report 42)."""
        try:
            shown = self._ask(["systemctl", "show", "--property=ExecStart", "--value", self._unit])
        except (OSError, subprocess.SubprocessError) as error:
            _log.warning("systemd could not be asked what %s starts: %s", self._unit, error)
            return
        program = _program(shown)
        if program is None:
            _log.warning("systemd did not say what %s starts", self._unit)
            return
        if not _is_same(program, layout.entrypoint):
            raise Refusal(
                "unsafe-entrypoint",
                f"{self._unit} starts {clean(program)}, but the entrypoint is {layout.entrypoint}",
                f"set ExecStart={layout.entrypoint} in {self._unit}, or [update] entrypoint to what it starts",
            )

    def write_rollback_units(self, layout: Layout) -> None:
        """Write what differs from this version's units, and have systemd read them.

        A file at our name without our marker is an operator's and is never overwritten. A manager that can't be
        reached gets no crash-loop rollback, which is said once and refuses nothing (report 42).
        """
        try:
            version = systemd_version(self._ask(["systemctl", "--version"]))
            # That was systemctl alone; this one is answered by the manager.
            self._ask(["systemctl", "show", "--property=ActiveState", "--value", self._unit])
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            self._say_once("systemd could not be reached (%s); a crash-looping update is not rolled back", error)
            return
        files = rollback_units(layout, unit=self._unit, systemd_version=version, directory=self._directory)
        for file in files:
            if _read(file.path) != file.text:
                _write(file)
        # Also where nothing was written: an earlier try may have been cut off, or failed, just here. NeedDaemonReload does
        # not tell, since systemd 252 finds no drop-in directory that is newer than its last reload.
        try:
            self._ask(["systemctl", "daemon-reload"])
        except (OSError, subprocess.SubprocessError) as error:
            raise HostError(
                "io-error",
                f"systemd did not read the rollback unit: {clean(str(error), 200)}",
                "systemctl daemon-reload; the node tries again by itself",
            ) from error

    def _say_once(self, sentence: str, error: Exception) -> None:
        if not self._said:
            self._said = True
            _log.warning(sentence, error)


def service_manager(build: Build, environ: Mapping[str, str] = os.environ) -> ServiceManager:
    """Find out what starts this process. A fakehw build never touches systemd."""
    unit = _own_unit()
    if build.fakehw or unit is None or not environ.get("INVOCATION_ID") or not os.path.isdir(SYSTEMD_DIRECTORY):
        return NoServiceManager()
    return Systemd(unit, ask_systemd)


def _own_unit() -> str | None:
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
            groups = file.read().splitlines()
    except OSError:
        return None
    names = [part for group in groups for part in group.split("/") if part.endswith(".service")]
    return names[-1] if names else None


def ask_systemd(command: Sequence[str]) -> str:
    """Run one of systemd's tools. Raises OSError, subprocess.SubprocessError."""
    return subprocess.run(  # noqa: S603  # a fixed command and our own unit's name
        command,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_ASK_SECONDS,
        check=True,
        stdin=subprocess.DEVNULL,
    ).stdout


def properties_of(shown: str) -> dict[str, str]:
    """What `systemctl show` printed, by property.

    At newlines alone: a value that holds another line end must not pass for a property of its own.
    """
    return dict(line.partition("=")[::2] for line in shown.split("\n"))


def _program(shown: str) -> str | None:
    # `{ path=/usr/local/bin/bcd ; argv[]=/usr/local/bin/bcd node ; ignore_errors=no ; ... }`
    _, found, rest = shown.partition("path=")
    program = rest.partition(" ;")[0].strip()
    return program if found and program else None


def _is_same(program: str, entrypoint: str) -> bool:
    # Directories may be reached by two names (/bin and /usr/bin); the last component must be this very link.
    one, other = (
        os.path.join(os.path.realpath(os.path.dirname(p)), os.path.basename(p)) for p in (program, entrypoint)
    )
    return one == other


def systemd_version(said: str) -> int:
    """The version in what `systemctl --version` says. Raises ValueError."""
    # `systemd 252 (252.39-1~deb12u2)`, and `systemd 257~rc2` before a release.
    found = re.match(r"systemd (\d+)", said)
    if found is None:
        raise ValueError("systemctl --version did not say a version")
    return int(found[1])


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def _write(file: UnitFile) -> None:
    if file.marked and os.path.lexists(file.path) and not (_read(file.path) or "").startswith(MARKER):
        raise HostError(
            "io-error",
            f"{file.path} is not bcd's, and is in the place of the unit that brings the old binary back",
            f"move it away, or make its first line: {MARKER}",
        )
    with as_host_error(f"write {file.path}"):
        make_directories(os.path.dirname(file.path))
        write_durably(file.path, file.text.encode(), file.mode)
