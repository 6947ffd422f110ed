"""`bcd node` and its sisters: logging to standard error, then the agent."""

import logging
import sys
import time

from bcd.core.build import this_build
from bcd.core.config import load_config
from bcd.core.exits import ExitStatus
from bcd.core.text import clean
from bcd.node.main import run_agent


class _CleanFormatter(logging.Formatter):
    """One record, one line: text from outside that reached a log can't write a terminal, nor forge a line."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  # logging's name
        return time.strftime(datefmt or "%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))

    def format(self, record: logging.LogRecord) -> str:
        message = clean(record.getMessage(), 4000)
        trace = f" {clean(self.formatException(record.exc_info), 8000)}" if record.exc_info else ""
        return f"{self.formatTime(record)} {record.levelname:<7} {record.name}: {message}{trace}"


def run_role(role: str, config_path: str, log_level: str) -> ExitStatus:
    """Run the agent in a role. Raises what `run_agent` and `load_config` do."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_CleanFormatter())
    logger = logging.getLogger("bcd")
    logger.addHandler(handler)
    logger.setLevel(log_level.upper())
    return run_agent(role, load_config(config_path), this_build())
