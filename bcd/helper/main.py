"""`bcd helper`: check that nobody but root can mislead it, then serve until stopped."""

import asyncio
import logging
import os
import signal

from bcd.core.build import Build
from bcd.core.clock import SystemClock
from bcd.core.config import Config
from bcd.core.durable import as_host_error, make_directories
from bcd.core.errors import HostError
from bcd.core.exits import ExitStatus
from bcd.core.layout import layout_of
from bcd.core.manager import Manager
from bcd.core.notify import notify
from bcd.core.service import Systemd
from bcd.helper.deadline import DeadlineWatch
from bcd.helper.dispatch import Dispatch
from bcd.helper.guard import find_node_user, require_root, require_safe_places
from bcd.helper.listener import Listener, inherited, listen
from bcd.helper.restart import NodeProcess, node_service
from bcd.helper.server import Server
from bcd.helper.worker import Worker

STUCK_SECONDS = 1800.0
"""Twice what a node waits for the longest that there is, a swap."""

_log = logging.getLogger(__name__)


def run_helper(config: Config, build: Build) -> ExitStatus:
    """Serve until SIGTERM or SIGINT.

    Raises:
        NotPermitted: `needs-root`.
        UsageError: `no-helper`, `bad-config`, `unsafe-place`, `bad-socket`: nothing was touched.
        HostError: `helper-running`, `io-error`; `helper-stuck`, to be started anew.
    """
    require_root(config)
    assert config.helper is not None  # noqa: S101  # require_root
    os.umask(0o022)
    user, layout = find_node_user(config), layout_of(config)
    require_safe_places(config, layout)
    listener = inherited(config.helper.socket, user.gid) or listen(config.helper.socket, user.gid)
    try:
        with as_host_error("make the slots directory"):
            make_directories(layout.slots_dir)
        service = node_service(build)
        manager = Manager(config=config, build=build, clock=SystemClock(), service=service, staging_owner=user.uid)
        node = NodeProcess(user.uid, systemd=isinstance(service, Systemd))
        _log.info("bcd %s (sequence %d) helps the node of %s", build.version, build.sequence, user.name)
        asyncio.run(_serve(listener, manager, build, node, user.uid))
    finally:
        listener.close()
    _log.info("stopped")
    return ExitStatus.OK


async def _serve(listener: Listener, manager: Manager, build: Build, node: NodeProcess, node_uid: int) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    worker = Worker()
    server = Server(
        dispatch=Dispatch(manager, build.version),
        worker=worker,
        version=build.version,
        allowed=frozenset((0, node_uid)),
        settled_by=node.settled_by,
    )
    work = [
        asyncio.create_task(server.serve(listener.socket)),
        asyncio.create_task(DeadlineWatch(manager, worker, node.restart).run()),
        asyncio.create_task(_end_when_stuck(worker)),
        asyncio.create_task(stop.wait()),
    ]
    notify("READY=1")
    try:
        done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        notify("STOPPING=1")
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)


async def _end_when_stuck(worker: Worker, seconds: float = STUCK_SECONDS, every_seconds: float = 5.0) -> None:
    """End the helper when what it works on does not come back: what starts it then starts it anew, with a new thread."""
    while True:
        busy = worker.busy_seconds
        if busy >= seconds:
            raise HostError(
                "helper-stuck",
                f"the helper's work has hung for {busy:.0f} s, as on a file system that does not answer",
                "look at the mounts of data_dir and of the slots; systemd starts the helper anew",
            )
        await asyncio.sleep(every_seconds)
