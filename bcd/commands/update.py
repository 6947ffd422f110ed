"""`bcd update` as click knows it; its plain forms never come here (bcd.cli)."""

from itertools import islice

import rich_click as click
from click.core import ParameterSource

from bcd.commands.options import EXITS, MEANINGS, Suggesting, color_option, config_option, exits, json_option
from bcd.core.exits import ExitStatus

_DEFAULT = ParameterSource.DEFAULT
_READING_EXITS = exits(*(status for status in MEANINGS if status is not ExitStatus.BUSY))


class UpdateGroup(Suggesting):
    """`bcd update`: with `--clear-failed`, words are versions and no command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the versions apart before click looks for a command among them."""
        if "--clear-failed" in args:
            versions, kept = [], []
            words = iter(args)
            for word in words:
                if word in ("--config", "--color"):
                    kept += [word, *islice(words, 1)]
                elif word.startswith("-"):
                    kept.append(word)
                else:
                    versions.append(word)
            ctx.meta["bcd.versions"] = tuple(versions)
            args = kept
        return super().parse_args(ctx, args)


@click.group(
    cls=UpdateGroup,
    invoke_without_command=True,
    epilog=EXITS,
    subcommand_metavar="[--clear-failed [VERSION]...] | [COMMAND]",
)
@config_option
@click.option(
    "--clear-failed",
    is_flag=True,
    help="Forget failed versions, those named or all: a rollout may try them here again.",
)
@json_option
@color_option
@click.pass_context
def update(ctx: click.Context, config_path: str, clear_failed: bool, as_json: bool, color: str) -> int:  # noqa: FBT001
    """Show this node's update state: what runs, from which slot, what is pending, what failed here and why.

    \b
    Examples:
      bcd update                         the state
      bcd update --json                  the same and more, for scripts
      bcd update --clear-failed          forget every failed version
      bcd update --clear-failed 1.4.1    forget one
      bcd update check release.json      would this node take this release?
      bcd update history                 what happened here, newest first
    """
    if ctx.invoked_subcommand is not None:
        # What was said before the command's name is said of the command.
        given = {name: value for name, value in ctx.params.items() if ctx.get_parameter_source(name) is not _DEFAULT}
        ctx.default_map = {ctx.invoked_subcommand: given}
        return ExitStatus.OK
    if clear_failed:
        from bcd.commands.clear import clear_failed_versions

        return clear_failed_versions(config_path, ctx.meta.get("bcd.versions", ()), as_json=as_json)
    from bcd.commands.show import show_update

    return show_update(config_path, as_json=as_json, color=color)


@update.command(epilog=_READING_EXITS)
@click.argument("manifest", metavar="MANIFEST")
@click.option("--url", metavar="URL", help="Where a rollout would have it downloaded from.")
@click.option("--sha256", metavar="HEX", help="The digest that a rollout would name.")
@config_option
@json_option
@color_option
def check(manifest: str, url: str | None, sha256: str | None, config_path: str, as_json: bool, color: str) -> int:  # noqa: FBT001
    """Would this node take this release? Every check of the rules in order. Changes nothing.

    MANIFEST is a file with a signed release manifest, or - for standard input. What a rollout's section would name
    beside it, its URL and digest, is checked where it is given.

    \b
    Examples:
      bcd update check release.json
      curl -s https://releases.example.com/1.4.1.json | bcd update check -
    """
    from bcd.commands.check import check_release

    return check_release(manifest, url=url, sha256=sha256, config_path=config_path, as_json=as_json, color=color)


@update.command(epilog=_READING_EXITS)
@click.option(
    "-n", "count", metavar="N", type=click.IntRange(1), default=20, show_default=True, help="How many events at most."
)
@config_option
@json_option
def history(count: int, config_path: str, as_json: bool) -> int:  # noqa: FBT001
    """What happened here, newest first."""
    from bcd.commands.history import show_history

    return show_history(config_path, count, as_json=as_json)
