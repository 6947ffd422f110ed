"""What the Lab screen asks of a lab. The console knows no lab: whoever opens it over one hands one in.

Names of acts that have a key of their own are given here; a lab calls its acts so.
"""

from collections.abc import Sequence
from typing import Protocol

CUT_GATEWAY, MEND_GATEWAY = "cut-gateway", "mend-gateway"
KILL_AGENT, RESTART_AGENT = "kill-agent", "restart-agent"
STEP_CLOCK, TRUE_CLOCK = "clock-hour", "clock-true"


class LabAct(Protocol):
    """One thing that can be done to the lab."""

    @property
    def name(self) -> str:
        """What `LabPort.do` calls it."""

    @property
    def group(self) -> str:
        """The heading that it stands under."""

    @property
    def title(self) -> str:
        """What it is, in a few words."""

    @property
    def happens(self) -> str:
        """What will happen, in one sentence."""

    @property
    def watch(self) -> str:
        """What to watch, in one sentence."""


class LabLine(Protocol):
    """One line of the lab's own journal."""

    @property
    def number(self) -> int:
        """Counted from 0, without a gap."""

    @property
    def at(self) -> float:
        """Unix seconds."""

    @property
    def who(self) -> str:
        """Who did it: you, supervisor, gateway, releases."""

    @property
    def what(self) -> str:
        """What was done; safe to show."""


class LabState(Protocol):
    """How the lab stands."""

    @property
    def gateway_cut(self) -> bool:
        """Whether nobody gets through to the gateway."""

    @property
    def next_download(self) -> str:
        """What is to become of the next download; empty where nothing is."""

    @property
    def clock_ahead_seconds(self) -> int:
        """By how much the node's wall clock is ahead of this machine's."""

    @property
    def agent_pid(self) -> int | None:
        """The agent's process; None while there is none."""

    @property
    def starts(self) -> int:
        """How often the supervisor has started it."""


class LabPort(Protocol):
    """A lab with one node. May be asked from any thread."""

    @property
    def directory(self) -> str:
        """Where it lives."""

    def acts(self) -> Sequence[LabAct]:
        """What can be done, those of a group together; always the same."""

    def state(self) -> LabState:
        """How it stands. Does not block."""

    def lines(self, after: int) -> Sequence[LabLine]:
        """The journal's lines from number `after` on. Does not block."""

    def do(self, name: str) -> None:
        """Do an act, which may block for seconds. Raises BcdError, and whatever a lab that has ended raises."""
