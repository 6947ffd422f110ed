"""The command line as click knows it: groups, options, help, suggestions; the work is elsewhere and opened late."""

import sys
from difflib import get_close_matches
from typing import Any

import rich_click as click
from click.exceptions import NoArgsIsHelpError

from bcd.commands.streams import COLOR_CHOICES
from bcd.core.config import DEFAULT_PATH
from bcd.core.errors import UsageError
from bcd.core.exits import ExitStatus
from bcd.core.text import clean

_EXITS = (
    "Exit status: 0 well; 1 not well, or it did not work; 2 wrong usage or configuration; "
    "4 not permitted, or could not look; 5 an update is in progress; 70 a fault in bcd itself; 130 interrupted."
)

click.rich_click.SHOW_ARGUMENTS = True
click.rich_click.MAX_WIDTH = 100

config_option = click.option(
    "--config", "config_path", metavar="FILE", default=DEFAULT_PATH, show_default=True, help="The configuration."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, of a published schema.")
color_option = click.option(
    "--color", type=click.Choice(COLOR_CHOICES), default="auto", show_default=True, help="When to colour."
)


class Suggesting(click.RichGroup):
    """A group that names the nearest command to an unknown one."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:  # noqa: ANN401  # click's own type
        """Find the command, or say which one was meant."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            near = get_close_matches(args[0], self.list_commands(ctx), 1, 0.0)
            hint = f"did you mean `{ctx.command_path} {near[0]}`?" if near else f"`{ctx.command_path} --help`"
            raise UsageError("unknown-command", f"{ctx.command_path} has no command {clean(args[0], 60)!r}", hint)
        return super().resolve_command(ctx, args)


class UpdateGroup(Suggesting):
    """`bcd update`: with `--clear-failed`, what follows are versions and no command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the versions apart before click looks for a command among them."""
        if "--clear-failed" in args:
            at = args.index("--clear-failed")
            rest = args[at + 1 :]
            taken = next((i for i, word in enumerate(rest) if word.startswith("-")), len(rest))
            ctx.meta["bcd.versions"] = tuple(rest[:taken])
            args = [*args[: at + 1], *rest[taken:]]
        return super().parse_args(ctx, args)


@click.group(cls=Suggesting, epilog=_EXITS, context_settings={"help_option_names": ["-h", "--help"]})
def bcd() -> None:
    """The agent on every machine of a compute fleet: it replaces its own binary, and swaps it back when it must."""


@bcd.group(cls=UpdateGroup, invoke_without_command=True, epilog=_EXITS)
@config_option
@click.option(
    "--clear-failed",
    is_flag=True,
    help="Forget failed versions, so that a rollout may try them here again: those named after it, or all.",
)
@json_option
@color_option
@click.pass_context
def update(ctx: click.Context, config_path: str, clear_failed: bool, as_json: bool, color: str) -> int:  # noqa: FBT001
    """Show this node's update state: what runs, from which slot, what is pending, what failed here and why.

    \b
    bcd update                           the state
    bcd update --clear-failed            forget every failed version
    bcd update --clear-failed 1.4.1      forget one
    bcd update check release.json        would this node take this release?
    bcd update history                   what happened here
    """
    if ctx.invoked_subcommand is not None:
        return ExitStatus.OK
    if clear_failed:
        from bcd.commands.clear import clear_failed_versions

        return clear_failed_versions(config_path, ctx.meta.get("bcd.versions", ()), as_json=as_json)
    from bcd.commands.show import show_update

    return show_update(config_path, as_json=as_json, color=color)


@update.command(epilog=_EXITS)
@click.argument("manifest", metavar="MANIFEST")
@click.option("--url", help="Where a rollout would have it downloaded from; checked too when given.")
@click.option("--sha256", help="The digest that a rollout would name; checked too when given.")
@config_option
@json_option
@color_option
def check(manifest: str, url: str | None, sha256: str | None, config_path: str, as_json: bool, color: str) -> int:  # noqa: FBT001
    """Would this node take this release? Every check in order: passed, failed or not reached. Changes nothing.

    MANIFEST is a file with a signed release manifest, or - for standard input.
    """
    from bcd.commands.check import check_release

    return check_release(manifest, url=url, sha256=sha256, config_path=config_path, as_json=as_json, color=color)


@update.command(epilog=_EXITS)
@click.option("-n", "count", type=click.IntRange(1), default=20, show_default=True, help="How many events at most.")
@config_option
@json_option
def history(count: int, config_path: str, as_json: bool) -> int:  # noqa: FBT001
    """What happened here, newest first."""
    from bcd.commands.history import show_history

    return show_history(config_path, count, as_json=as_json)


def _agent(role: str, summary: str) -> None:
    @bcd.command(name=role, help=summary, epilog="Exit status: 0 stopped by a signal; 1 it could not start; 2 wrong configuration.")
    @config_option
    @click.option(
        "--log-level",
        type=click.Choice(("debug", "info", "warning", "error")),
        default="info",
        show_default=True,
        help="What is logged to standard error.",
    )
    def run(config_path: str, log_level: str) -> int:
        from bcd.commands.agent import run_role

        return run_role(role, config_path, log_level)


_agent("node", "Run the agent of a node. It updates itself.")
_agent("site", "Run the agent of a site. It updates itself.")
_agent("sim", "Run a simulated node. It does not update itself.")
_agent("ramdisk", "Run the agent of a machine that boots from a RAM disk. It does not update itself.")


@bcd.command(epilog=_EXITS)
@json_option
def version(as_json: bool) -> int:  # noqa: FBT001
    """Say which build this is."""
    from bcd.commands.show import show_version

    return show_version(as_json=as_json)


@bcd.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> int:
    """Print a shell's completion script: `bcd completion bash > /etc/bash_completion.d/bcd`."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is not None:
        click.echo(found(bcd, {}, "bcd", "_BCD_COMPLETE").source())
    return ExitStatus.OK


def run_click(arguments: list[str]) -> int:
    """Run the command line through click and return its exit status.

    Raises:
        UsageError: `bad-usage`, click could not make sense of it.
    """
    try:
        result = bcd.main(arguments, prog_name="bcd", complete_var="_BCD_COMPLETE", standalone_mode=False)
    except NoArgsIsHelpError as error:
        error.show()
        return ExitStatus.USAGE
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else "bcd"
        raise UsageError("bad-usage", error.format_message(), f"`{where} --help` shows what it takes") from error
    except click.Abort:
        return ExitStatus.INTERRUPTED
    return result if isinstance(result, int) else ExitStatus.OK


