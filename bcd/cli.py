"""The `bcd` command: parses, opens the right layer lazily, owns the streams and the exit status.

`bcd update`, `bcd version` and `bcd doctor` in their plain forms are taken by hand before click is loaded, which alone would cost
more than both; every other spelling, help and errors included, is click's. What is loaded when is measured (ADR 0002).
"""

import gc
import os
import sys
from collections.abc import Sequence

_PLAIN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "update": (("--config", "--color"), ("--json",)),
    "version": ((), ("--json",)),
    "doctor": (("--config", "--color", "--format"), ("--json", "--offline", "--strict", "--verbose", "-v")),
}
"""The commands with a plain form: its options with a value, and those without."""
_CHOICES: dict[str, tuple[str, ...]] = {
    "--color": ("auto", "always", "never"),
    "--format": ("rich", "plain", "json", "junit", "prometheus"),
}
"""What some values must be, for click to complain where they are not."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status. Nothing is raised, and nobody sees a traceback."""
    from bcd.commands.streams import drop_stdout, prepare_streams, print_error, status_of
    from bcd.core.errors import BcdError
    from bcd.core.exits import ExitStatus

    prepare_streams()
    status: int = ExitStatus.OK
    try:
        status = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()  # what can't be written fails here, where it is told, and not at the end, where nobody asks
    except BcdError as error:
        print_error(error)
        return status_of(error)
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    except BrokenPipeError:
        drop_stdout()
    except Exception as error:  # noqa: BLE001  # the last line: a fault of bcd's own
        from bcd.commands.crash import report_fault

        return report_fault(error)
    return status


def entry() -> None:
    """The console script. Ends the process at once: taking an interpreter apart costs as much as `bcd update` does."""
    # A command that lives for 40 ms makes no garbage worth a collection; what lives longer switches it on again.
    gc.disable()
    try:
        status = main()
    except KeyboardInterrupt:  # between two of main's own lines
        status = 130
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(status)


def _run(arguments: list[str]) -> int:
    known = _PLAIN.get(arguments[0]) if arguments else None
    plain = None if known is None else _plain_options(arguments[1:], known)
    if plain is None:
        gc.enable()
        from bcd.commands.root import run_click

        return run_click(arguments)
    from bcd.commands.show import show_update, show_version
    from bcd.core.config import DEFAULT_PATH

    if arguments[0] == "version":
        return show_version(as_json="--json" in plain)
    if arguments[0] == "doctor":
        from bcd.commands.doctor import examine_plainly

        return examine_plainly(plain.get("--config", DEFAULT_PATH), plain)
    return show_update(
        plain.get("--config", DEFAULT_PATH), as_json="--json" in plain, color=plain.get("--color", "auto")
    )


def _plain_options(arguments: list[str], known: tuple[tuple[str, ...], tuple[str, ...]]) -> dict[str, str] | None:
    """The options, where they are the plain ones alone; None leaves it to click to understand or to complain."""
    with_value, without = known
    options: dict[str, str] = {}
    waiting = iter(arguments)
    for argument in waiting:
        name, given, value = argument.partition("=")
        if argument in without:
            options[argument] = ""
        elif name in with_value:
            found = value if given else next(waiting, None)
            if not found or found not in _CHOICES.get(name, (found,)):
                return None
            options[name] = found
        else:
            return None
    return options
