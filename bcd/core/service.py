"""What starts bcd on this machine, as the swap must know it: a port, and its plainest answer.

Writing the crash-loop units of spec/self-update.md section 9 under a real systemd belongs behind this port.
"""

import logging
from typing import Protocol

from bcd.core.layout import Layout

_log = logging.getLogger(__name__)


class ServiceManager(Protocol):
    """What a swap asks of whatever starts bcd."""

    def require_entrypoint(self, layout: Layout) -> None:
        """Make sure that the service starts what will be switched.

        Raises:
            Refusal: `unsafe-entrypoint`, it starts something else.
        """

    def write_rollback_units(self, layout: Layout) -> None:
        """Make sure that a crash-looping release is rolled back without its help.

        Raises:
            HostError: `io-error`, the units could not be written; the swap does not happen.
        """


class NoServiceManager:
    """Nothing known starts bcd, so nothing rolls a crash-looping release back; said once."""

    def __init__(self) -> None:
        self._said = False

    def require_entrypoint(self, layout: Layout) -> None:
        """Nothing to compare with."""

    def write_rollback_units(self, layout: Layout) -> None:  # noqa: ARG002  # the port's shape
        """Nothing to write."""
        if not self._said:
            self._said = True
            _log.warning("bcd does not run under systemd; a crash-looping update is not rolled back")
