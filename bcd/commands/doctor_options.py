"""`bcd doctor` as click knows it."""

import re
import sys

import rich_click as click

from bcd.commands.options import Suggesting, color_option, config_option
from bcd.commands.streams import wants_color
from bcd.core.errors import UsageError
from bcd.core.exits import ExitStatus
from bcd.core.text import clean

_EXITS = (
    "Exit status: 0 nothing fails; 1 something fails; 2 wrong usage; 3 warnings, under --strict; "
    "4 nothing fails and something could not be told; 124 --wait timed out; 130 interrupted."
)
_FORMATS = ("rich", "plain", "json", "junit", "prometheus")
_FORMAT_HELP = "rich (on a terminal), plain (elsewhere), json, junit or prometheus."
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, None: 1}


@click.group(cls=Suggesting, invoke_without_command=True, epilog=_EXITS)
@config_option
@click.option("--format", "form", metavar="FORMAT", type=click.Choice(_FORMATS), help=_FORMAT_HELP)
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("--only", multiple=True, metavar="GLOB", help="Only checks whose id matches; may be repeated.")
@click.option("--skip", multiple=True, metavar="GLOB", help="Not the checks whose id matches; may be repeated.")
@click.option("--list", "list_only", is_flag=True, help="List the checks.")
@click.option("--offline", is_flag=True, help="Leave out what needs the network.")
@click.option("--strict", is_flag=True, help="Warnings count: status 3 where there are only warnings.")
@click.option("--timeout", metavar="SPAN", default="5s", show_default=True, help="What each check may take.")
@click.option("--wait", metavar="SPAN", help="Look again until nothing fails and nothing is pending, at most so long.")
@click.option("--watch", is_flag=True, help="A live view until Ctrl-C.")
@click.option("--self-test", is_flag=True, help="Prove every check on planted faults, in a temporary directory.")
@click.option("-v", "--verbose", is_flag=True, help="Show every finding.")
@color_option
@click.pass_context
def doctor(
    ctx: click.Context,
    config_path: str,
    form: str | None,
    as_json: bool,  # noqa: FBT001
    only: tuple[str, ...],
    skip: tuple[str, ...],
    list_only: bool,  # noqa: FBT001
    offline: bool,  # noqa: FBT001
    strict: bool,  # noqa: FBT001
    timeout: str,
    wait: str | None,
    watch: bool,  # noqa: FBT001
    self_test: bool,  # noqa: FBT001
    verbose: bool,  # noqa: FBT001
    color: str,
) -> int:
    """Look this node over: what is wrong, why it matters, and the command that mends it. Changes nothing."""
    if ctx.invoked_subcommand is not None:
        return ExitStatus.OK
    from bcd.commands import doctor as work

    if list_only:
        return work.list_checks()
    checks = work.select_checks(only, skip, offline=offline)
    colored, terminal = wants_color(color, sys.stdout), sys.stdout.isatty()
    timeout_seconds = parse_span(timeout)
    chosen = work.chosen_format(form, as_json=as_json, terminal=terminal)
    if self_test:
        return work.self_test(checks, form=chosen, color=colored)
    if watch:
        if not terminal:
            raise UsageError("no-terminal", "--watch needs a terminal", "bcd doctor --json, or --wait SPAN")
        return work.watch(config_path, checks, timeout_seconds=timeout_seconds, verbose=verbose, color=colored)
    return work.examine(
        config_path,
        checks,
        timeout_seconds=timeout_seconds,
        wait_seconds=None if wait is None else parse_span(wait),
        form=chosen,
        strict=strict,
        verbose=verbose,
        color=colored,
        terminal=terminal and sys.stderr.isatty(),
    )


@doctor.command(epilog=_EXITS)
@click.argument("file", metavar="FILE.tar.gz")
@config_option
@click.option("--offline", is_flag=True, help="Leave out what needs the network.")
@click.option("--timeout", metavar="SPAN", default="5s", show_default=True, help="What each check may take.")
def bundle(file: str, config_path: str, offline: bool, timeout: str) -> int:  # noqa: FBT001
    """Collect what support needs into FILE: the report, records, history, units, the recent journal.

    Secrets are taken out; what can't be parsed is left out, and listed as left out.
    """
    from bcd.commands.bundle import make_bundle

    return make_bundle(file, config_path, offline=offline, timeout_seconds=parse_span(timeout))


@doctor.command("open", epilog=_EXITS)
@click.argument("file", metavar="FILE.tar.gz")
@click.option("--format", "form", metavar="FORMAT", type=click.Choice(_FORMATS), help=_FORMAT_HELP)
@click.option("-v", "--verbose", is_flag=True, help="Show every finding, and what the bundle holds.")
@color_option
def open_(file: str, form: str | None, verbose: bool, color: str) -> int:  # noqa: FBT001
    """Show the report in a bundle, on whatever machine this is. Unpacks nothing."""
    from bcd.commands.bundle import show_bundle

    terminal = sys.stdout.isatty()
    chosen = form or ("rich" if terminal else "plain")
    return show_bundle(file, form=chosen, verbose=verbose, color=wants_color(color, sys.stdout))


def parse_span(text: str) -> float:
    """Seconds of `90s`, `2m`, `1h` or a bare number.

    Raises:
        UsageError: `bad-span`.
    """
    found = _SPAN.fullmatch(text)
    if found is None:
        raise UsageError("bad-span", f"{clean(text, 40)!r} is no time span", "write 90s, 2m or 1h")
    return float(found[1]) * _SECONDS[found[2]]
