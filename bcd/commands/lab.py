"""`bcd lab` as click knows it: a whole world on one machine."""

import sys
from pathlib import Path

import rich_click as click

from bcd.commands.options import EXITS, Suggesting, color_option
from bcd.commands.streams import wants_color
from bcd.core.errors import UsageError
from bcd.core.exits import ExitStatus

dir_option = click.option(
    "--dir", "directory", type=click.Path(path_type=Path), help="Where the lab lives; a temporary directory otherwise."
)
split_option = click.option(
    "--split", is_flag=True, help="Run each node as a user of its own with `bcd helper` beside it; needs root."
)


@click.group(cls=Suggesting, invoke_without_command=True, epilog=EXITS)
@split_option
@click.pass_context
def lab(ctx: click.Context, split: bool) -> int:  # noqa: FBT001
    """A whole world on this machine: gateway, release server, releases good and bad, real nodes that update.

    Needs no root (but for --split), no network, and nothing outside one directory. Without a command it opens the
    console on a fresh lab, as `bcd console --lab` does; where no screen can be opened it plays the tour.
    """
    if split and ctx.invoked_subcommand is not None:
        command = f"bcd lab {ctx.invoked_subcommand} --split"
        raise UsageError("bad-usage", "--split belongs after the command", f"{command}, where it takes one")
    if ctx.invoked_subcommand is None:
        from bcd.commands.console_lab import can_open, decide_colour, run_on_lab

        if can_open():
            from bcd.commands.console import Asked
            from bcd.core.config import DEFAULT_PATH
            from bcd.tui.view import View

            decide_colour(wanted=wants_color("auto", sys.stderr))
            return run_on_lab(Asked(config_path=DEFAULT_PATH, view=View(screen="lab")), split=split)
        return _tour(None, (), "auto", split=split)
    return ExitStatus.OK


@lab.command(epilog=EXITS)
@dir_option
@click.option("--only", multiple=True, metavar="GLOB", help="Play the scenarios whose names match; may be repeated.")
@split_option
@color_option
def tour(directory: Path | None, only: tuple[str, ...], split: bool, color: str) -> int:  # noqa: FBT001
    """Play every scenario on real nodes, and say how each ended. Takes a little over two minutes."""
    return _tour(directory, only, color, split=split)


@lab.command(epilog=EXITS)
@dir_option
@split_option
def up(directory: Path | None, split: bool) -> int:  # noqa: FBT001
    """Keep a world with one node running, and say how to reach it. Ctrl-C ends it."""
    from bcd.lab.commands import up as run_up

    return run_up(dir=directory, split=split, out=sys.stdout, err=sys.stderr)


@lab.command(epilog=EXITS)
@click.argument("release")
@click.option("--dir", "directory", type=click.Path(path_type=Path), required=True, help="The directory of the lab.")
@click.option("--command", "by_command", is_flag=True, help="Send a daemon.upgrade in place of the section.")
def push(release: str, directory: Path, by_command: bool) -> int:  # noqa: FBT001
    """Push RELEASE to the node of a lab that is up; `bcd lab releases` lists what there is."""
    from bcd.lab.commands import push as run_push

    return run_push(name=release, dir=directory, by_command=by_command, out=sys.stdout)


@lab.command(epilog=EXITS)
def releases() -> int:
    """List the releases that can be pushed, good and bad."""
    from bcd.lab.commands import releases as run_releases

    return run_releases(out=sys.stdout)


def _tour(directory: Path | None, only: tuple[str, ...], color: str, *, split: bool) -> ExitStatus:
    from bcd.lab.commands import tour as run_tour

    return run_tour(
        dir=directory,
        only=only,
        split=split,
        color=wants_color(color, sys.stdout),
        terminal=sys.stdout.isatty(),
        out=sys.stdout,
        err=sys.stderr,
    )
