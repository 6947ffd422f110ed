"""What a scenario is, and the stage that it plays on."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bcd.lab.labnode import LabNode
from bcd.lab.releases import GOOD, Recipe, Release
from bcd.lab.world import INSTALLED_VERSION, World

SEQUENCES = {"1.3.9": 13, "1.4.0": 14, "1.4.1": 15, "1.4.2": 16, "1.4.3": 17}
"""The release sequence of every version that scenarios speak of."""


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """One thing that did not end as the rules say."""

    what: str
    expected: str
    seen: str


@dataclass(frozen=True, kw_only=True)
class Doing:
    """What a scenario is at, for whoever watches."""

    text: str
    until: float | None = None
    """The monotonic time at which the wait must have ended; None where nothing counts down."""


@dataclass(kw_only=True)
class Stage:
    """One node of the world, and what is found out about it."""

    world: World
    node: LabNode
    tell: Callable[[Doing], None] = lambda _: None
    mismatches: list[Mismatch] = field(default_factory=list)

    def start(self) -> None:
        """Start the node as it was installed, and wait until it is welcomed."""
        self.say(f"{INSTALLED_VERSION} starts")
        self.node.start()
        self.node.wait_welcome(INSTALLED_VERSION)

    def publish(self, version: str, recipe: Recipe = GOOD) -> Release:
        """Publish a release for this node alone."""
        return self.world.publisher.publish(version, SEQUENCES[version], shelf=self.node.name, recipe=recipe)

    def say(self, text: str, *, seconds: float | None = None) -> None:
        """Tell whoever watches what is going on, and that it takes at most so many seconds."""
        self.tell(Doing(text=text, until=None if seconds is None else time.monotonic() + seconds))

    def check(self, what: str, expected: object, seen: object) -> None:
        """Note it when `what` is not as the rules say; the scenario goes on."""
        if expected != seen:
            self.mismatches.append(Mismatch(what=what, expected=str(expected), seen=str(seen)))

    def check_that(self, what: str, expected: str, *, holds: bool, seen: object) -> None:
        """The same for what is not told by comparing two values."""
        if not holds:
            self.mismatches.append(Mismatch(what=what, expected=expected, seen=str(seen)))


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Something that happens to a node, and what the rules make of it."""

    name: str
    """As `--only` takes it; also the node's id."""
    title: str
    """What happens, in a few words."""
    proves: str
    """One short sentence."""
    play: Callable[[Stage], str]
    """Plays it, checks how it ended, and says that in a few words."""
    waits_seconds: float = 0.0
    """How much of its time is only waiting."""
    pins: bool = True
    """Whether the node's configuration has release pins."""
    role: str = "node"
    """The role in which the node is started."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Scenarios of one meaning."""

    title: str
    scenarios: tuple[Scenario, ...]
