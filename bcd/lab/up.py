"""`bcd lab up`: a world with one node that keeps running, for trying things by hand."""

import shlex
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TextIO

from bcd.core.errors import HostError
from bcd.core.exits import ExitStatus
from bcd.lab.catalogue import AGAIN, Shop
from bcd.lab.control import ControlSocket
from bcd.lab.directory import LabDirectory
from bcd.lab.gateway import LabClosed
from bcd.lab.labnode import LabNode, Unmet
from bcd.lab.narrate import follow
from bcd.lab.signals import ending_by_signal
from bcd.lab.split import require_root
from bcd.lab.world import INSTALLED_VERSION, World

NODE = "node"
Events = SimpleQueue[ExitStatus | Exception]
"""What ends it: a signal, by its exit status, or what went wrong."""


def run_up(*, directory: Path | None, split: bool = False, out: TextIO, err: TextIO) -> ExitStatus:
    """Keep a lab running until a signal ends it.

    Args:
        directory: where it lives and stays; None for a temporary one, which is removed in the end.
        split: whether the node runs under a user of its own, with a helper.
        out: gets how to reach it, then what happens to the node.
        err: gets what is said in the end.

    Returns:
        OK after Ctrl-C or SIGTERM, which is how it is meant to end; HANGUP when the terminal went away.

    Raises:
        UsageError: `bad-directory`, `lab-running` or `no-source`.
        HostError: `lab-failed`: the node did not come up; `no-interpreter`, for a split lab.
        NotPermitted: `needs-root`, for a split lab.
    """
    if split:
        require_root()
    claimed = LabDirectory(directory, split=split)
    events: Events = SimpleQueue()
    try:
        with ending_by_signal(events.put), World(claimed.path, split=split) as world:
            event = _keep_running(world, out, events)
    finally:
        claimed.give_back(keep=False)
    if isinstance(event, BaseException):
        raise event
    with suppress(OSError):  # after SIGHUP nobody may be there to be told
        kept = "" if claimed.temporary else f"; {claimed.path} is kept"
        err.write(f"\nthe lab has ended, with every process of it{kept}\n")
    return ExitStatus.HANGUP if event is ExitStatus.HANGUP else ExitStatus.OK


def _keep_running(world: World, out: TextIO, events: Events) -> ExitStatus | Exception:
    """Run the node until there is an event, and return it: a signal's exit status, or what went wrong."""
    node = world.node(NODE)
    shop = Shop(world)

    def push(name: str, by_command: bool) -> str:  # noqa: FBT001  # the shape of `Push`
        return shop.push(name, node, by_command=by_command)

    def narrate() -> None:
        try:
            _narrate(world, node, out)
        except LabClosed:
            pass  # it has ended
        except Unmet as unmet:
            events.put(HostError("lab-failed", f"the lab's node does not come up: {unmet}", f"see {node.root.log}"))
        except OSError as error:
            events.put(error)  # a closed pipe, say

    # In a thread of its own, so that the main one, which alone is told of signals, has nothing to do but wait.
    narrator = threading.Thread(target=narrate, name="narrator", daemon=True)
    control = ControlSocket(world.directory, push)
    narrator.start()
    event = events.get()
    control.close()
    world.halt()
    narrator.join()
    return event


def _narrate(world: World, node: LabNode, out: TextIO) -> None:
    """Start the node, say how to reach it, then what happens to it."""
    node.start()
    node.wait_welcome(INSTALLED_VERSION)
    out.write(_welcome(world, node) + "\n")
    out.flush()

    def tell(line: str) -> None:
        out.write(f"{time.strftime('%H:%M:%S')}  {line}\n")
        out.flush()

    def tell_of_supervisor(line: str) -> None:
        with suppress(
            OSError
        ):  # in the supervisor's thread, whose end would be the node's; the next line here finds out
            tell(f"supervisor: {line}")

    for supervisor in node.supervisors:
        supervisor.tell = tell_of_supervisor
    follow(world.gateway, node.name, tell)


def _welcome(world: World, node: LabNode) -> str:
    here = shlex.quote(str(world.directory))
    binary, config = shlex.quote(str(node.root.entrypoint)), shlex.quote(str(node.root.config))
    lab = f"{shlex.quote(sys.argv[0])} lab" if Path(sys.argv[0]).name == "bcd" else "bcd lab"
    beside = log_of_helper = as_node = ""
    if (uid := node.root.node_uid) is not None:
        beside = f"The node runs as uid {uid}, which nobody else is, with bcd helper as root beside it.\n"
        log_of_helper = f"\n  the helper's log   {shlex.quote(str(node.root.helper_log))}"
        as_node = f"""
  setpriv --reuid={uid} --regid={uid} --clear-groups \\
    {binary} update --config {config}
      the same, asked by the node's own user"""
    return f"""\
A lab is up in {here}: a gateway, a release server, and a node that runs bcd {INSTALLED_VERSION}.
{beside}
  its configuration  {config}
  its slots          {shlex.quote(str(node.root.slots))}
  its log            {shlex.quote(str(node.root.log))}{log_of_helper}

In another shell:

  {lab} releases
      what can be pushed, good and bad
  {lab} push good --dir {here}
      a good release, by the section; --command for a daemon.upgrade, {AGAIN} for the same once more
  {lab} push never-welcomed --dir {here}
      one that is swapped back after 120 s
  {binary} update --config {config}
      what the node says of itself{as_node}

Ctrl-C ends all of it. What happens to the node:
"""
