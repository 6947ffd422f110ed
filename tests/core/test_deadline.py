"""What is left of a release's 120 seconds, under every clock that steps (field report 33)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.core.clock import ManualClock
from bcd.core.deadline import WELCOME_SECONDS, Left, time_left
from bcd.core.records import PendingRecord

WALL, UP = 1_800_000_000, 5_000.0


def swapped(*, boot: str = "boot-1", up: float = UP, at: int = WALL, deadline: int | None = None) -> PendingRecord:
    """A swap at these readings."""
    return PendingRecord(
        swap_id="00" * 16,
        from_version="1.4.0",
        to_version="1.4.1",
        from_slot="a",
        to_slot="b",
        sequence=15,
        command_id=None,
        launched=False,
        swapped_at=at,
        deadline=at + 120 if deadline is None else deadline,
        boot_id=boot,
        swapped_boottime=up,
    )


def test_the_whole_time_is_120_seconds() -> None:
    """Right after the swap, by both clocks."""
    assert WELCOME_SECONDS == 120
    assert time_left(swapped(), ManualClock()) == Left(120.0, 120.0, same_boot=True)


@pytest.mark.parametrize(
    ("passed", "left"), [(0.0, 120.0), (33.5, 86.5), (119.75, 0.25), (120.0, 0.0), (121.0, -1.0), (1e6, -999_880.0)]
)
def test_within_a_boot_the_boot_clock_decides(passed: float, left: float) -> None:
    """What passed on it is gone, also while suspended."""
    assert time_left(swapped(), ManualClock(now=WALL + passed, up=UP + passed)) == Left(left, left, same_boot=True)


@pytest.mark.parametrize("step", [3600.0, -3600.0, 30.0, -WALL, 10**9])
def test_a_stepped_wall_clock_changes_nothing_within_a_boot(step: float) -> None:
    """An hour ahead, an hour back, 1970: neither kills a good update nor keeps a bad one. Both clocks are told."""
    left = time_left(swapped(), ManualClock(now=WALL + 40 + step, up=UP + 40))
    assert (left.seconds, left.same_boot) == (80.0, True)
    assert left.wall_seconds == min(80.0 - step, 120.0)
    assert time_left(swapped(), ManualClock(now=WALL + step, up=UP + 121)).seconds == -1.0


@pytest.mark.parametrize(("passed", "left"), [(40.0, 80.0), (120.0, 0.0), (600.0, -480.0)])
def test_across_boots_the_wall_clock_decides(passed: float, left: float) -> None:
    """A boot clock of another boot means nothing, wherever it stands."""
    for up in (0.0, 10.0, UP, UP + 1e6):
        clock = ManualClock(now=WALL + passed, up=up, boot="boot-2")
        assert time_left(swapped(), clock) == Left(left, left, same_boot=False)


@pytest.mark.parametrize("now", [0.0, WALL - 3600.0, WALL - 1.0])
def test_a_clock_behind_the_swap_never_gives_more_than_the_whole_time(now: float) -> None:
    """After a reboot to 1970 a bad release has 120 seconds, not fifty years."""
    assert time_left(swapped(), ManualClock(now=now, up=10.0, boot="boot-2")) == Left(120.0, 120.0, same_boot=False)


def test_a_clock_ahead_of_the_swap_across_a_reboot_is_late() -> None:
    """All that is known says that the time has passed."""
    assert time_left(swapped(), ManualClock(now=WALL + 3600, up=10.0, boot="boot-2")).seconds == -3480.0


@pytest.mark.parametrize(("then", "now"), [("", ""), ("boot-1", ""), ("", "boot-1")])
def test_without_a_boot_id_the_wall_clock_decides(then: str, now: str) -> None:
    """Two unknown boots are not the same one."""
    left = time_left(swapped(boot=then), ManualClock(now=WALL + 100, up=UP + 1, boot=now))
    assert left == Left(20.0, 20.0, same_boot=False)


@pytest.mark.parametrize("deadline", [0, WALL + 10**9, 2**53 - 1])
def test_a_recorded_deadline_out_of_bounds_does_not_decide_within_a_boot(deadline: int) -> None:
    """The boot clock and the 120 seconds do; across boots it is bounded."""
    record = swapped(deadline=deadline)
    assert time_left(record, ManualClock(up=UP + 20)).seconds == 100.0
    assert time_left(record, ManualClock(boot="boot-2")).seconds == min(deadline - WALL, 120)


SECONDS = st.floats(0, 2**53)


@given(
    record=st.builds(
        swapped,
        boot=st.sampled_from(["", "boot-1"]),
        up=SECONDS,
        at=st.integers(0, 2**40),
        deadline=st.none() | st.integers(0, 2**53),
    ),
    clock=st.builds(ManualClock, now=SECONDS, up=SECONDS, boot=st.sampled_from(["", "boot-1", "boot-2"])),
)
def test_never_more_than_120_seconds_are_left(record: PendingRecord, clock: ManualClock) -> None:
    """By neither clock, whatever was recorded and whatever is read; and within a boot the wall clock has no say."""
    left = time_left(record, clock)
    assert left.seconds <= 120
    assert left.wall_seconds <= 120
    assert left.same_boot == (record.boot_id == clock.boot != "")
    if left.same_boot:
        assert left.seconds == time_left(record, ManualClock(now=0.0, up=clock.up, boot=clock.boot)).seconds
    else:
        assert left.seconds == time_left(record, ManualClock(now=clock.now, up=0.0, boot=clock.boot)).seconds
