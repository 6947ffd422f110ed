"""The command line as click knows it: the groups, help and errors; the work is elsewhere and opened late."""

import rich_click as click
from click.exceptions import NoArgsIsHelpError

from bcd.commands.doctor_options import doctor
from bcd.commands.lab import lab
from bcd.commands.options import EXITS, Suggesting, config_option, json_option
from bcd.commands.update import update
from bcd.core.errors import UsageError
from bcd.core.exits import ExitStatus


@click.group(cls=Suggesting, epilog=EXITS, context_settings={"help_option_names": ["-h", "--help"]})
def bcd() -> None:
    """The agent on every machine of a compute fleet: it replaces its own binary, and swaps it back when it must."""


bcd.add_command(update)
bcd.add_command(doctor)
bcd.add_command(lab)


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


@bcd.command(epilog=EXITS)
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


