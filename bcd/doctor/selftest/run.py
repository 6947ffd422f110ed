"""Proving the checks: the healthy node gives no finding but quiet ones, and each fault the finding that it must.

A check is proved when it was seen both quiet and firing (fail, warn or note) and no state went wrong. One that no state
makes fire is not proved, however well the others went: a check that cannot fire is no check.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bcd.doctor.check import Check
from bcd.doctor.checks import CHECKS
from bcd.doctor.finding import Finding, Level
from bcd.doctor.run import run_checks
from bcd.doctor.selftest.fault import QUIET, Fault
from bcd.doctor.selftest.faults import FAULTS
from bcd.doctor.selftest.root import Root
from bcd.doctor.selftest.user import look_as_nobody

_FIRING = frozenset({Level.FAIL, Level.WARN, Level.NOTE})
_LEVELS = tuple(Level)
HEALTHY = "a healthy node"


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """One state that a check was seen in."""

    check: str
    name: str
    level: Level
    """What was expected."""
    wrong: tuple[str, ...] = ()
    """What was not as expected, a sentence each; empty where all was."""
    skipped: str = ""
    """Why it was not tried."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """What is known of one check."""

    check: str
    states: tuple[State, ...]

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels that it was rightly seen at, worst first."""
        seen = {state.level for state in self.states if not state.wrong and not state.skipped}
        return tuple(level for level in Level if level in seen)

    @property
    def wrong(self) -> tuple[str, ...]:
        """Why it is not proved; empty where it is."""
        wrong = [f"{state.name}: {sentence}" for state in self.states for sentence in state.wrong]
        if not wrong and QUIET.isdisjoint(self.levels):
            wrong.append("no state shows it quiet")
        if not wrong and _FIRING.isdisjoint(self.levels):
            wrong.append("no state makes it fire")
        return tuple(wrong)

    @property
    def skipped(self) -> tuple[State, ...]:
        """The states that were not tried."""
        return tuple(state for state in self.states if state.skipped)


def prove(checks: Sequence[Check] = CHECKS, faults: Sequence[Fault] = FAULTS) -> Iterator[Proof]:
    """Prove the checks, one after another, in their order. Each state is planted in a directory of its own."""
    healthy = dict(_healthy())
    # One that cries wolf over a healthy node does so in every state, and is told of once.
    broken = frozenset(name for name, state in healthy.items() if state.wrong)
    for check in checks:
        states = [healthy[check.id]]
        states += [try_fault(fault, passing_over=broken) for fault in faults if fault.check == check.id]
        yield Proof(check=check.id, states=tuple(states))


def try_fault(fault: Fault, *, passing_over: frozenset[str] = frozenset()) -> State:
    """Plant a fault on a healthy node and look. Of the checks in `passing_over` nothing is believed but the fault's own."""
    state = State(check=fault.check, name=fault.name, level=fault.level)
    if fault.needs_root and os.geteuid() != 0:
        return replace(state, skipped="only root can make it so")
    with Root() as root:
        try:
            fault.plant(root)
        except OSError as error:
            return replace(state, skipped=f"it can't be made so here: {error.strerror}")
        if not fault.as_nobody or os.geteuid() != 0:
            findings = _look(root, fault)
        elif _is_reachable(root):
            findings = look_as_nobody(lambda: _look(root, fault))
        else:
            where = f"nobody may enter {root.home.parent}; set TMPDIR to a directory that everybody may"
            return replace(state, skipped=where)
    passed_over = passing_over - {fault.check}
    believed = [finding for finding in findings if finding.id not in passed_over]
    return replace(state, wrong=tuple(_wrong(replace(fault, also=fault.also - passed_over), believed)))


def _healthy() -> Iterator[tuple[str, State]]:
    with Root() as root:
        report = run_checks(CHECKS, root.probes(), timeout_seconds=10.0)
    for check in CHECKS:
        found = [finding for finding in report.findings if finding.id == check.id]
        loud = tuple(f"{_said(finding)}, on a healthy node" for finding in found if finding.level not in QUIET)
        level = report.worst(check.id) if not loud else Level.OK
        yield check.id, State(check=check.id, name=HEALTHY, level=level, wrong=loud)


def _look(root: Root, fault: Fault) -> tuple[Finding, ...]:
    checks = [check for check in CHECKS if not fault.alone or check.id == fault.check]
    return run_checks(checks, root.probes(), timeout_seconds=fault.timeout_seconds).findings


def _wrong(fault: Fault, findings: Sequence[Finding]) -> Iterator[str]:
    own = [finding for finding in findings if finding.id == fault.check]
    if not any(finding.level is fault.level and fault.says in finding.message for finding in own):
        said = "; ".join(_said(finding) for finding in own) or "nothing"
        yield f"expected {fault.level.value} with {fault.says!r}, and it said {said}"
    for finding in own:
        if _LEVELS.index(finding.level) < _LEVELS.index(fault.level):
            yield f"a false alarm of its own: {_said(finding)}"
        if finding.level in (Level.FAIL, Level.WARN) and not finding.hint:
            yield f"{_said(finding)}, without a word on what to do"
    if fault.alone:
        return
    loud = {finding.id for finding in findings if finding.level not in QUIET and finding.id != fault.check}
    for finding in findings:
        if finding.id in loud - fault.also and finding.level not in QUIET:
            yield f"a false alarm of {finding.id}: {_said(finding)}"
    for name in sorted(fault.also - loud):
        yield f"{name} should have reported it too"


def _said(finding: Finding) -> str:
    return f"{finding.level.value} {finding.message!r}"


def _is_reachable(root: Root) -> bool:
    return all(path.stat().st_mode & 0o001 for path in (root.home, *root.home.parents))
