"""What the commands' parts of the command line share: options, exit statuses, groups that suggest, and help that reads."""

import inspect
import re
import shutil
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import rich_click as click

from bcd.commands.streams import COLOR_CHOICES
from bcd.core.config import DEFAULT_PATH
from bcd.core.errors import UsageError
from bcd.core.exits import ExitStatus
from bcd.core.text import clean

MEANINGS = {
    ExitStatus.OK: "well",
    ExitStatus.PROBLEM: "not well, or it did not work",
    ExitStatus.USAGE: "wrong usage or configuration",
    ExitStatus.NOT_PERMITTED: "not permitted, or could not look",
    ExitStatus.BUSY: "an update is in progress",
    ExitStatus.CRASH: "a fault in bcd itself",
    ExitStatus.INTERRUPTED: "interrupted",
}
_EPILOG = "Exit status: "
_FILLING = re.compile(r"(?: |\x1b\[[0-9;]*m)+$")
_WIDTHS = (60, 100)
"""Help is drawn so wide at least, since a narrower table would cut its words, and at most."""


def exits(*statuses: ExitStatus) -> str:
    """The epilog that lists these statuses; help sets it as a table."""
    return _EPILOG + "; ".join(f"{status:d} {MEANINGS[status]}" for status in statuses) + "."


EXITS = exits(*MEANINGS)

click.rich_click.THEME = "default-slim"
click.rich_click.ENABLE_THEME_ENV_VAR = False
click.rich_click.SHOW_ARGUMENTS = False
click.rich_click.APPEND_METAVARS_HELP_STRING = "{}"
click.rich_click.DEFAULT_STRING = r"\[default: {}]"
click.rich_click.OPTIONS_TABLE_HELP_SECTIONS = ["help", "required", "default"]


def prepare_help(*, color: bool) -> None:
    """Draw help in this terminal's width, and in colour or not by the same decision as all else (streams)."""
    least, most = _WIDTHS
    click.rich_click.WIDTH = max(least, min(most, shutil.get_terminal_size().columns))
    click.rich_click.FORCE_TERMINAL = color
    click.rich_click.COLOR_SYSTEM = "standard" if color else None


def _file(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    # An unset variable in a script must not mean the defaults.
    if not value:
        raise click.BadParameter("the file's name is empty")
    return value


config_option = click.option(
    "--config",
    "config_path",
    metavar="FILE",
    default=DEFAULT_PATH,
    show_default=True,
    callback=_file,
    help="Configuration.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, of a published schema.")
color_option = click.option(
    "--color", type=click.Choice(COLOR_CHOICES), default="auto", show_default=True, help="When to colour."
)


class Command(click.RichCommand):
    """A command whose help keeps its examples as they are written, and lists its exit statuses."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Say of which command a mistake was made, which click forgets for some."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def get_help(self, ctx: click.Context) -> str:
        """The help, without the blanks that fill each line up."""
        lines = [_FILLING.sub(lambda run: run[0].replace(" ", ""), line) for line in super().get_help(ctx).splitlines()]
        while lines and not click.unstyle(lines[-1]):
            lines.pop()
        return "\n".join(lines)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's signature
        """Write the description; what follows a backspace stays in its lines."""
        from rich.padding import Padding  # for help alone
        from rich.text import Text

        for paragraph in inspect.cleandoc(self.help or "").split("\n\n"):
            verbatim = paragraph.startswith("\b\n")
            words = paragraph.removeprefix("\b\n") if verbatim else " ".join(paragraph.split())
            formatter.write(Padding(Text(words), (0, 0, 1, 0)))  # type: ignore[arg-type]  # rich-click's takes renderables

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # as above
        """Write the exit statuses as a table."""
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        if self.epilog:
            table = Table.grid(padding=(0, 2))
            table.add_column(no_wrap=True, justify="right")
            for status, meaning in _statuses(self.epilog):
                table.add_row(Text(status), Text(meaning))
            formatter.write(Text("Exit status:"))  # type: ignore[arg-type]  # as above
            formatter.write(Padding(table, (0, 0, 0, 2)))  # type: ignore[arg-type]  # as above


def _statuses(epilog: str) -> Iterator[tuple[str, str]]:
    for entry in epilog.removeprefix(_EPILOG).rstrip(".").split("; "):
        status, _, meaning = entry.partition(" ")
        yield status, meaning


def nearest(word: str, known: Sequence[str], likeness: float) -> str | None:
    """The one of `known` that was most likely meant: one that begins so, else the most alike (0 to 1, at least)."""
    begun = [name for name in known if name.startswith(word)]
    return next(iter(begun or get_close_matches(word, known, 1, likeness)), None)


class Suggesting(Command, click.RichGroup):  # type: ignore[misc]  # rich-click's group overrides click's the same way
    """A group that names the nearest command to an unknown one, and lists its commands as they were added."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """The commands' names, the most wanted first."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a command where one is needed, show the help to people: stdout is for data."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            click.echo(click.unstyle(ctx.get_help()), err=True)
            ctx.exit(ExitStatus.USAGE)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command, or say which one was meant."""
        if args and self.get_command(ctx, args[0]) is None:
            near = "--help" if args[0] == "help" else nearest(args[0], self.list_commands(ctx), 0.0)
            hint = f"did you mean `{ctx.command_path} {near}`?"
            raise UsageError("unknown-command", f"{ctx.command_path} has no command '{clean(args[0], 60)}'", hint)
        return super().resolve_command(ctx, args)
