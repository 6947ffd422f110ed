"""The helper's own deadline: a release that nobody confirmed goes, whatever the node says or does (section 10).

The node's timer comes first, a little earlier, and execs the old binary by itself. When it does not (it hangs, it is
not there, it was taken over), root moves the link and has the node started anew.
"""

import asyncio
import logging
from collections.abc import Callable

from bcd.core.background import in_thread
from bcd.core.errors import BcdError
from bcd.core.manager import Manager
from bcd.helper.worker import Worker

GRACE_SECONDS = 5.0
"""What the node gets to do it itself."""
_TICK_SECONDS = 1.0
_AGAIN_SECONDS = 10.0

_log = logging.getLogger(__name__)


class DeadlineWatch:
    """Looks once a second, and acts."""

    def __init__(
        self,
        manager: Manager,
        worker: Worker,
        restart_node: Callable[[], None],
        *,
        grace_seconds: float = GRACE_SECONDS,
        tick_seconds: float = _TICK_SECONDS,
    ) -> None:
        self._manager = manager
        self._worker = worker
        self._restart_node = restart_node
        self._grace_seconds = grace_seconds
        self._tick_seconds = tick_seconds
        self._said = ""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            pause = self._tick_seconds
            try:
                # Ahead of whatever the node asked for: its flood must not keep its own release alive.
                if await self._worker.run(self._go_back_when_due, first=True):
                    _log.error("nobody confirmed the update before its deadline; the node is started anew")
                    await in_thread(self._restart_node)
            except BcdError as error:
                pause = _AGAIN_SECONDS
                if error.message != self._said:
                    _log.error("the rollback did not happen: %s", error.message)
                self._said = error.message
            except Exception:  # noqa: BLE001  # logged whole
                # A fault of our own must not end root's half, and with it every deadline.
                pause = _AGAIN_SECONDS
                _log.exception("a fault in bcd itself")
            await asyncio.sleep(pause)

    def _go_back_when_due(self) -> bool:
        look = self._manager.look
        left = look.time_left()
        if left is None or left.seconds > -self._grace_seconds or not look.is_swapped():
            return False
        return self._manager.rollback(way="deadline")
