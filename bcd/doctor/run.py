"""Running checks: side by side, each in its time, each ending in a finding whatever happens to it.

The faults (field reports 38, C10): a check that hangs hid all later ones; one that broke was read as healthy; one that
may not look took "permission denied" for "not installed". Here each of them is `unknown`, and says why; what such a
check had found before is kept.
"""

import os
import pwd
import socket
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Protocol

from bcd.core.errors import BcdError
from bcd.core.text import clean
from bcd.doctor.check import Check, Result, unknown
from bcd.doctor.finding import Finding, Report
from bcd.doctor.probes import CannotTell, Probes

Told = Callable[[Check, Sequence[Finding]], None]

_LOOK_SECONDS = 0.02


class Stop(Protocol):
    """What cuts a run short, a `threading.Event` say."""

    def is_set(self) -> bool:
        """Whether to stop now."""


def run_checks(
    checks: Sequence[Check],
    probes: Probes,
    *,
    timeout_seconds: float,
    told: Told = lambda _check, _findings: None,
    stop: Stop | None = None,
) -> Report:
    """Run the checks and collect what they find.

    All start at once and most only wait, so that whatever hangs (a mount under the records may hang them all) costs one
    timeout, not the sum.

    Args:
        checks: in the order in which they are to be reported.
        probes: what they look through.
        timeout_seconds: what each check may take.
        told: called as each check ends, in whichever order that is.
        stop: when set, the run is cut short: `complete` is False, and what has not ended is `unknown`.
    """
    started, clock = int(probes.clock.wall()), time.monotonic()
    ready: SimpleQueue[_CheckRun] = SimpleQueue()
    runs = [_CheckRun(check, probes, ready) for check in checks]
    # What goes over the network takes longest: it waits and reads certificates while the others look.
    for run in sorted(runs, key=lambda run: not run.check.network):
        run.start()
    ended: dict[_CheckRun, list[Finding]] = {}
    complete = True
    while len(ended) < len(runs):
        if stop is not None and stop.is_set():
            complete = False
            break
        for run in [*_ended_now(ready), *(run for run in runs if run.is_overdue(timeout_seconds))]:
            if run not in ended:
                ended[run] = run.findings(timeout_seconds)
                told(run.check, ended[run])
    return Report(
        findings=tuple(finding for run in runs for finding in ended.get(run) or run.findings(timeout_seconds)),
        complete=complete,
        started_at=started,
        seconds=time.monotonic() - clock,
        looked_as=looked_as(probes.euid),
        about=clean(f"{socket.gethostname()}, {probes.config_path}"),
    )


def looked_as(uid: int) -> str:
    """A uid as people know it: `uid 0 (root)`."""
    try:
        return f"uid {uid} ({pwd.getpwuid(uid).pw_name})"
    except KeyError:
        return f"uid {uid}"


def _ended_now(ready: "SimpleQueue[_CheckRun]") -> list["_CheckRun"]:
    """Those that have ended; none after a moment, in which a timeout or a signal may have come."""
    found = []
    try:
        found.append(ready.get(timeout=_LOOK_SECONDS))
        while True:
            found.append(ready.get_nowait())
    except Empty:
        return found


class _CheckRun:
    """One check in its own thread: a daemon, so that one that hangs in the kernel does not keep doctor from ending."""

    def __init__(self, check: Check, probes: Probes, ready: "SimpleQueue[_CheckRun]") -> None:
        self.check = check
        self._ready = ready
        self._has_ended = False
        self._probes = probes
        self._results: list[Result] = []
        self._thread = threading.Thread(target=self._run, name=check.id, daemon=True)
        self._started = 0.0

    def start(self) -> None:
        self._started = time.monotonic()
        self._thread.start()

    def is_overdue(self, timeout_seconds: float) -> bool:
        return time.monotonic() - self._started > timeout_seconds

    def findings(self, timeout_seconds: float) -> list[Finding]:
        has_ended = self._has_ended
        results = list(self._results)
        if not has_ended:
            results.append(self._unfinished(timeout_seconds))
        return [self.check.finding(result) for result in results]

    def _unfinished(self, timeout_seconds: float) -> Result:
        doing = self._probes.done_by(self._thread.ident)
        while_doing = f" while {doing}" if doing else ""
        if self.is_overdue(timeout_seconds):
            return unknown(
                f"could not be told: timed out after {timeout_seconds:g} s{while_doing}", hint="try a longer --timeout"
            )
        return unknown(f"could not be told: the run was cut short{while_doing}")

    def _run(self) -> None:
        try:
            found = self.check.look(self._probes)
            for result in (found,) if isinstance(found, Result) else found:
                self._results.append(result)
            if not self._results:
                self._results.append(unknown("could not be told: the check itself broke: it found nothing to say"))
        except Exception as error:  # noqa: BLE001  # a check that breaks is a finding, never a traceback
            self._results.append(self._broken(error))
        self._has_ended = True
        self._ready.put(self)

    def _broken(self, error: Exception) -> Result:
        match error:
            case CannotTell():
                return unknown(f"could not be told: {error}", hint=error.hint)
            case BcdError():
                return unknown(f"could not be told: {error.message}", hint=error.hint)
            case PermissionError():
                as_root = self._probes.command("doctor", root=True)
                return unknown(f"could not be told: this user may not look at {_what(error)}", hint=as_root)
            case OSError(filename=str() | bytes()):
                return unknown(f"could not be told: {_what(error)}: {error.strerror}")
        return unknown(
            f"could not be told: the check itself broke: {type(error).__name__}: {error}",
            hint="report it with the output of `bcd version`",
        )


def _what(error: OSError) -> str:
    return os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "something"
