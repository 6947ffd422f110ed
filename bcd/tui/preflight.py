"""Whether this terminal can hold a full screen, told before Textual is loaded.

Measured on Textual 8.2.8: without a terminal it opens its screen anyway, burns a core and can't be quit. It draws on
standard error and reads standard input, so both have to be terminals.
"""

import os
from collections.abc import Mapping

from bcd.core.errors import UsageError

_HINT = "`bcd update --json` for scripts, `bcd doctor` for a report, `bcd console --narrate` for plain lines"


def require_terminal(environ: Mapping[str, str] = os.environ) -> None:
    """Make sure that there is a terminal.

    Raises:
        UsageError: `no-terminal`.
    """
    for number, name in ((0, "standard input"), (2, "standard error")):
        if not _is_terminal(number):
            raise UsageError("no-terminal", f"the console needs a terminal, and {name} is none", _HINT)
    term = environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        raise UsageError(
            "no-terminal", f"the console needs a terminal that can be drawn on, and TERM is {term!r}", _HINT
        )


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False
