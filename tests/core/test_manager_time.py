"""What is left of a deadline: the boot clock within one boot, the wall clock across boots, and no more than 120 s.

A stepped clock neither kills a good update nor keeps a bad one (field reports 11, 33).
"""

from pathlib import Path

import pytest

from bcd.core.settle import Outcome
from tests.core.node_root import NOW, Node, make_release, quick_node

ONE = make_release("1.1.0", 11)
TWO = make_release("1.2.0", 12)
HOUR = 3_600


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """1.2.0 is swapped in over 1.1.0, and was not started yet."""
    made = quick_node(tmp_path, monkeypatch)
    made.update(ONE)
    made.swap(TWO)
    return made


def outcomes(node: Node) -> list[Outcome]:
    """What one start finds."""
    return [settled.outcome for settled in node.start()]


def left(node: Node) -> float:
    """What the agent arms its timer for."""
    found = node.manager().look.time_left()
    assert found is not None
    return found.seconds


@pytest.mark.parametrize("step", [HOUR, -HOUR, -NOW, NOW], ids=["+1 h", "-1 h", "1970", "2084"])
@pytest.mark.parametrize("launched", [False, True])
def test_within_one_boot_a_stepped_clock_changes_nothing(node: Node, step: int, launched: bool) -> None:
    """Not what is left, not whether it is late; and confirmed it can be."""
    if launched:
        node.start()
    node.clock.passes(30)
    node.clock.now += step
    assert left(node) == 90
    assert outcomes(node) == [Outcome.PENDING]
    node.clock.passes(89)
    assert outcomes(node) == [Outcome.PENDING]
    assert left(node) == 1
    assert node.manager().confirm() is not None


@pytest.mark.parametrize("step", [HOUR, -HOUR, -NOW, NOW], ids=["+1 h", "-1 h", "1970", "2084"])
def test_within_one_boot_a_stepped_clock_keeps_no_bad_release(node: Node, step: int) -> None:
    """120 seconds are 120 seconds."""
    node.start()
    node.clock.now += step
    node.clock.passes(120)
    assert outcomes(node) == [Outcome.ROLL_BACK, Outcome.ROLLED_BACK]
    assert node.runs() == "1.1.0"


@pytest.mark.parametrize(
    ("off", "expected"),
    [
        (1, Outcome.PENDING),
        (119, Outcome.PENDING),
        (120, Outcome.ROLL_BACK),
        (86_400, Outcome.ROLL_BACK),
    ],
)
def test_across_boots_the_wall_clock_decides(node: Node, off: int, expected: Outcome) -> None:
    """Switched off in the middle: what is left is left, and what is late is late."""
    node.clock.reboots(off)
    if expected is Outcome.PENDING:
        assert left(node) == 120 - off
    assert outcomes(node)[0] is expected
    assert node.runs() == ("1.2.0" if expected is Outcome.PENDING else "1.1.0")


@pytest.mark.parametrize("back", [HOUR, NOW], ids=["-1 h", "1970"])
def test_across_boots_a_clock_in_the_past_keeps_no_bad_release_for_long(node: Node, back: int) -> None:
    """A machine without a battery comes up in 1970: 120 s at the most, by whichever clock."""
    node.clock.reboots(-back)
    assert left(node) == 120
    assert outcomes(node) == [Outcome.PENDING]
    assert node.manager().confirm() is not None
    assert node.runs() == "1.2.0"


def test_a_clock_that_stands_still_in_the_past_does_not_stop_the_timer(node: Node) -> None:
    """What this process was given at its start is all that it gets, whatever the wall clock says at each look."""
    node.clock.reboots(-NOW)
    manager = node.manager()
    assert manager.settle().outcome is Outcome.PENDING
    for passed in (0, 60, 119, 120, 500):
        node.clock.up = 10.0 + passed
        found = manager.look.time_left()
        assert found is not None
        assert found.seconds == 120 - passed
    assert manager.rollback(way="deadline") is True
    assert node.runs() == "1.1.0"


def test_a_clock_that_is_set_after_the_boot_makes_a_late_release_late(node: Node) -> None:
    """1970 at first; then the time is there, and the deadline is long past."""
    node.clock.reboots(-NOW)
    assert outcomes(node) == [Outcome.PENDING]
    node.clock.passes(20)
    node.clock.now = NOW + 500
    assert left(node) < 0
    assert outcomes(node) == [Outcome.ROLL_BACK, Outcome.ROLLED_BACK]


def test_a_kernel_without_a_boot_id_is_judged_by_the_wall_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In some containers: two empty ids are not one boot."""
    node = quick_node(tmp_path, monkeypatch)
    node.clock.boot = ""
    node.start()
    node.swap(ONE)
    node.clock.up = 0.0
    node.clock.now += 60
    assert left(node) == 60
    node.clock.now += 60
    assert outcomes(node) == [Outcome.ROLL_BACK, Outcome.ROLLED_BACK]


def test_a_suspended_machine_wakes_up_late(node: Node) -> None:
    """CLOCK_BOOTTIME counts the sleep."""
    node.start()
    node.clock.passes(8 * HOUR)
    assert left(node) == 120 - 8 * HOUR
    assert outcomes(node) == [Outcome.ROLL_BACK, Outcome.ROLLED_BACK]


def test_a_confirm_that_comes_late_is_a_confirm(node: Node) -> None:
    """The timer had not fired yet: a welcome is a welcome."""
    node.start()
    node.clock.passes(121)
    assert node.manager().confirm() is not None
    assert node.floor() == 12
    assert outcomes(node) == [Outcome.SETTLED]
