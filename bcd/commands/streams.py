"""The command's streams: stdout is data, stderr is talk; neither a closed pipe nor an ASCII terminal is a failure.

One place decides about colour: `--color` beats NO_COLOR (set and not empty), which beats FORCE_COLOR, which beats the
terminal. Loaded by `bcd update`, so nothing heavy is imported (ADR 0002).
"""

import os
import sys
from typing import TextIO

from bcd.core.config import DEFAULT_PATH, Config
from bcd.core.errors import BcdError
from bcd.core.exits import ExitStatus
from bcd.core.text import clean

COLOR_CHOICES = ("auto", "always", "never")

BOLD, RED, YELLOW, DIM = "1", "31", "33", "2"


def prepare_streams() -> None:
    """Let no closed stream, and no character that a terminal can't show, end the command."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            _fill(number)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  # for the process's life
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _fill(number: int) -> None:
    # The attack: with stderr closed, the next record opened for writing gets its number, and the next warning.
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one


def wants_color(choice: str, stream: TextIO) -> bool:
    """Whether to colour `stream`; `choice` is one of `COLOR_CHOICES`."""
    if choice != "auto":
        return choice == "always"
    environ = os.environ
    if environ.get("NO_COLOR"):
        return False
    forced = environ.get("FORCE_COLOR")
    if forced:
        return forced != "0"
    return environ.get("TERM") != "dumb" and stream.isatty()


def paint(text: str, style: str, *, color: bool) -> str:
    """`text` in an SGR style, where colour is wanted."""
    return f"\x1b[{style}m{text}\x1b[0m" if color else text


def print_lines(lines: list[str]) -> bool:
    """Write lines to stdout, and say whether anybody reads on: one that went away (`| head`) has what it wanted."""
    try:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
    except BrokenPipeError:
        drop_stdout()
        return False
    return True


def drop_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_error(error: BcdError) -> None:
    """Say what, why and what to do, with the code."""
    said = [f"bcd: {clean(error.message)} ({error.code})"]
    if error.hint:
        said.append(f"  try: {clean(error.hint)}")
    say(said)


def say(lines: list[str]) -> None:
    """Write lines to stderr; where it can't be written there is nobody to tell."""
    try:
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        sys.stderr.flush()
    except OSError:
        return


def note_defaults(config: Config) -> None:
    """Say so where the file that `--config` names is not there: a misspelt name must not pass for an answer."""
    if not config.found and config.path != DEFAULT_PATH:
        say([f"bcd: {clean(config.path)} is not there; the defaults are in force"])


def status_of(error: BcdError) -> ExitStatus:
    """The exit status that an error means."""
    from bcd.core.errors import NotPermitted, UsageError  # together with what else fails

    if isinstance(error, UsageError):
        return ExitStatus.USAGE
    if isinstance(error, NotPermitted):
        return ExitStatus.NOT_PERMITTED
    if error.code == "update-in-progress":
        return ExitStatus.BUSY
    return ExitStatus.PROBLEM
