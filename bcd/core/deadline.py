"""How long a swapped release still has to be welcomed: one pure function for Settle, the timer and every clock shown.

Within one boot CLOCK_BOOTTIME decides, which no one can step; across boots the wall clock is all there is. Bounded
above by the whole time, so a clock at 1970 does not keep a bad release for years (field report 33).
"""

from typing import NamedTuple

from bcd.core.clock import Clock
from bcd.core.records import PendingRecord

WELCOME_SECONDS = 120


class Left(NamedTuple):
    """What is left, by both clocks."""

    seconds: float
    """By the clock that decides; negative when overdue."""
    wall_seconds: float
    """By the wall clock."""
    same_boot: bool
    """Whether the boot clock decides."""


def time_left(pending: PendingRecord, clock: Clock) -> Left:
    """What is left of a pending release's time."""
    wall = min(pending.deadline - clock.wall(), WELCOME_SECONDS)
    boot_id = clock.boot_id()
    if not boot_id or boot_id != pending.boot_id:
        return Left(wall, wall, same_boot=False)
    boot = min(pending.swapped_boottime + WELCOME_SECONDS - clock.boottime(), WELCOME_SECONDS)
    return Left(boot, wall, same_boot=True)
