"""What starts bcd on this machine, as the swap must know it: a port, and who stands behind it.

The fault (field report 20): an updater switches one path while the service starts another, reports success and changes
nothing. So before anything is switched the running unit is asked what it starts. Writing the crash-loop units of
spec/self-update.md section 9 belongs behind this same port.
"""

import logging
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from bcd.core.build import Build
from bcd.core.errors import Refusal
from bcd.core.layout import Layout
from bcd.core.text import clean

_SYSTEMD = "/run/systemd/system"
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

    def __init__(self, unit: str, ask: Ask) -> None:
        self._unit = unit
        self._ask = ask
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

    def write_rollback_units(self, layout: Layout) -> None:  # noqa: ARG002  # the port's shape
        """Not written by this build: said once, since a crash loop then waits for an operator."""
        if not self._said:
            self._said = True
            _log.warning("this build writes no rollback unit; a crash-looping update is not rolled back")


def service_manager(build: Build, environ: Mapping[str, str] = os.environ) -> ServiceManager:
    """Find out what starts this process. A fakehw build never touches systemd."""
    unit = _own_unit()
    if build.fakehw or unit is None or not environ.get("INVOCATION_ID") or not os.path.isdir(_SYSTEMD):
        return NoServiceManager()
    return Systemd(unit, _run)


def _own_unit() -> str | None:
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
            groups = file.read().splitlines()
    except OSError:
        return None
    names = [part for group in groups for part in group.split("/") if part.endswith(".service")]
    return names[-1] if names else None


def _run(command: Sequence[str]) -> str:
    return subprocess.run(  # noqa: S603  # a fixed command and our own unit's name
        command, capture_output=True, text=True, timeout=_ASK_SECONDS, check=True, stdin=subprocess.DEVNULL
    ).stdout


def _program(shown: str) -> str | None:
    # `{ path=/usr/local/bin/bcd ; argv[]=/usr/local/bin/bcd node ; ignore_errors=no ; ... }`
    _, found, rest = shown.partition("path=")
    program = rest.partition(" ;")[0].strip()
    return program if found and program else None


def _is_same(program: str, entrypoint: str) -> bool:
    # Directories may be reached by two names (/bin and /usr/bin); the last component must be this very link.
    one, other = (os.path.join(os.path.realpath(os.path.dirname(p)), os.path.basename(p)) for p in (program, entrypoint))
    return one == other
