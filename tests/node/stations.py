"""An agent in this process, on a real disk, before the lab's gateway: `Station` starts it as bcd.node.main does.

The node, its clock and its releases are those of the manager's tests. What the service would do between two processes
(exec the entrypoint) is `Station.start` once more: it starts the version that the entrypoint leads to.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bcd.core.answers import Settled
from bcd.core.build import Build
from bcd.core.download import Progress, Wanted
from bcd.core.errors import BcdError
from bcd.core.manager import Manager
from bcd.lab.behaviour import Behaviour
from bcd.lab.book import Command, Page
from bcd.lab.gateway import Gateway
from bcd.lab.pki import Authority
from bcd.node import agent as agent_module
from bcd.node import session as session_module
from bcd.node.agent import Agent, Ending
from bcd.node.backoff import Backoff
from bcd.node.client import SOCKET_NAME
from tests.core.node_root import Node, Release
from tests.node.gateways import eventually

NODE_ID = "n1"


@dataclass
class Shelf:
    """A fetcher that takes releases from a shelf."""

    releases: dict[str, Release] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)
    """Versions, one for each download."""
    node: Node | None = None

    def fetch(
        self, wanted: Wanted, staging: Path, *, progress: Callable[[Progress], None], cancelled: threading.Event
    ) -> Path:
        """Bring a release into staging."""
        assert self.node is not None
        assert not cancelled.is_set()
        self.fetched.append(wanted.version)
        progress(Progress(wanted.size, wanted.size, 1.0))
        return self.node.stage(self.releases[wanted.version])


class Station:
    """One node and its page at the gateway."""

    def __init__(self, node: Node, gateway: Gateway, authority: Authority, role: str = "node") -> None:
        credentials = authority.for_node(NODE_ID)
        settings = node.config.node._replace(
            gateway=gateway.url,
            node_id=NODE_ID,
            ca_file=str(authority.certificate),
            cert_file=str(credentials.certificate),
            key_file=str(credentials.key),
        )
        node.config = node.config._replace(node=settings)
        self.node = node
        self.gateway = gateway
        self.role = role
        self.shelf = Shelf(node=node)

    # -- the node -------------------------------------------------------------------------------------------------

    @property
    def live_socket(self) -> str:
        """Where the agent shows its state."""
        return os.path.join(self.node.config.node.data_dir, SOCKET_NAME)

    def agent(self, manager: Manager | None = None, settled: Settled | None = None) -> Agent:
        """An agent of the version that the entrypoint leads to, after its settle; or after the one given."""
        version = self.node.runs()
        updates = self.role in ("node", "site")
        if manager is None and updates:
            manager = self.node.manager()
            settled = manager.settle()
        assert settled is None or not settled.restart
        return Agent(
            role=self.role,
            config=self.node.config,
            build=Build(version, 0, 0, fakehw=False),
            manager=manager,
            settled=settled,
            fetcher=self.shelf,
        )

    @asynccontextmanager
    async def running(self, agent: Agent | None = None) -> AsyncIterator["asyncio.Task[Ending]"]:
        """An agent that runs meanwhile, and is told to stop in the end if it has not ended."""
        agent = agent or self.agent()
        task = asyncio.create_task(agent.run())
        try:
            yield task
        finally:
            if not task.done():
                await asyncio.sleep(0)
                agent._end(Ending.STOPPED)
            async with asyncio.timeout(10):
                await asyncio.gather(task, return_exceptions=True)

    async def until_restart(self, agent: Agent | None = None) -> None:
        """Run an agent until it wants to be replaced."""
        async with self.running(agent) as task, asyncio.timeout(20):
            assert await task is Ending.RESTART

    # -- the gateway ----------------------------------------------------------------------------------------------

    def publish(self, release: Release) -> None:
        """Have it on the shelf."""
        self.shelf.releases[release.version] = release

    async def push(self, release: Release) -> int:
        """Make a release the section's target."""
        self.publish(release)
        return await asyncio.to_thread(self.gateway.push_section, NODE_ID, release.section)

    async def command(self, release: Release) -> str:
        """Order an upgrade."""
        self.publish(release)
        return await asyncio.to_thread(self.gateway.push_command, NODE_ID, release.section)

    def behave(self, behaviour: Behaviour, *, version: str | None = None) -> None:
        """Have the gateway treat the node so."""
        self.gateway.behave(NODE_ID, behaviour, version=version)

    @property
    def page(self) -> Page:
        """What the gateway knows."""
        with self.gateway.page(NODE_ID) as page:
            return page

    async def until(self, true: Callable[[Page], object], seconds: float = 10.0) -> None:
        """Wait for something at the gateway."""
        await eventually(lambda: true(self.page), seconds)

    async def until_welcomed(self, version: str) -> None:
        """Wait for a welcomed session of a version."""

        def welcomed(page: Page) -> bool:
            session = page.welcomed()
            return session is not None and session.version == version

        await self.until(welcomed)

    async def answer(self, command_id: str) -> dict[str, Any]:
        """Wait for a command's end; it is the same one, however often it was told."""
        await self.until(lambda page: page.answers(command_id) and page.commands[command_id].finished)
        first, *more = self.page.answers(command_id)
        assert all(one == first for one in more)
        return first

    def states(self, command_id: str) -> list[str]:
        """A command's states as they were told, repetitions left out."""
        told: list[str] = []
        for body in self.page.command_statuses(command_id):
            if not told or told[-1] != body["state"]:
                told.append(body["state"])
        return told

    def section(self) -> dict[str, Any]:
        """The section's last status."""
        statuses = self.page.section_statuses()
        return statuses[-1] if statuses else {}


def failing(error: BcdError, times: int, work: Callable[..., Any]) -> Callable[..., Any]:
    """`work`, which fails so often before it does what it does."""
    left = [times]

    def failing_work(*args: Any, **named: Any) -> Any:
        if left[0] > 0:
            left[0] -= 1
            raise error
        return work(*args, **named)

    return failing_work


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the agent's pauses short: nothing is learnt by waiting for them."""
    for name in ("_TICK_SECONDS", "_CONFIRM_AGAIN_SECONDS", "_SETTLE_AGAIN_SECONDS", "_ROLL_BACK_AGAIN_SECONDS"):
        monkeypatch.setattr(agent_module, name, 0.1)
    monkeypatch.setattr(session_module, "Backoff", lambda most: Backoff(first=0.02, most=0.1))


def order(command_id: str, release: Release) -> Command:
    """A command to upgrade, as the gateway keeps it."""
    return Command(id=command_id, kind="daemon.upgrade", args=release.section)
