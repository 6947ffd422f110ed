"""Starting the node anew after root went back: through systemd where it runs the node, else by ending its process.

Whatever started it then starts the entrypoint, which is the old binary again.
"""

import logging
import os
import signal
import subprocess
import time

from bcd.core.build import Build
from bcd.core.service import NoServiceManager, ServiceManager, Systemd, ask_systemd
from bcd.core.units import NODE_UNIT, SYSTEMD_DIRECTORY
from bcd.helper.peer import Held, Peer

_END_SECONDS = 10.0
_HELD_LIMIT = 8

_log = logging.getLogger(__name__)


class NodeProcess:
    """The node, as the helper can reach it."""

    def __init__(self, node_uid: int, *, systemd: bool) -> None:
        self._node_uid = node_uid
        self._systemd = systemd
        self._held: dict[int, Held] = {}
        """By pid, the oldest first."""

    def settled_by(self, peer: Peer) -> None:
        """Remember the process whose start was settled, or that swapped: the agent.

        The attack: settle or swap from a child too, to have that one remembered and ended in the agent's place. So each
        is kept as long as it lives, and past a bound the newer ones are not.
        """
        if self._systemd or peer.uid != self._node_uid:
            return
        for pid in [pid for pid, held in self._held.items() if held.ended]:
            self._held.pop(pid).close()
        if peer.pid not in self._held and len(self._held) < _HELD_LIMIT and (held := Held.of(peer)) is not None:
            self._held[peer.pid] = held

    def restart(self) -> None:
        """Have the node started anew. What does not work is logged: `current` is what counts."""
        if self._systemd:
            try:
                ask_systemd(["systemctl", "restart", "--no-block", NODE_UNIT])
            except (OSError, subprocess.SubprocessError) as error:
                _log.error("%s could not be restarted: %s", NODE_UNIT, error)
            return
        left = [held for held in tuple(self._held.values()) if held.stop(signal.SIGTERM)]
        until = time.monotonic() + _END_SECONDS
        while left and time.monotonic() < until:
            time.sleep(0.1)
            left = [held for held in left if not held.ended]
        for held in left:
            held.stop(signal.SIGKILL)


def node_service(build: Build) -> ServiceManager:
    """What starts the node, as the swap must know it. A fakehw build never touches systemd."""
    if not build.fakehw and os.path.isdir(SYSTEMD_DIRECTORY):
        try:
            loaded = ask_systemd(["systemctl", "show", "--property=LoadState", "--value", NODE_UNIT]).strip()
        except (OSError, subprocess.SubprocessError) as error:
            _log.warning("systemd could not be asked for %s: %s", NODE_UNIT, error)
        else:
            if loaded == "loaded":
                return Systemd(NODE_UNIT, ask_systemd)
    return NoServiceManager()
