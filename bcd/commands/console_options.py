"""`bcd console` as click knows it."""

import sys

import rich_click as click
from click.core import ParameterSource

from bcd.commands.options import Command, color_option, config_option
from bcd.commands.streams import wants_color
from bcd.core.errors import UsageError
from bcd.core.exits import ExitStatus

LAB_SCREEN = "lab"
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
    type=click.Choice((*SCREENS, LAB_SCREEN)),
    metavar="SCREEN",
    default="overview",
    show_default="overview; lab with --lab",
    help=f"Where to open: {', '.join(SCREENS[:-1])} or {SCREENS[-1]}; with --lab also {LAB_SCREEN}.",
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
@click.option("--lab", is_flag=True, help="Look at a fresh lab in the place of this node; it is gone at the end.")
@color_option
@click.pass_context
def console(
    ctx: click.Context,
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
    lab: bool,  # noqa: FBT001
    color: str,
) -> int:
    """Leave it open during a rollout: what runs, where the update is, how long it has, what failed and why."""
    from bcd.commands.console import Asked, run_console, run_narrated
    from bcd.commands.console_lab import decide_colour, narrate_lab, run_on_lab
    from bcd.tui.view import View

    given = {name for name in ctx.params if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    if lab and "config_path" in given:
        raise UsageError("bad-usage", "a lab brings its own configuration", "leave out --lab or --config")
    if screen == LAB_SCREEN and not lab:
        raise UsageError("bad-usage", "this node is no lab, so there is no such screen", "add --lab for a fresh one")
    if bundle is not None and (narrate or lab):
        why = "--bundle shows what was, --narrate tells what changes, and a lab is made anew"
        raise UsageError("bad-usage", why, "bcd doctor open FILE prints a bundle")
    if narrate:
        if lab:
            return narrate_lab()
        run_narrated(config_path)
        return ExitStatus.OK
    decide_colour(wanted=wants_color(color, sys.stderr))
    asked = Asked(
        config_path=config_path,
        view=View(screen=LAB_SCREEN if lab and "screen" not in given else screen, filter=filtered, cursor=cursor),
        theme=theme,
        mouse=mouse,
        read_only=read_only,
        log=log,
        color=color,
        bundle=bundle,
    )
    return run_on_lab(asked) if lab else run_console(asked)
