"""Each fault, planted one at a time on a healthy node: the right finding, the right level, and no other.

The faults are the self-test's own (`bcd.doctor.selftest.faults`), so that what CI proves is what an operator can prove.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bcd.doctor.check import Check, Result, fail, ok
from bcd.doctor.checks import CHECKS
from bcd.doctor.finding import Level
from bcd.doctor.run import run_checks
from bcd.doctor.selftest import run as selftest
from bcd.doctor.selftest.fault import QUIET, Fault
from bcd.doctor.selftest.faults import FAULTS
from bcd.doctor.selftest.root import Root
from bcd.doctor.selftest.run import prove, try_fault

IDS = [check.id for check in CHECKS]


def test_a_healthy_node_gives_no_finding_that_anybody_has_to_read(root: Root) -> None:
    """Neither fail, warn, unknown nor note: whatever a fault gives is the fault's."""
    report = run_checks(CHECKS, root.probes(), timeout_seconds=10)
    assert [finding for finding in report.findings if finding.level not in QUIET] == []
    assert report.verdict == "ok"
    assert {finding.id for finding in report.findings} == set(IDS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.check}/{fault.name}")
def test_the_fault_gives_its_finding_and_no_other(fault: Fault) -> None:
    """The right level and words from its check, exactly the named others beside it, and a remedy where one is needed."""
    state = try_fault(fault)
    if state.skipped:
        pytest.skip(state.skipped)
    assert state.wrong == ()


def test_every_check_is_seen_quiet_and_is_seen_firing() -> None:
    """A check that no state makes fire is no check; one that no state shows quiet cries wolf."""
    firing = {fault.check for fault in FAULTS if fault.level in (Level.FAIL, Level.WARN, Level.NOTE)}
    assert firing == set(IDS)
    assert len(FAULTS) >= 45


def test_every_check_that_any_user_can_make_fire_fires_without_root() -> None:
    """As an ordinary user the self-test still proves all of them."""
    assert {fault.check for fault in FAULTS if not fault.needs_root and fault.level not in QUIET} == set(IDS)


def test_no_two_faults_have_one_name() -> None:
    """Each is a test of its own, found by check and name."""
    assert [name for name, count in Counter((f.check, f.name) for f in FAULTS).items() if count > 1] == []


def test_a_root_leaves_nothing_behind() -> None:
    """Also one in which a fault took every right away, or hangs."""
    with Root() as root:
        root.forbid("lib")
        root.machine.hanging.add("memory")
        home = root.home
    assert not home.exists()


# -- the self-test itself ------------------------------------------------------------------------------------------------


def _with(monkeypatch: pytest.MonkeyPatch, check: Check) -> Check:
    checks = tuple(check if known.id == check.id else known for known in CHECKS)
    monkeypatch.setattr(selftest, "CHECKS", checks)
    return check


def _always(name: str, result: Result) -> Check:
    return Check(id=name, summary="", why="", network=False, look=lambda _see: result)


def test_a_check_that_sees_nothing_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blind to its faults, it is named with each state that it missed, and the others' proofs stand."""
    blind = _with(monkeypatch, _always("update.lock", ok("always well")))
    (proof,) = prove([blind])
    assert proof.levels == (Level.OK,)
    assert [sentence for sentence in proof.wrong if sentence.startswith("somebody holds it: expected warn")] != []


def test_a_check_that_cries_wolf_is_told_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its false alarm over a healthy node is its own, and spoils no other check's proof."""
    wolf = _with(monkeypatch, _always("update.lock", fail("always broken", hint="none")))
    other = next(check for check in CHECKS if check.id == "host.platform")
    of_wolf, of_other = prove([wolf, other])
    assert "a healthy node: fail 'always broken', on a healthy node" in of_wolf.wrong
    assert of_other.wrong == ()


def test_a_check_without_a_state_that_makes_it_fire_is_not_proved() -> None:
    """However quiet it is on a healthy node."""
    check = next(check for check in CHECKS if check.id == "host.platform")
    (proof,) = prove([check], [])
    assert proof.wrong == ("no state makes it fire",)


def test_a_finding_beside_the_expected_one_is_a_false_alarm() -> None:
    """And silence of one that should have spoken is as wrong."""
    fault = next(fault for fault in FAULTS if fault.name == "current dangles")
    alone = _changed(fault, also=frozenset())
    wrong = try_fault(alone).wrong
    assert any(sentence.startswith("a false alarm of slots.digests: fail") for sentence in wrong)
    more = _changed(fault, also=fault.also | {"host.memory"})
    assert try_fault(more).wrong == ("host.memory should have reported it too",)


def test_a_state_that_cannot_be_made_here_says_so(tmp_path: Path) -> None:
    """It is not tried, with the reason, and is no failure."""

    def refuse(_root: Root) -> None:
        raise OSError(1, "Operation not permitted", str(tmp_path))

    fault = _changed(FAULTS[0], plant=refuse)
    state = try_fault(fault)
    assert (state.skipped, state.wrong) == ("it can't be made so here: Operation not permitted", ())


def _changed(fault: Fault, **changes: object) -> Fault:
    return replace(fault, **changes)  # type: ignore[arg-type]
