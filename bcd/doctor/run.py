"""Running checks: side by side, each in its time, each ending in a finding whatever happens to it.

The faults (field reports 38, C10): a check that hangs hid all later ones; one that broke was read as healthy; one that
may not look took "permission denied" for "not installed". Here each of them is `unknown`, and says why.
"""

import os
import pwd
import socket
import threading
import time
from collections.abc import Callable, Sequence

from bcd.core.errors import BcdError
from bcd.core.text import clean
from bcd.doctor.check import Check, Result, unknown
from bcd.doctor.finding import Finding, Report
from bcd.doctor.probes import CannotTell, Probes

_AT_ONCE = 16
"""Threads at one time: enough that waiting ones hold up nobody, few enough for a small machine."""

Told = Callable[[Check, Sequence[Finding]], None]


def run_checks(
    checks: Sequence[Check],
    probes: Probes,
    *,
    timeout_seconds: float,
    told: Told = lambda _check, _findings: None,
    stop: threading.Event | None = None,
) -> Report:
    """Run the checks and collect what they find.

    Args:
        checks: in the order in which they are to be reported.
        probes: what they look through.
        timeout_seconds: what each check may take from when it starts.
        told: called as each check ends, in whichever order that is.
        stop: when set, the run is cut short: `complete` is False, and what has not ended is `unknown`.
    """
    started, clock = int(probes.clock.wall()), time.monotonic()
    runs = [_CheckRun(check, probes) for check in checks]
    waiting, running = list(runs), list[_CheckRun]()
    complete = True
    while waiting or running:
        if stop is not None and stop.is_set():
            complete = False
            break
        while waiting and len(running) < _AT_ONCE:
            running.append(waiting.pop(0).start())
        running[0].ended.wait(0.005)
        for run in list(running):
            if run.ended.is_set() or run.is_overdue(timeout_seconds):
                running.remove(run)
                told(run.check, run.findings(timeout_seconds))
    findings = [finding for run in runs for finding in run.findings(timeout_seconds)]
    return Report(
        findings=tuple(findings),
        complete=complete,
        started_at=started,
        seconds=time.monotonic() - clock,
        looked_as=looked_as(probes.euid),
        about=f"{socket.gethostname()}, {probes.config_path}",
    )


def looked_as(uid: int) -> str:
    """A uid as people know it: `uid 0 (root)`."""
    try:
        return f"uid {uid} ({pwd.getpwuid(uid).pw_name})"
    except KeyError:
        return f"uid {uid}"


class _CheckRun:
    """One check in its own thread: a daemon, so that one that hangs in the kernel does not keep doctor from ending."""

    def __init__(self, check: Check, probes: Probes) -> None:
        self.check = check
        self.ended = threading.Event()
        self._probes = probes
        self._results: tuple[Result, ...] | None = None
        self._thread = threading.Thread(target=self._run, name=check.id, daemon=True)
        self._started = 0.0

    def start(self) -> "_CheckRun":
        self._started = time.monotonic()
        self._thread.start()
        return self

    def is_overdue(self, timeout_seconds: float) -> bool:
        return time.monotonic() - self._started > timeout_seconds

    def findings(self, timeout_seconds: float) -> list[Finding]:
        results = self._results
        if results is None:
            results = (self._unfinished(timeout_seconds),)
        return [self.check.finding(result) for result in results]

    def _unfinished(self, timeout_seconds: float) -> Result:
        if not self._started:
            return unknown("could not be told: the run was cut short before this check")
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
            results = (found,) if isinstance(found, Result) else tuple(found)
        except CannotTell as error:
            results = (unknown(f"could not be told: {clean(str(error))}"),)
        except PermissionError as error:
            results = (_not_permitted(error),)
        except BcdError as error:
            results = (unknown(f"could not be told: {clean(error.message)}", hint=error.hint),)
        except Exception as error:  # noqa: BLE001  # a check that breaks is a finding, never a traceback
            results = (
                unknown(
                    f"could not be told: the check itself broke: {type(error).__name__}: {clean(str(error))}",
                    hint="report it with the output of `bcd version`",
                ),
            )
        self._results = results
        self.ended.set()


def _not_permitted(error: PermissionError) -> Result:
    path = clean(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else "something"
    return unknown(f"could not be told: this user may not look at {path}", hint="sudo bcd doctor")
