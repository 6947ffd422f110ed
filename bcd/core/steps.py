"""The named steps of an update, told as they are reached.

An update is a chain of durable steps, and each place between two of them is where power may fail. Whoever wants to
stand there (the agent's debug log, the crash tests, the lab's faults) replaces or wraps `reached`; nothing else in
core knows about it. Callers go through the module (`steps.reached(...)`) so that a replacement is seen.
"""

import logging

STEPS = (
    "download-started",
    "downloaded",
    "adopt-slot-written",
    "adopt-current-linked",
    "adopted",
    "staged",
    "recorded",
    "previous-linked",
    "current-linked",
    "launched",
    "floor-raised",
    "confirmed",
    "rollback-marked",
    "rollback-linked",
    "failure-recorded",
    "settled",
)

_log = logging.getLogger(__name__)


def reached(step: str) -> None:
    """Say that `step`, one of `STEPS`, is done and on disk."""
    _log.debug("step %s", step)
