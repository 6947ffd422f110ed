"""What a person can do to a running lab with one node, by name, and the lab's own journal of what came of it.

The console's Lab screen is drawn from this; the lab knows of no screen. Every method may be called from any thread.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bcd.core.text import clean
from bcd.lab.behaviour import CUT, WELCOME
from bcd.lab.catalogue import AGAIN, OFFERS, Ending, Shop
from bcd.lab.clock import stepped_by
from bcd.lab.labnode import LabNode
from bcd.lab.spoiling import Spoiling
from bcd.lab.world import World

_HOUR_SECONDS = 60 * 60
_DAYS = 40
"""More than any of the lab's releases is good for."""
_LINES = 2000
_SLOW_BYTES_A_SECOND = 40_000
_CUT_BYTES = 100_000

_SPOILINGS = {
    "next-cut": Spoiling(cut_after=_CUT_BYTES),
    "next-slow": Spoiling(bytes_per_second=_SLOW_BYTES_A_SECOND),
    "next-too-long": Spoiling(surplus=b"\n"),
    "next-wrong-digest": Spoiling(flipped=True),
}
_STEPS_SECONDS = {"clock-hour": _HOUR_SECONDS, "clock-days": _DAYS * 24 * _HOUR_SECONDS, "clock-true": 0}


@dataclass(frozen=True, kw_only=True, slots=True)
class Act:
    """One thing that can be done."""

    name: str
    group: str
    title: str
    happens: str
    """What will happen, in one sentence."""
    watch: str
    """What to watch, in one sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line of the lab's journal."""

    number: int
    """Counted from 0, without a gap."""
    at: float
    """Unix seconds, by this machine's clock."""
    who: str
    what: str
    """Safe to show."""


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """How the lab stands."""

    gateway_cut: bool
    next_download: str
    """What is to become of the next download, by its act's title; empty where nothing is."""
    clock_ahead_seconds: int
    agent_pid: int | None
    starts: int


def _release_acts() -> list[Act]:
    groups = {
        Ending.CONFIRMED: "Push: ends confirmed",
        Ending.SWAPPED_BACK: "Push: is swapped back",
        Ending.REFUSED: "Push: is refused",
        Ending.RETRIED: "Push: is tried again",
    }
    acts = [
        Act(
            name=offer.name,
            group=groups[offer.ending],
            title=offer.name,
            happens=f"This release {offer.outcome}.",
            watch=offer.watch,
        )
        for ending in groups
        for offer in OFFERS
        if offer.ending is ending
    ]
    again = Act(
        name=AGAIN,
        group="Push: once more",
        title="the last one again",
        happens="What was pushed last is asked for once more, as it was.",
        watch="A version that failed here is refused until Failed has forgotten it (c there); then it is tried again.",
    )
    return [*acts, again]


ACTS: tuple[Act, ...] = (
    *_release_acts(),
    Act(
        name="next-cut",
        group="Spoil the next download",
        title="cut",
        happens=f"The next download is cut after {_CUT_BYTES // 1000} kB; push a release to have one.",
        watch="It is resumed from that byte, and the update goes on.",
    ),
    Act(
        name="next-slow",
        group="Spoil the next download",
        title="slow",
        happens=f"The next download comes at {_SLOW_BYTES_A_SECOND // 1000} kB/s; push a release to have one.",
        watch="There is time to cut the gateway or to kill the agent in the middle of it.",
    ),
    Act(
        name="next-too-long",
        group="Spoil the next download",
        title="too long",
        happens="The next download is one byte longer than its manifest says; push a release to have one.",
        watch="It is thrown away and tried again some seconds later, then well.",
    ),
    Act(
        name="next-wrong-digest",
        group="Spoil the next download",
        title="wrong digest",
        happens="The next download has other bytes than its manifest says; push a release to have one.",
        watch="It is thrown away and tried again some seconds later, then well.",
    ),
    Act(
        name="next-sound",
        group="Spoil the next download",
        title="leave it as it is",
        happens="Nothing is done to the next download after all.",
        watch="A release that is spoilt by itself stays so.",
    ),
    Act(
        name="cut-gateway",
        group="Gateway",
        title="cut it",
        happens="The session is dropped, and every new connection too, until you mend it.",
        watch="Do it while a release waits for its welcome: at the end of the countdown it is swapped back.",
    ),
    Act(
        name="mend-gateway",
        group="Gateway",
        title="mend it",
        happens="The gateway answers again.",
        watch="The agent comes back within seconds and is told again of whatever it missed.",
    ),
    Act(
        name="kill-agent",
        group="Agent",
        title="kill it",
        happens="The agent's process gets SIGKILL, and the supervisor starts it again.",
        watch="It goes on where the disk says it was; a fifth start within 600 s is the last, as under systemd.",
    ),
    Act(
        name="restart-agent",
        group="Agent",
        title="restart it",
        happens="The agent is ended in order and started again, and the supervisor forgets the starts so far.",
        watch="This also brings back an agent that the start limit has left down.",
    ),
    Act(
        name="clock-hour",
        group="Node's wall clock",
        title="an hour ahead",
        happens="The node's wall clock is an hour ahead of this machine's; the top bar's time shows it.",
        watch="A running countdown says that its clocks parted, and keeps its 120 s: the boot clock decides.",
    ),
    Act(
        name="clock-days",
        group="Node's wall clock",
        title=f"{_DAYS} days ahead",
        happens=f"The node's wall clock is {_DAYS} days ahead of this machine's, past every release's expiry.",
        watch="A good release is refused as expired now.",
    ),
    Act(
        name="clock-true",
        group="Node's wall clock",
        title="true again",
        happens="The node's wall clock is this machine's again.",
        watch="What was refused as expired can be pushed again.",
    ),
)


