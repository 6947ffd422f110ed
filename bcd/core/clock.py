"""Time as an argument: three readings, for three purposes.

wall        Unix seconds: what records carry, what an expiry is compared with. May step at any moment.
boottime    CLOCK_BOOTTIME seconds: never steps, counts suspended time. What is left of a deadline within one boot.
boot_id     which boot that was: a boottime of another boot means nothing.

`ManualClock` stands here beside the real one, for tests and for the doctor's self-test. A plain class, since
`bcd update` loads this (ADR 0002).
"""

import time
from typing import Protocol

_LAST_DATE_SECONDS = 253_402_300_800
"""The year 10000, past which no date can be written."""


class Clock(Protocol):
    """What the rules ask of time."""

    def wall(self) -> float:
        """Unix seconds."""

    def boottime(self) -> float:
        """Seconds since boot, suspend included."""

    def boot_id(self) -> str:
        """This boot's random id, or an empty string where the kernel gives none."""


class SystemClock:
    """The machine's own."""

    def wall(self) -> float:
        """Unix seconds."""
        return time.time()

    def boottime(self) -> float:
        """Seconds since boot, suspend included."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def boot_id(self) -> str:
        """This boot's random id, or an empty string where the kernel gives none."""
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            return ""


def utc_text(seconds: int) -> str:
    """Unix seconds as people read them. Absolute: the same instant is the same text each time."""
    if seconds >= _LAST_DATE_SECONDS:
        return f"second {seconds}"
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


class ManualClock:
    """Three readings that somebody sets."""

    def __init__(self, now: float = 1_800_000_000, up: float = 5_000.0, boot: str = "boot-1") -> None:
        """Start at `now` (Unix seconds), `up` (CLOCK_BOOTTIME seconds), in the boot `boot`."""
        self.now = now
        self.up = up
        self.boot = boot

    def wall(self) -> float:
        """Unix seconds."""
        return self.now

    def boottime(self) -> float:
        """Seconds since boot, suspend included."""
        return self.up

    def boot_id(self) -> str:
        """This boot's id."""
        return self.boot

    def passes(self, seconds: float) -> None:
        """Let time pass, within this boot."""
        self.now += seconds
        self.up += seconds

    def reboots(self, seconds: float) -> None:
        """Turn the machine off and on again, all of it taking `seconds`."""
        self.now += seconds
        self.up = 10.0
        self.boot += "+"
