"""What core and the agent log, on standard error: one record, one line, and nothing that acts on a terminal.

Text from outside that reached a log can neither write a terminal nor forge a line (field report C06).
"""

import logging
import os
import sys
import time

from bcd.core.text import clean

_PRIORITIES = ((logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
"""From which level on a record has which syslog priority; 7 below."""


class CleanFormatter(logging.Formatter):
    """Time, level, logger and message."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  # logging's name
        """UTC, to the second."""
        return time.strftime(datefmt or "%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return f"{self.formatTime(record)} {record.levelname:<7} {self.said(record)}"

    def said(self, record: logging.LogRecord) -> str:
        """Logger, message and, where there is one, the traceback."""
        message = clean(record.getMessage(), 4000)
        trace = f" {clean(self.formatException(record.exc_info), 8000)}" if record.exc_info else ""
        return f"{record.name}: {message}{trace}"


class JournalFormatter(CleanFormatter):
    """Logger and message, with the priority as the journal wants it (sd-daemon(3)); it knows the time by itself."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        priority = next((number for level, number in _PRIORITIES if record.levelno >= level), 7)
        return f"<{priority}>{self.said(record)}"


class TalkFormatter(logging.Formatter):
    """What a command says beside its answer, as it says errors."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return f"bcd: {clean(record.getMessage())}"


def service_formatter() -> logging.Formatter:
    """For what runs as a service: the journal's form where standard error is the journal, the plain one elsewhere."""
    try:
        found = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        return CleanFormatter()
    # The variable alone is no proof: a child, or a shell behind `2>file`, inherits it.
    is_journal = os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
    return JournalFormatter() if is_journal else CleanFormatter()


def log_to_stderr(formatter: logging.Formatter, level: str = "WARNING") -> None:
    """Show bcd's records from `level` on, and warnings of every library."""
    logging.raiseExceptions = False  # a full disk behind stderr is no reason for tracebacks
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    # On the root: without a handler there, another library's warning is printed as it came.
    logging.getLogger().addHandler(handler)
    logging.getLogger("bcd").setLevel(level)
