"""`bcd console` as click knows it."""

import os
import sys

import rich_click as click

from bcd.commands.options import Command, color_option, config_option
from bcd.commands.streams import wants_color
from bcd.core.exits import ExitStatus

SCREENS = ("overview", "failed", "doctor", "check", "history", "journal", "config")
_EXITS = (
    "Exit status: 0 quit; 2 wrong usage, or no terminal; 70 a fault in bcd itself; "
    "129 the terminal is gone; 143 ended by a signal."
)
THEMES = ("dark", "light", "contrast")


@click.command(cls=Command, epilog=_EXITS)
@config_option
@click.option(
    "--screen",
    type=click.Choice(SCREENS),
    metavar="SCREEN",
    default="overview",
    show_default=True,
    help=f"Where to open: {', '.join(SCREENS[:-1])} or {SCREENS[-1]}.",
)
@click.option("--theme", type=click.Choice(THEMES), default="dark", show_default=True, help="Colours.")
@click.option("--read-only", is_flag=True, help="Show, and change nothing.")
@click.option("--mouse", is_flag=True, help="Take the mouse too.")
@click.option("--log", metavar="FILE", help="The log to follow where the service's is no journal.")
@click.option("--filter", "filtered", metavar="TEXT", default="", help="Open with this in the screen's field.")
@click.option("--cursor", metavar="WHAT", default="", help="Open on this: a failed version, a finding's id, an event.")
@click.option(
    "--bundle", metavar="FILE", help="Show another machine's bundle (bcd doctor bundle), and nothing of this one."
)
@click.option("--narrate", is_flag=True, help="No screen: a plain sentence a change, for screen readers and logs.")
@color_option
def console(
    config_path: str,
    screen: str,
    theme: str,
    read_only: bool,  # noqa: FBT001
    mouse: bool,  # noqa: FBT001
    log: str | None,
    filtered: str,
    cursor: str,
    bundle: str | None,
    narrate: bool,  # noqa: FBT001
    color: str,
) -> int:
    """Leave it open during a rollout: what runs, where the update is, how long it has, what failed and why."""
    from bcd.commands.console import Asked, run_console, run_narrated
    from bcd.tui.view import View

    if narrate and bundle is not None:
        raise click.UsageError(
            "--bundle shows what was, and --narrate tells what changes; bcd doctor open FILE prints it"
        )
    if narrate:
        run_narrated(config_path)
        return ExitStatus.OK
    if wants_color(color, sys.stderr):
        os.environ.pop("NO_COLOR", None)
    else:
        # Textual asks whether the variable is there at all; one place of ours decides.
        os.environ["NO_COLOR"] = "1"
    return run_console(
        Asked(
            config_path=config_path,
            view=View(screen=screen, filter=filtered, cursor=cursor),
            theme=theme,
            mouse=mouse,
            read_only=read_only,
            log=log,
            color=color,
            bundle=bundle,
        )
    )
