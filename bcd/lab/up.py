"""`bcd lab up`: a world with one node that keeps running, for trying things by hand."""

import shlex
import sys
import time
from pathlib import Path
from typing import TextIO

from bcd.core.exits import ExitStatus
from bcd.lab.catalogue import AGAIN, Shop
from bcd.lab.control import ControlSocket
from bcd.lab.directory import LabDirectory
from bcd.lab.labnode import LabNode
from bcd.lab.narrate import follow
from bcd.lab.signals import Ended, ending_by_signal
from bcd.lab.world import INSTALLED_VERSION, World

NODE = "node"


def run_up(*, directory: Path | None, out: TextIO, err: TextIO) -> ExitStatus:
    """Keep a lab running until a signal ends it.

    Args:
        directory: where it lives and stays; None for a temporary one, which is removed in the end.
        out: gets how to reach it, then what happens to the node.
        err: gets what is said in the end.

    Returns:
        OK after Ctrl-C or SIGTERM, which is how it is meant to end; HANGUP when the terminal went away.

    Raises:
        UsageError: `bad-directory`, `lab-running` or `no-source`.
    """
    claimed = LabDirectory(directory)
    status = ExitStatus.OK
    try:
        with ending_by_signal(), World(claimed.path) as world:
            _keep_running(world, out)
    except Ended as ended:
        status = ExitStatus.HANGUP if ended.status is ExitStatus.HANGUP else ExitStatus.OK
    finally:
        claimed.give_back(keep=False)
    kept = "" if claimed.temporary else f"; {claimed.path} is kept"
    err.write(f"\nthe lab has ended, with every process of it{kept}\n")
    return status


def _keep_running(world: World, out: TextIO) -> None:
    node = world.node(NODE)
    shop = Shop(world)

    def push(name: str, by_command: bool) -> str:  # noqa: FBT001  # the shape of `Push`
        release = shop.make(name, node=node.name)
        if by_command:
            node.command(release)
        else:
            node.push(release)
        how = "a command asks for" if by_command else "the section names"
        return f"{how} {release.version} (sequence {release.sequence})"

    control = ControlSocket(world.directory, push)
    try:
        node.supervisor.start()
        node.wait_welcome(INSTALLED_VERSION)
        out.write(_welcome(world, node) + "\n")

        def tell(line: str) -> None:
            out.write(f"{time.strftime('%H:%M:%S')}  {line}\n")
            out.flush()

        node.supervisor.tell = lambda line: tell(f"supervisor: {line}")
        follow(world.gateway, node.name, tell)
    finally:
        control.close()


def _welcome(world: World, node: LabNode) -> str:
    here = shlex.quote(str(world.directory))
    binary, config = shlex.quote(str(node.root.entrypoint)), shlex.quote(str(node.root.config))
    lab = f"{shlex.quote(sys.argv[0])} lab" if Path(sys.argv[0]).name == "bcd" else "bcd lab"
    return f"""\
A lab is up in {here}: a gateway, a release server, and a node that runs bcd {INSTALLED_VERSION}.

  its configuration  {config}
  its slots          {shlex.quote(str(node.root.slots))}
  its log            {shlex.quote(str(node.root.log))}

In another shell:

  {lab} releases
      what can be pushed, good and bad
  {lab} push good --dir {here}
      a good release, by the section; --command for a daemon.upgrade, {AGAIN} for the same once more
  {lab} push never-welcomed --dir {here}
      one that is swapped back after 120 s
  {binary} update --config {config}
      what the node says of itself

Ctrl-C ends all of it. What happens to the node:
"""
