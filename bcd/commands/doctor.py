"""`bcd doctor`: pick the checks, run them, draw the report, and say by the exit status how it went."""

import json
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from types import FrameType
from typing import TYPE_CHECKING

from bcd.commands.streams import RED, paint, print_lines, wants_color
from bcd.core.errors import UsageError
from bcd.core.exits import ExitStatus
from bcd.core.text import clean
from bcd.doctor.check import Check
from bcd.doctor.checks import CHECKS
from bcd.doctor.finding import Level, Report
from bcd.doctor.probes import Probes
from bcd.doctor.report.machine import json_text, junit_text, prometheus_text
from bcd.doctor.report.plain import plain_lines
from bcd.doctor.run import run_checks

if TYPE_CHECKING:
    from rich.console import Console

FORMATS = ("rich", "plain", "json", "junit", "prometheus")
TIMEOUT_SECONDS = 5.0
"""What each check may take where nobody says otherwise."""
_BETWEEN_SECONDS = 1.0
_WATCH_SECONDS = 2.0
_SIGNAL_SECONDS = 0.05
_ENDED_BY: dict[int, ExitStatus] = {
    signal.SIGTERM: ExitStatus.TERMINATED,
    signal.SIGHUP: ExitStatus.HANGUP,
}


def list_checks() -> ExitStatus:
    """Print every check's id and what is true when it is ok."""
    width = max(len(check.id) for check in CHECKS)
    print_lines([f"{check.id:<{width}}  {check.summary}" for check in CHECKS])
    return ExitStatus.OK


def select_checks(only: Sequence[str], skip: Sequence[str], *, offline: bool) -> tuple[Check, ...]:
    """The checks to run.

    Raises:
        UsageError: `unknown-check`, a glob matches none, or all together leave none: nothing looked at is not well.
    """
    for glob in (*only, *skip):
        if not any(fnmatchcase(check.id, glob) for check in CHECKS):
            raise UsageError("unknown-check", f"no check is called {clean(glob, 80)!r}", "bcd doctor --list")
    selected = tuple(
        check
        for check in CHECKS
        if (not only or any(fnmatchcase(check.id, glob) for glob in only))
        and not any(fnmatchcase(check.id, glob) for glob in skip)
        and not (offline and check.network)
    )
    if not selected:
        raise UsageError("unknown-check", "--only, --skip and --offline together leave no check", "bcd doctor --list")
    return selected


def examine_plainly(config_path: str, options: Mapping[str, str]) -> ExitStatus:
    """Run all checks once, as the command's options say that need no click: each that was given, with its value."""
    terminal = sys.stdout.isatty()
    return examine(
        config_path,
        select_checks((), (), offline="--offline" in options),
        timeout_seconds=TIMEOUT_SECONDS,
        wait_seconds=None,
        form=chosen_format(options.get("--format"), as_json="--json" in options, terminal=terminal),
        strict="--strict" in options,
        verbose="--verbose" in options or "-v" in options,
        color=wants_color(options.get("--color", "auto"), sys.stdout),
        terminal=terminal and sys.stderr.isatty(),
    )


def chosen_format(form: str | None, *, as_json: bool, terminal: bool) -> str:
    """One of `FORMATS`: what was asked for, or what suits where the report goes."""
    return "json" if as_json else form or ("rich" if terminal else "plain")


def examine(
    config_path: str,
    checks: Sequence[Check],
    *,
    timeout_seconds: float,
    wait_seconds: float | None,
    form: str,
    strict: bool,
    verbose: bool,
    color: bool,
    terminal: bool,
) -> ExitStatus:
    """Run the checks once, or until nothing fails any more, and print the report."""
    with _stopping(signal.SIGINT) as stop:
        report = _until(config_path, checks, timeout_seconds, wait_seconds, stop, terminal=terminal)
    draw(report, form=form, strict=strict, verbose=verbose, color=color)
    if not report.complete:
        return ExitStatus.INTERRUPTED
    if wait_seconds is not None and not _is_well(report):
        return ExitStatus.TIMED_OUT
    return exit_status(report, strict=strict)


