"""How the agent does as a process: since when it runs, what it costs, and what systemd says of its unit.

Looked at every five seconds, the unit every fifteen, and said in whole numbers: a console that is left open is not drawn
anew for a hundredth.
"""

import math
import os
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bcd.core.service import Ask, ask_systemd, properties_of
from bcd.core.text import clean
from bcd.core.units import NODE_UNIT, SYSTEMD_DIRECTORY

if TYPE_CHECKING:
    import psutil

_EVERY_SECONDS = 5.0
_UNIT_SECONDS = 15.0
"""systemctl is a process, and costs as much as all the rest of an idle console."""
_MIB = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Vitals:
    """One look."""

    pid: int | None = None
    """The agent's; None where none answers, or its process is not to be seen."""
    started: int = 0
    """By the boot clock, seconds: whoever sets the wall clock makes no agent older."""
    cpu_percent: int | None = None
    """Of one core, since the look before; None at the first."""
    memory_mib: int = 0
    """Resident."""
    unit: str = ""
    """What starts it; empty where that is no systemd unit."""
    unit_state: str = ""
    """`active (running)`, as systemd says it."""


ReadVitals = Callable[[object], Vitals]
"""Looks at the process of this id, as the agent gave it."""


def no_vitals(pid: object) -> Vitals:  # noqa: ARG001  # the port's shape
    """For what is no process of this machine."""
    return Vitals()


class VitalSigns:
    """Looks at the agent's process and its unit, in a thread of its own: a systemd that hangs freezes no countdown."""

    def __init__(self, unit: str | None, ask: Ask = ask_systemd) -> None:
        self._unit = unit
        self._ask = ask
        self._process: psutil.Process | None = None
        self._looked_at: float | None = None
        self._looked_for: object = None
        self._looker: threading.Thread | None = None
        self._asked_at = -math.inf
        self._last = Vitals()

    def __call__(self, pid: object) -> Vitals:
        """What was seen last, of this very process; never waits."""
        now = time.monotonic()
        if self._looked_at is None:
            self._looked_at = now - _EVERY_SECONDS  # at once, but not before the first frame
        elif self._looker is not None and self._looker.is_alive():
            pass
        elif now - self._looked_at >= _EVERY_SECONDS or pid != self._looked_for:
            self._looked_at, self._looked_for = now, pid
            self._looker = threading.Thread(target=self._look_in_thread, args=(pid,), daemon=True)
            self._looker.start()
        last = self._last
        return last if last.pid in (pid, None) else Vitals(unit=last.unit, unit_state=last.unit_state)

    def _look_in_thread(self, pid: object) -> None:
        self._last = self._with_unit(self._look(pid))

    def _look(self, pid: object) -> Vitals:
        import psutil  # noqa: PLC0415  # not before the first frame

        if type(pid) is not int or not 0 < pid < 2**31:
            self._process = None
            return Vitals()
        try:
            if self._process is None or self._process.pid != pid or not self._process.is_running():
                self._process = psutil.Process(pid)
                self._process.cpu_percent()  # counts from here
                percent = None
            else:
                percent = round(self._process.cpu_percent())
            return Vitals(
                pid=pid,
                started=_started(pid),
                cpu_percent=percent,
                memory_mib=round(self._process.memory_info().rss / _MIB),
            )
        except (psutil.Error, OSError, ValueError, IndexError):
            self._process = None
            return Vitals()

    def _with_unit(self, seen: Vitals) -> Vitals:
        now, last = time.monotonic(), self._last
        if self._unit is None:
            return seen
        came_or_went = seen.pid != last.pid
        if now - self._asked_at < (_EVERY_SECONDS if came_or_went else _UNIT_SECONDS):
            return replace(seen, unit=last.unit, unit_state=last.unit_state)
        self._asked_at = now
        try:
            shown = self._ask(["systemctl", "show", "--property=LoadState,ActiveState,SubState", self._unit])
        except (OSError, subprocess.SubprocessError):
            return replace(seen, unit=self._unit, unit_state="unknown: systemd does not answer")
        told = properties_of(shown)
        if told.get("LoadState") != "loaded":
            return seen
        state, sub = (told.get(name, "unknown") for name in ("ActiveState", "SubState"))
        return replace(seen, unit=self._unit, unit_state=clean(state if state == sub else f"{state} ({sub})"))


def _started(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        after_name = file.read().rpartition(")")[2].split()  # the name may hold blanks and brackets
    return int(after_name[19]) // os.sysconf("SC_CLK_TCK")  # proc(5), field 22


def node_unit() -> str | None:
    """The unit that starts the node where systemd runs this machine; None elsewhere."""
    return NODE_UNIT if os.path.isdir(SYSTEMD_DIRECTORY) else None
