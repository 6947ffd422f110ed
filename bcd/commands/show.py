"""`bcd update` and `bcd version` without anything that they do not need: no click, no rich, no crypto (ADR 0002)."""

import sys
from typing import Any

from bcd.commands.streams import BOLD, DIM, RED, YELLOW, note_defaults, paint, print_lines, wants_color
from bcd.core.build import this_build, this_platform
from bcd.core.clock import SystemClock
from bcd.core.config import load_config
from bcd.core.exits import ExitStatus
from bcd.core.status import Status, read_status, status_lines
from bcd.core.strict import MAX_INTEGER
from bcd.core.text import clean, raw
from bcd.node.client import read_live_state

_LINE = 10_000
"""Characters of a line at most; what is foreign in it was cut before."""
_STYLES = {
    "version": BOLD,
    "pending": YELLOW,
    "downloading": YELLOW,
    "failed": RED,
    "unreadable": YELLOW,
    "corrupt": RED,
}


def show_update(config_path: str, *, as_json: bool, color: str) -> ExitStatus:
    """Print the local state.

    Raises:
        UsageError: the configuration is broken.
        NotPermitted: it may not be read.
    """
    config = load_config(config_path)
    note_defaults(config)
    status = read_status(config, this_build(), SystemClock())
    agent = _plausible(read_live_state(config.node.data_dir))
    if as_json:
        import json  # as is the next: only for those who ask

        from bcd.core.statusjson import status_json

        print_lines([json.dumps(status_json(status, _as_told(agent)), indent=2)])
    else:
        colored = wants_color(color, sys.stdout)
        print_lines([_painted(clean(line, _LINE), color=colored) for line in status_lines(status, agent)])
    return exit_status(status)


def exit_status(status: Status) -> ExitStatus:
    """4 where something could not be looked at, 1 where a record is or was broken, or no slot is current, else 0."""
    states = {problem.state for problem in status.problems}
    if "unreadable" in states:
        return ExitStatus.NOT_PERMITTED
    broken = "corrupt" in states or bool(status.aside) or (status.current.present and status.current.slot is None)
    return ExitStatus.PROBLEM if broken else ExitStatus.OK


def show_version(*, as_json: bool) -> ExitStatus:
    """Print what this build is."""
    build = this_build()
    if as_json:
        import json

        print_lines([json.dumps({"format": 1, **build._asdict(), "platform": this_platform()})])
    else:
        print_lines([f"bcd {build.version}"])
    return ExitStatus.OK


def _painted(line: str, *, color: bool) -> str:
    word, mark, rest = line.partition(":")
    if not mark:
        word, mark, rest = line.partition(" ")
    style = _STYLES.get(word, DIM)
    return paint(word + mark, style, color=color) + rest


def _plausible(value: Any) -> Any:
    # What is no number in JSON (NaN), or none that can be reckoned with, says nothing.
    if isinstance(value, dict):
        return {key: _plausible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plausible(item) for item in value]
    return None if isinstance(value, int | float) and not abs(value) <= MAX_INTEGER else value


def _as_told(value: Any) -> Any:
    if isinstance(value, dict):
        return {raw(key): _as_told(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_told(item) for item in value]
    return raw(value) if isinstance(value, str) else value
