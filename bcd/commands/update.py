"""`bcd update` as click knows it; its plain forms never come here (bcd.cli)."""

import rich_click as click

from bcd.commands.options import EXITS, Suggesting, color_option, config_option, json_option
from bcd.core.exits import ExitStatus


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


@click.group(cls=UpdateGroup, invoke_without_command=True, epilog=EXITS)
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


@update.command(epilog=EXITS)
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


@update.command(epilog=EXITS)
@click.option("-n", "count", type=click.IntRange(1), default=20, show_default=True, help="How many events at most.")
@config_option
@json_option
def history(count: int, config_path: str, as_json: bool) -> int:  # noqa: FBT001
    """What happened here, newest first."""
    from bcd.commands.history import show_history

    return show_history(config_path, count, as_json=as_json)
