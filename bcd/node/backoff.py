"""Exponential backoff with jitter: a fleet that lost its gateway must not come back in one instant."""

import random
from collections.abc import Callable


class Backoff:
    """Delays in seconds: `first`, doubling, at most `most`; each drawn from its upper half."""

    def __init__(self, first: float = 1.0, most: float = 300.0, jitter: Callable[[], float] = random.random) -> None:
        self._first = first
        self._most = most
        self._jitter = jitter
        self._failures = 0

    def next(self, most: float | None = None) -> float:
        """The next delay; `most` bounds this one lower."""
        limit = self._most if most is None else min(most, self._most)
        whole = min(limit, self._first * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return whole * (0.5 + 0.5 * self._jitter())

    def reset(self) -> None:
        """Start again from `first`."""
        self._failures = 0
