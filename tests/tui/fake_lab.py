"""A lab of values under the Lab screen."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from bcd.core.errors import UsageError
from bcd.lab.desk import ACTS, Act, Line, State
from tests.tui import states

AT_REST = State(gateway_cut=False, next_download="", clock_ahead_seconds=0, agent_pid=4711, starts=1)


@dataclass
class FakeLab:
    """A lab that writes down what is asked of it."""

    now: State = AT_REST
    directory: str = "/tmp/bcd-lab-test"

    def __post_init__(self) -> None:
        self.done: list[str] = []
        self.told: list[Line] = []
        self.free = threading.Event()
        self.free.set()

    def acts(self) -> Sequence[Act]:
        return ACTS

    def state(self) -> State:
        return self.now

    def lines(self, after: int) -> Sequence[Line]:
        return self.told[after:]

    def do(self, name: str) -> None:
        self.free.wait(5)
        self.done.append(name)
        if name == "again":
            raise UsageError("nothing-pushed", "nothing was pushed [/yet]", "push another release first")

    def tell(self, who: str, what: str) -> None:
        self.told.append(Line(number=len(self.told), at=states.NOW, who=who, what=what))
