"""The command line as click knows it: the groups, help and errors; the work is elsewhere and opened late."""

import os
import sys
from itertools import pairwise

import rich_click as click
from click.exceptions import Exit

from bcd.commands.console_options import console
from bcd.commands.doctor_options import doctor
from bcd.commands.lab import lab
from bcd.commands.options import Suggesting, config_option, json_option, nearest, prepare_help
from bcd.commands.release import release
from bcd.commands.streams import COLOR_CHOICES, wants_color
from bcd.commands.update import update
from bcd.core.errors import UsageError
from bcd.core.exits import ExitStatus
from bcd.core.text import clean

_COMPLETE = "_BCD_COMPLETE"
_AGENT_EXITS = (
    "Exit status: 0 stopped by a signal; 1 it could not start; 2 wrong usage or configuration; "
    "4 not permitted; 70 a fault in bcd itself."
)


@click.group(cls=Suggesting, context_settings={"help_option_names": ["-h", "--help"]})
def bcd() -> None:
    """The agent on every machine of a compute fleet: it replaces its own binary, and swaps it back when it must."""


bcd.add_command(update)
bcd.add_command(doctor)
bcd.add_command(console)
bcd.add_command(lab)
bcd.add_command(release)


_log_level_option = click.option(
    "--log-level",
    metavar="LEVEL",
    type=click.Choice(("debug", "info", "warning", "error")),
    default="info",
    show_default=True,
    help="What is logged to standard error: debug, info, warning or error.",
)


def _agent(role: str, summary: str) -> None:
    @bcd.command(name=role, help=summary, epilog=_AGENT_EXITS)
    @config_option
    @_log_level_option
    def run(config_path: str, log_level: str) -> int:
        from bcd.commands.agent import run_role

        return run_role(role, config_path, log_level)


_agent("node", "Run the agent of a node. It updates itself.")
_agent("site", "Run the agent of a site. It updates itself.")
_agent("sim", "Run a simulated node. It does not update itself.")
_agent("ramdisk", "Run the agent of a machine that boots from a RAM disk. It does not update itself.")


@bcd.command(epilog=_AGENT_EXITS)
@config_option
@_log_level_option
def helper(config_path: str, log_level: str) -> int:
    """Run the privileged half of a node that runs as its own user, as root."""
    from bcd.commands.agent import run_helper_command

    return run_helper_command(config_path, log_level)


@bcd.command()
@json_option
def version(as_json: bool) -> int:  # noqa: FBT001
    """Say which build this is."""
    from bcd.commands.show import show_version

    return show_version(as_json=as_json)


@bcd.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> int:
    """Print the completion script of a shell: bash, zsh or fish.

    \b
    Examples:
      bcd completion bash > /etc/bash_completion.d/bcd
      bcd completion zsh > /usr/local/share/zsh/site-functions/_bcd
      bcd completion fish > /etc/fish/completions/bcd.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is not None:
        click.echo(found(bcd, {}, "bcd", "_BCD_COMPLETE").source())
    return ExitStatus.OK


def run_click(arguments: list[str]) -> int:
    """Run the command line through click and return its exit status.

    Raises:
        UsageError: `bad-usage`, click could not make sense of it; `unknown-command`.
    """
    color = wants_color(_color_choice(arguments), sys.stdout)
    prepare_help(color=color)
    if os.environ.get(_COMPLETE):
        return _complete()
    # Not bcd.main(): it turns a reader of stdout that went away into a failure, and ends the process by itself.
    try:
        with bcd.make_context("bcd", arguments, color=color) as context:
            result = bcd.invoke(context)
    except Exit as end:
        return end.exit_code
    except click.UsageError as error:
        raise _usage_error(error) from error
    return result if isinstance(result, int) else ExitStatus.OK


def _complete() -> int:
    try:
        bcd.main([], prog_name="bcd", complete_var=_COMPLETE, standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitStatus.OK
    return ExitStatus.OK


def _usage_error(error: click.UsageError) -> UsageError:
    where = "bcd" if error.ctx is None else error.ctx.command_path
    hint = f"`{where} --help` shows what it takes"
    if not isinstance(error, click.NoSuchOption):
        return UsageError("bad-usage", error.format_message(), hint)
    name, near = error.option_name, None
    if error.ctx is not None:
        command = error.ctx.command
        near = nearest(name, [option for param in command.get_params(error.ctx) for option in param.opts], 0.6)
        if near is None and isinstance(command, click.Group) and name.lstrip("-") in command.commands:
            near = name.lstrip("-")  # `bcd --version`: the word is right, the dashes are not
    if near is not None:
        hint = f"did you mean `{where} {near}`?"
    return UsageError("bad-usage", f"{where} has no option '{clean(name, 60)}'", hint)


def _color_choice(arguments: list[str]) -> str:
    for word, following in pairwise([*arguments, ""]):
        if word in ("--color", *(f"--color={choice}" for choice in COLOR_CHOICES)):
            choice = word.partition("=")[2] or following
            return choice if choice in COLOR_CHOICES else "auto"
    return "auto"
