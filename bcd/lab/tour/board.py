"""The state of a running tour: written by the threads that play, read by whoever shows it."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bcd.lab.scenario import Doing, Group, Scenario
from bcd.lab.tour.result import Result


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The board at one instant."""

    groups: tuple[Group, ...]
    playing: dict[str, Doing]
    """By scenario name, in the order in which they began."""
    results: dict[str, Result]
    """By scenario name, in the order in which they ended."""
    elapsed_seconds: float

    @property
    def total(self) -> int:
        """How many scenarios there are."""
        return sum(len(group.scenarios) for group in self.groups)


class Board:
    """Who plays, at what they are, and how the others ended."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = tuple(groups)
        self._lock = threading.Lock()
        self._playing: dict[str, Doing] = {}
        self._results: dict[str, Result] = {}
        self._began = time.monotonic()

    def tell(self, scenario: Scenario, doing: Doing) -> None:
        """A scenario begins, or comes to something else."""
        with self._lock:
            self._playing[scenario.name] = doing

    def finish(self, result: Result) -> None:
        """A scenario has ended."""
        with self._lock:
            self._playing.pop(result.scenario.name, None)
            self._results[result.scenario.name] = result

    def snapshot(self) -> Snapshot:
        """All of it, now."""
        with self._lock:
            return Snapshot(
                groups=self._groups,
                playing=dict(self._playing),
                results=dict(self._results),
                elapsed_seconds=time.monotonic() - self._began,
            )
