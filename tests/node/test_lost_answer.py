"""The helper swapped and nobody heard it say so: the node finds out, and becomes what is current."""

import os
from pathlib import Path
from typing import Any

import pytest

from bcd.core.errors import HostError
from bcd.lab.gateway import Gateway
from bcd.lab.pki import Authority
from bcd.node.agent import Ending
from tests.core.node_root import make_release, quick_node
from tests.node.stations import Station, hurry

ONE = make_release("1.1.0", 11)


@pytest.mark.parametrize("by_command", [False, True], ids=["section", "command"])
async def test_a_swap_whose_answer_was_lost_is_found_and_restarted_into(
    tmp_path: Path, gateway: Gateway, lab_authority: Authority, monkeypatch: pytest.MonkeyPatch, by_command: bool
) -> None:
    """Told as done by the binary that confirmed it, and never by the old one."""
    hurry(monkeypatch)
    station = Station(quick_node(tmp_path, monkeypatch), gateway, lab_authority)
    manager = station.node.manager(staging_owner=os.geteuid())
    swap = manager.swap
    calls: list[str] = []

    def lost(*args: Any, **more: Any) -> Any:
        calls.append("swap")
        swap(*args, **more)
        raise HostError("helper-unreachable", "it hung up")

    monkeypatch.setattr(manager, "swap", lost)
    async with station.running(station.agent(manager, manager.settle())) as old:
        await station.until_welcomed("1.0.0")
        command = await station.command(ONE) if by_command else None
        if command is None:
            await station.push(ONE)
        assert await old is Ending.RESTART
    assert calls == ["swap"]
    assert station.section().get("state") != "READY"
    assert station.node.runs() == "1.1.0"
    async with station.running():
        if command is None:
            await station.until(lambda _: station.section().get("state") == "READY")
        else:
            assert (await station.answer(command))["state"] == "SUCCEEDED"
    assert station.node.floor() == 11
