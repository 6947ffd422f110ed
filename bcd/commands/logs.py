"""What core and the agent log, on standard error: one record, one line, and nothing that acts on a terminal.

Text from outside that reached a log can neither write a terminal nor forge a line (field report C06).
"""

import logging
import sys
import time

from bcd.core.text import clean


class CleanFormatter(logging.Formatter):
    """Time, level, logger and message."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  # logging's name
        """UTC, to the second."""
        return time.strftime(datefmt or "%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        message = clean(record.getMessage(), 4000)
        trace = f" {clean(self.formatException(record.exc_info), 8000)}" if record.exc_info else ""
        return f"{self.formatTime(record)} {record.levelname:<7} {record.name}: {message}{trace}"


class TalkFormatter(logging.Formatter):
    """What a command says beside its answer, as it says errors."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return f"bcd: {clean(record.getMessage())}"


def log_to_stderr(formatter: logging.Formatter, level: str = "WARNING") -> None:
    """Show bcd's records from `level` on, and warnings of every library."""
    logging.raiseExceptions = False  # a full disk behind stderr is no reason for tracebacks
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    # On the root: without a handler there, another library's warning is printed as it came.
    logging.getLogger().addHandler(handler)
    logging.getLogger("bcd").setLevel(level)
