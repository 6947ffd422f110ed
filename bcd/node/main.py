"""`bcd node` and its sisters: settle, run the agent, and become the entrypoint's program when told to."""

import asyncio
import logging
import os
import time
from pathlib import Path

from bcd.core.answers import Settled, UpdateManager
from bcd.core.build import Build
from bcd.core.clock import SystemClock
from bcd.core.config import Config
from bcd.core.download import Downloader
from bcd.core.durable import as_host_error, make_directories
from bcd.core.errors import BcdError, HostError, UsageError
from bcd.core.exits import ExitStatus
from bcd.core.manager import Manager
from bcd.core.notify import leaving, staying
from bcd.core.service import service_manager
from bcd.core.text import clean
from bcd.helper.client import HelperManager
from bcd.node.agent import UPDATING_ROLES, Agent, Ending
from bcd.node.restart import exec_entrypoint
from bcd.node.single import AgentLock

_AGAIN_SECONDS = 5.0

_log = logging.getLogger(__name__)


def run_agent(role: str, config: Config, build: Build) -> ExitStatus:
    """Run the agent until it is stopped. When an update asks for it, does not return: the process becomes another.

    Raises:
        UsageError: `bad-config`, the gateway is not one to trust a welcome of.
        HostError: the agent can't start: `data_dir` can't be made, `agent-running`, or neither slot can be trusted.
    """
    _require_secure_gateway(config, build)
    with as_host_error("make the data directory"):
        make_directories(config.node.data_dir)
    os.umask(0o022)
    lock = AgentLock(config.node.data_dir)
    try:
        return _run_until_stopped(role, config, build, lock)
    finally:
        lock.close()


def _run_until_stopped(role: str, config: Config, build: Build, lock: AgentLock) -> ExitStatus:
    manager = _manager(config, build) if role in UPDATING_ROLES else None
    fetcher = Downloader(
        ca_file=Path(config.update.ca_file) if config.update.ca_file else None,
        clear_text=build.fakehw or config.node.dev_insecure_h2c,
    )
    _log.info("bcd %s (sequence %d) starts as %s", build.version, build.sequence, role)
    while True:
        settled = None if manager is None else _settle(manager)
        if settled is None or not settled.restart:
            agent = Agent(role=role, config=config, build=build, manager=manager, settled=settled, fetcher=fetcher)
            if _run(agent) is Ending.STOPPED:
                _log.info("stopped")
                return ExitStatus.OK
        _become(config.update.entrypoint, manager, lock)


def _run(agent: Agent) -> Ending:
    # Not asyncio.run(): it waits for the resolver's threads, and a dead name server would hold up a rollback's exec,
    # or the end on SIGTERM, for as long as the resolver tries.
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(agent.run())
    finally:
        loop.close()


def _require_secure_gateway(config: Config, build: Build) -> None:
    gateway = config.node.gateway
    schemes = ("wss://", "ws://") if build.fakehw or config.node.dev_insecure_h2c else ("wss://",)
    if gateway is not None and not gateway.startswith(schemes):
        # The attack: whoever answers in clear text would welcome, and so confirm, whatever runs here.
        raise UsageError(
            "bad-config",
            f"{config.path}: [node] gateway {clean(gateway, 200)} is not wss://",
            "use wss://, or dev_insecure_h2c = true on a machine for development",
        )


def _manager(config: Config, build: Build) -> UpdateManager:
    if config.helper is not None:
        return HelperManager(config=config, build=build, clock=SystemClock(), socket_path=config.helper.socket)
    return Manager(config=config, build=build, clock=SystemClock(), service=service_manager(build))


def _settle(manager: UpdateManager) -> Settled | None:
    try:
        return manager.settle()
    except HostError as error:
        if error.code == "slots-broken":
            raise
        # A disk that can't be written is a reason not to update, and none not to run (field report 35).
        _log.error("updates are off for now: %s (%s)", error.message, error.code)
        return None


def _become(entrypoint: str, manager: UpdateManager | None, lock: AgentLock) -> None:
    """Exec the entrypoint; return only once `current` points back at what runs here still."""
    while True:
        said = _exec_failure(entrypoint, lock)
        _log.error("%s could not be started: %s", entrypoint, said)
        if manager is None:
            return
        try:
            manager.rollback(way="exec", said=said)
        except BcdError as failure:
            # As long as `current` names what can't be started, an agent here would confirm it by its own welcome.
            _log.error("the rollback did not happen: %s", failure.message)
            time.sleep(_AGAIN_SECONDS)
        else:
            return


def _exec_failure(entrypoint: str, lock: AgentLock) -> str:
    try:
        with lock.handed_over():
            leaving()
            exec_entrypoint(entrypoint)
    except OSError as error:
        staying()
        return error.strerror or str(error)
