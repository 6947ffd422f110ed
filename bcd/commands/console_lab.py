"""The console over a fresh lab: `bcd console --lab`, and `bcd lab` on a terminal. Gone with all of it at the end."""

import os
import sys
from dataclasses import replace

from bcd.commands.console import Asked, run_console, run_narrated
from bcd.commands.streams import print_lines, say
from bcd.core.errors import UsageError
from bcd.core.exits import ExitStatus
from bcd.tui.preflight import require_terminal


def can_open() -> bool:
    """Whether a screen can be opened, and nobody redirects what would be printed in its place."""
    try:
        require_terminal()
    except UsageError:
        return False
    return sys.stdout.isatty()


def run_on_lab(asked: Asked, *, split: bool = False) -> ExitStatus:
    """Make a lab, open the console on it, and take both down; `asked` is of the lab's node but for where that lies.

    `split` gives its node a user of its own, with the helper beside it.

    Raises:
        UsageError: `no-terminal`, or what a lab raises when it is made.
        NotPermitted: `needs-root`, for a split one.
        HostError: `lab-failed`: its node did not come up.
    """
    require_terminal()
    from bcd.lab.session import lab_session
    from bcd.lab.signals import Ended

    say(["a lab is being made: keys, a gateway, a release server, and a node that runs bcd 1.4.0"])
    try:
        with lab_session(split=split) as lab:
            log = lab.log if asked.log is None else asked.log
            return run_console(replace(asked, config_path=lab.config, log=log), lab)
    except Ended as ended:
        return ended.status


def narrate_lab() -> ExitStatus:
    """Make a lab and say what happens to its node, a sentence a line. Raises as `run_on_lab` does."""
    from bcd.lab.session import lab_session
    from bcd.lab.signals import Ended

    try:
        with lab_session() as lab:
            where = lab.desk.directory
            print_lines([f"A lab is up in {where}. In another shell: bcd lab push good --dir {where}"])
            run_narrated(lab.config, lab=lab)
    except Ended as ended:
        return ended.status
    return ExitStatus.OK


def decide_colour(*, wanted: bool) -> None:
    """Textual asks whether NO_COLOR is there at all; one place of ours decides."""
    if wanted:
        os.environ.pop("NO_COLOR", None)
    else:
        os.environ["NO_COLOR"] = "1"
