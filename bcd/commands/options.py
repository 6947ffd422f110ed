"""What the commands' parts of the command line share: options, the table of exit statuses, and groups that suggest."""

from difflib import get_close_matches
from typing import Any

import rich_click as click

from bcd.commands.streams import COLOR_CHOICES
from bcd.core.config import DEFAULT_PATH
from bcd.core.errors import UsageError
from bcd.core.text import clean

EXITS = (
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
