"""A fresh lab for as long as somebody looks at it: one running node in a temporary directory, gone at the end.

Whatever ends it (a signal, an error, the reader's own wish), its processes and its directory are gone before the
context manager lets go.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bcd.core.build import Build
from bcd.core.errors import HostError
from bcd.core.exits import ExitStatus
from bcd.core.text import clean
from bcd.lab.clock import SteppedClock
from bcd.lab.control import ControlSocket
from bcd.lab.desk import Desk
from bcd.lab.directory import LabDirectory
from bcd.lab.gateway import LabClosed
from bcd.lab.labnode import PATIENCE_SECONDS, LabNode
from bcd.lab.narrate import follow
from bcd.lab.signals import Ended, ending_by_signal
from bcd.lab.split import require_root
from bcd.lab.world import INSTALLED_SEQUENCE, INSTALLED_VERSION, World

_NODE = "node"
_LOOK_SECONDS = 0.1


class Signalled:
    """Which signal asked to end, and who wants to be told of it."""

    def __init__(self) -> None:
        self.status: ExitStatus | None = None
        self.then: Callable[[ExitStatus], None] = lambda _: None
        """Called from the signal's handler, so it may take no lock."""

    def tell(self, status: ExitStatus) -> None:
        """A signal came."""
        self.status = status
        self.then(status)

    def check(self) -> None:
        """Raise `Ended` when one came."""
        if self.status is not None:
            raise Ended(self.status)


@dataclass(frozen=True, kw_only=True)
class LabSession:
    """A lab that is up."""

    config: str
    """The node's configuration."""
    build: Build
    """What was installed on the node."""
    log: str
    """What the node and its supervisor say."""
    desk: Desk
    clock: SteppedClock
    """The node's."""
    signalled: Signalled


@contextmanager
def lab_session(*, split: bool = False) -> Iterator[LabSession]:
    """Make a lab, wait until its node is welcomed, and take all of it down in the end.

    Args:
        split: whether the node runs as a user of its own, with the helper beside it.

    Raises:
        NotPermitted: `needs-root`, for a split one.
        UsageError: `bad-directory` or `no-source`.
        HostError: `lab-failed`: the node did not come up.
        Ended: a signal came before it was up.
    """
    if split:
        require_root()
    signalled = Signalled()
    with ending_by_signal(signalled.tell):
        claimed = LabDirectory(None, split=split)
        try:
            with World(claimed.path, split=split) as world:
                yield from _running(world, signalled)
        finally:
            claimed.give_back(keep=False)


def _running(world: World, signalled: Signalled) -> Iterator[LabSession]:
    node = world.node(_NODE)
    desk = Desk(world, node)
    narrator = threading.Thread(target=_narrate, args=(world, node, desk), name="narrator", daemon=True)
    narrator.start()
    control = ControlSocket(world.directory, desk.push)
    try:
        _start(world, node, signalled)
        desk.tell("lab", f"it is up in {world.directory}; Ctrl-C or q ends it, with every process and file of it")
        yield LabSession(
            config=str(node.root.config),
            build=Build(
                version=INSTALLED_VERSION, sequence=INSTALLED_SEQUENCE, built_at=world.publisher.built_at, fakehw=True
            ),
            log=str(node.root.log),
            desk=desk,
            clock=SteppedClock(node.root.clock_file),
            signalled=signalled,
        )
    finally:
        control.close()
        world.halt()
        narrator.join()


def _start(world: World, node: LabNode, signalled: Signalled) -> None:
    node.start()
    until = time.monotonic() + PATIENCE_SECONDS
    # In short waits: the signal's handler only leaves a note, and runs in this thread.
    while not world.gateway.wait(node.name, lambda page: page.welcomed() is not None, _LOOK_SECONDS):
        signalled.check()
        if time.monotonic() > until or not node.supervisor.active:
            said = clean("; ".join(node.root.log_tail(3)), 600)
            raise HostError("lab-failed", f"the lab's node does not come up as {INSTALLED_VERSION}: {said}", "")
    signalled.check()


def _narrate(world: World, node: LabNode, desk: Desk) -> None:
    try:
        follow(world.gateway, node.name, lambda line: desk.tell("gateway", line))
    except LabClosed:
        return
