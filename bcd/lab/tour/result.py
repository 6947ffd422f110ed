"""How a scenario ended, and which scenarios are to be played."""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from bcd.core.errors import UsageError
from bcd.lab.scenario import Group, Mismatch, Scenario


@dataclass(frozen=True, kw_only=True)
class Result:
    """One scenario, played to its end."""

    scenario: Scenario
    ended: str
    """How, in a few words."""
    mismatches: tuple[Mismatch, ...]
    """What was not as the rules say; empty when all of it was."""
    took_seconds: float
    offline_seconds: float | None
    """The node's longest time without a session between two welcomes; None where the session never ended."""
    log: str
    """The path of the node's log."""
    log_tail: tuple[str, ...]
    """Its last lines, where there are mismatches."""

    @property
    def as_ruled(self) -> bool:
        """Whether it ended as the rules say."""
        return not self.mismatches


def choose(groups: Sequence[Group], only: Sequence[str]) -> tuple[Group, ...]:
    """The groups with only those scenarios whose names match one of the patterns of `only`; all for no pattern.

    Raises:
        UsageError: `unknown-scenario`: a pattern matches none.
    """
    names = [scenario.name for group in groups for scenario in group.scenarios]
    for pattern in only:
        if not fnmatch.filter(names, pattern):
            near = get_close_matches(pattern, names, 1, 0.0)[0]
            raise UsageError("unknown-scenario", f"no scenario is called {pattern}", f"did you mean {near}?")

    def wanted(scenario: Scenario) -> bool:
        return not only or any(fnmatch.fnmatchcase(scenario.name, pattern) for pattern in only)

    chosen = [Group(title=group.title, scenarios=tuple(filter(wanted, group.scenarios))) for group in groups]
    return tuple(group for group in chosen if group.scenarios)
