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

_log = logging.getLogger(__name__)


class NodeProcess:
    """The node, as the helper can reach it."""

    def __init__(self, node_uid: int, *, systemd: bool) -> None:
        self._node_uid = node_uid
        self._systemd = systemd
        self._held: Held | None = None

    def settled_by(self, peer: Peer) -> None:
        """Remember the process whose start was settled: the agent."""
        if self._systemd or peer.uid != self._node_uid:
            return
        held = Held.of(peer)
        if held is not None:
            if self._held is not None:
                self._held.close()
            self._held = held

    def restart(self) -> None:
        """Have the node started anew. What does not work is logged: `current` is what counts."""
        if self._systemd:
            try:
                ask_systemd(["systemctl", "restart", "--no-block", NODE_UNIT])
            except (OSError, subprocess.SubprocessError) as error:
                _log.error("%s could not be restarted: %s", NODE_UNIT, error)
            return
        held = self._held
        if held is None or not held.stop(signal.SIGTERM):
            return
        until = time.monotonic() + _END_SECONDS
        while not held.ended and time.monotonic() < until:
            time.sleep(0.1)
        if not held.ended:
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