def watch(
    config_path: str, checks: Sequence[Check], *, timeout_seconds: float, verbose: bool, color: bool
) -> ExitStatus:
    """A live view until Ctrl-C, which ends it well. However it is ended, the terminal gets its cursor back."""
    from rich.live import Live

    from bcd.doctor.report.rich_report import rich_report

    with _stopping(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as stop:
        try:
            with Live(console=_console(color=color), auto_refresh=False, screen=False) as live:
                while not stop.is_set():
                    report = run_checks(
                        checks, _probes(config_path, timeout_seconds), timeout_seconds=timeout_seconds, stop=stop
                    )
                    if report.complete:
                        live.update(rich_report(report, verbose=verbose), refresh=True)
                    stop.wait(_WATCH_SECONDS)
        except OSError:
            # After SIGHUP there is no terminal to give anything back to.
            if stop.by != signal.SIGHUP:
                raise
    return _ENDED_BY.get(stop.by, ExitStatus.OK)


def self_test(checks: Sequence[Check], *, form: str, color: bool) -> ExitStatus:
    """Prove the checks, say how it went, and end with 1 where one is not proved.

    Raises:
        UsageError: `bad-usage`, in a format that only a report has.
    """
    from bcd.doctor.selftest.report import closing_lines, proof_lines, self_test_json
    from bcd.doctor.selftest.run import Proof, prove

    if form not in ("rich", "plain", "json"):
        raise UsageError("bad-usage", f"--self-test has no format {form}", "bcd doctor --self-test --json")
    started, complete = time.monotonic(), True
    width = max(len(check.id) for check in checks)
    proofs: list[Proof] = []
    with _stopping(signal.SIGINT) as stop:
        for proof in prove(checks):
            proofs.append(proof)
            # As each is proved: it takes seconds, and a reader that went away ends it.
            reads = form == "json" or print_lines(
                [
                    paint(line, RED if proof.wrong else "", color=color and bool(proof.wrong))
                    for line in proof_lines(proof, width)
                ]
            )
            if stop.is_set() or not reads:
                complete = len(proofs) == len(checks)
                break
    seconds = time.monotonic() - started
    if form == "json":
        print_lines([json.dumps(self_test_json(proofs, complete=complete, seconds=seconds), indent=2)])
    else:
        print_lines(["", *closing_lines(proofs, complete=complete, seconds=seconds)])
    if stop.is_set():
        return ExitStatus.INTERRUPTED
    return ExitStatus.PROBLEM if any(proof.wrong for proof in proofs) else ExitStatus.OK


def draw(report: Report, *, form: str, strict: bool, verbose: bool, color: bool) -> None:
    """Print a report to stdout in one of `FORMATS`."""
    match form:
        case "json":
            print_lines([json_text(report)])
        case "junit":
            print_lines([junit_text(report, strict=strict)])
        case "prometheus":
            print_lines([prometheus_text(report)])
        case "plain":
            print_lines(plain_lines(report, verbose=verbose))
        case _:
            from bcd.doctor.report.rich_report import rich_report

            # Not printed by rich, which ends the process with 1 when nobody reads on.
            console = _console(color=color)
            with console.capture() as drawn:
                console.print(rich_report(report, verbose=verbose))
            print_lines([line if color else line.rstrip() for line in drawn.get().splitlines()])


def exit_status(report: Report, *, strict: bool) -> ExitStatus:
    """0 without failures, 1 with, 4 when nothing failed and something could not be told, 3 for warnings when strict."""
    if report.count(Level.FAIL):
        return ExitStatus.PROBLEM
    if report.count(Level.UNKNOWN):
        return ExitStatus.NOT_PERMITTED
    return ExitStatus.WARNINGS if strict and report.count(Level.WARN) else ExitStatus.OK


def _until(
    config_path: str,
    checks: Sequence[Check],
    timeout_seconds: float,
    wait_seconds: float | None,
    stop: "_Stop",
    *,
    terminal: bool,
) -> Report:
    started, attempts = time.monotonic(), 0
    progress = _Progress(len(checks), shown=terminal)
    while True:
        attempts += 1
        report = run_checks(
            checks,
            _probes(config_path, timeout_seconds),
            timeout_seconds=timeout_seconds,
            told=progress.told,
            stop=stop,
        )
        progress.clear()
        waited = time.monotonic() - started
        if wait_seconds is not None:
            report = replace(report, attempts=attempts, waited_seconds=waited)
        if wait_seconds is None or stop.is_set() or _is_well(report) or waited >= wait_seconds:
            return report
        # A failure that may pass alarms nobody meanwhile (field report C09): one quiet line on a terminal, else nothing.
        progress.waiting(wait_seconds - waited)
        if stop.wait(min(_BETWEEN_SECONDS, wait_seconds - waited)):
            progress.clear()
            return replace(report, complete=False)


def _is_well(report: Report) -> bool:
    pending = any(f.id == "update.pending" and f.level is not Level.OK for f in report.findings)
    return report.complete and not report.count(Level.FAIL) and not pending


def _probes(config_path: str, timeout_seconds: float) -> Probes:
    # A look ends before its check does, so that the check can say what did not answer.
    return Probes(config_path=config_path, timeout_seconds=timeout_seconds * 0.8)


def _console(*, color: bool) -> "Console":
    from rich.console import Console

    return Console(
        file=sys.stdout,
        force_terminal=color,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )


class _Stop:
    """Set by a signal. No threading.Event: its lock may be held by the very line that the signal interrupts."""

    by: int = 0
    """Which; 0 where none came."""

    def is_set(self) -> bool:
        """Whether one came."""
        return self.by != 0

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until one comes, and say whether one did."""
        until = time.monotonic() + seconds
        while not self.is_set() and (left := until - time.monotonic()) > 0:
            time.sleep(min(_SIGNAL_SECONDS, left))
        return self.is_set()


@contextmanager
def _stopping(*signals: signal.Signals) -> Iterator[_Stop]:
    """Let signals cut the run short, so that what was found is still reported."""
    stop = _Stop()

    def end(number: int, _frame: FrameType | None) -> None:
        stop.by = number

    before = {number: signal.signal(number, end) for number in signals}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Progress:
    """One line on stderr, on a terminal only."""

    def __init__(self, total: int, *, shown: bool) -> None:
        self._total = total
        self._done = 0
        self._shown = shown

    def told(self, check: Check, _findings: object) -> None:
        self._done += 1
        self._say(f"{self._done}/{self._total} {check.id}")

    def waiting(self, left: float) -> None:
        self._done = 0
        self._say(f"not well yet, looking again; {left:.0f} s left")

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _say(self, text: str) -> None:
        if self._shown:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
