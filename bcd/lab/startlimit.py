"""systemd's start limit, counted as systemd counts it (StartLimitIntervalSec=600, StartLimitBurst=5)."""

from dataclasses import dataclass


@dataclass(kw_only=True)
class StartLimit:
    """Allows `burst` starts in a window of `interval_seconds` that opens with the first of them.

    Every start counts, the ones that people ask for as well as the restarts; an exec in place is no start, and a window
    that has passed is forgotten whole. That is `ratelimit_below` of systemd's src/basic/ratelimit.c.
    """

    burst: int = 5
    interval_seconds: float = 600.0
    _opened_at: float | None = None
    _starts: int = 0

    def allows(self, now: float) -> bool:
        """Count a start at `now` (monotonic seconds); false when it is one too many and must not happen."""
        if self._opened_at is None or now > self._opened_at + self.interval_seconds:
            self._opened_at = now
            self._starts = 0
        if self._starts >= self.burst:
            return False
        self._starts += 1
        return True

    def reset(self) -> None:
        """Forget the window: `systemctl reset-failed`."""
        self._opened_at = None
        self._starts = 0