class Desk:
    """Acts on one node of a world and its servers, and writes down what everybody does."""

    def __init__(self, world: World, node: LabNode) -> None:
        self._world = world
        self._node = node
        self._shop = Shop(world)
        self._lock = threading.Lock()
        self._lines: list[Line] = []
        self._count = 0
        self._doing: dict[str, Callable[[], None]] = {
            "cut-gateway": self._cut_gateway,
            "mend-gateway": lambda: node.behave(WELCOME),
            "kill-agent": node.supervisor.kill,
            "restart-agent": node.supervisor.restart,
            "next-sound": lambda: world.server.spoil_next(None),
        }
        world.server.tell = lambda line: self.tell("releases", line)
        for supervisor in node.supervisors:
            supervisor.tell = lambda line: self.tell("supervisor", line)

    @property
    def directory(self) -> str:
        """Where the lab lives."""
        return str(self._world.directory)

    def acts(self) -> Sequence[Act]:
        """What can be done, those of a group together."""
        return ACTS

    def state(self) -> State:
        """How the lab stands, at once."""
        spoiling = self._world.server.next_spoiling
        names = [act.title for act in ACTS if spoiling is not None and _SPOILINGS.get(act.name) == spoiling]
        supervisor = self._node.supervisor
        return State(
            gateway_cut=self._node.page().behaviour == CUT,
            next_download=names[0] if names else "",
            clock_ahead_seconds=stepped_by(self._node.root.clock_file),
            agent_pid=supervisor.pid,
            starts=supervisor.starts,
        )

    def lines(self, after: int) -> Sequence[Line]:
        """The journal's lines from number `after` on, at once; the oldest may be gone."""
        with self._lock:
            missing = self._count - after
            return self._lines[-missing:] if missing > 0 else []

    def do(self, name: str) -> None:
        """Do the act called `name`, which may take some seconds.

        Raises:
            UsageError: `nothing-pushed`: there is nothing to push again; `unknown-release`: there is no such act.
            LabClosed: the lab has ended.
        """
        act = next((act for act in ACTS if act.name == name), None)
        if act is not None and name in _SPOILINGS:
            self.tell("you", f"spoil the next download: {act.title}")
            self._world.server.spoil_next(_SPOILINGS[name])
        elif act is not None and name in _STEPS_SECONDS:
            self.tell("you", f"node's wall clock: {act.title}")
            self._node.step_clock(ahead_seconds=_STEPS_SECONDS[name])
        elif act is not None and name in self._doing:
            self.tell("you", f"{act.group.lower()}: {act.title}")
            self._doing[name]()
        else:
            self.push(name)

    def push(self, name: str, by_command: bool = False) -> str:  # noqa: FBT001, FBT002  # the shape of `control.Push`
        """Push a release by its name; what was done. Raises as `do` does."""
        self.tell("you", f"push {name}")
        return self._shop.push(name, self._node, by_command=by_command)

    def tell(self, who: str, what: str) -> None:
        """Write a line into the journal."""
        with self._lock:
            self._lines.append(Line(number=self._count, at=time.time(), who=who, what=clean(what, 400)))
            self._count += 1
            del self._lines[:-_LINES]

    def _cut_gateway(self) -> None:
        self._node.behave(CUT)
        self._node.drop_session()
