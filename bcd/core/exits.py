"""The exit status of every command (spec/product.md section 1)."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """What a script may rely on. A crash of bcd itself is `CRASH` and never passes for `PROBLEM`."""

    OK = 0
    PROBLEM = 1
    """The thing asked about is not well, or did not work."""
    USAGE = 2
    """Wrong usage or configuration, or no terminal where one is needed."""
    WARNINGS = 3
    """Warnings only, under `--strict`."""
    NOT_PERMITTED = 4
    """Not permitted, or could not look."""
    BUSY = 5
    """An update is in progress."""
    CRASH = 70
    """A fault in bcd itself (sysexits' EX_SOFTWARE)."""
    TIMED_OUT = 124
    HANGUP = 129
    INTERRUPTED = 130
    TERMINATED = 143
