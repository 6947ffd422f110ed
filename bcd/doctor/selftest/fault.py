"""A state of a node, and what doctor must say about it."""

from collections.abc import Callable
from dataclasses import dataclass

from bcd.doctor.finding import Level
from bcd.doctor.selftest.root import Root

QUIET = frozenset({Level.OK, Level.SKIPPED})
"""What nobody has to read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One thing that is otherwise than on the healthy node, and the finding that it must give."""

    check: str
    """The id of the check that must say it."""
    name: str
    """The state, as a clause: `current is absolute`."""
    plant: Callable[[Root], object]
    """Makes a healthy root so."""
    level: Level
    says: str
    """What the finding's message must hold."""
    also: frozenset[str] = frozenset()
    """The other checks that rightly are not quiet, by id. Exactly these: a false alarm is a failure, and so is silence."""
    needs_root: bool = False
    """Whether only root can plant it."""
    as_nobody: bool = False
    """Whether it is looked at by a user who owns nothing there, where the self-test is root's."""
    alone: bool = False
    """Whether only its own check is run: the others would look at this machine's real paths."""
    timeout_seconds: float = 10.0
    """What each check may take; short where one hangs."""


Faults = tuple[Fault, ...]
