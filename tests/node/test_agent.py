"""The agent from settle to its end: real records on a disk, a real gateway, and a clock that is told (sections 7 to 9)."""

import asyncio
import json
import logging
import os
from pathlib import Path

import pytest

from bcd.core.errors import HostError
from bcd.core.links import switch_link
from bcd.lab.behaviour import SILENT, WELCOME, busy, refuse
from bcd.lab.gateway import Gateway
from bcd.lab.pki import Authority
from bcd.node.client import read_live_state
from bcd.node.frames import CommandStatus, Outgoing
from bcd.node.outbox import Entry, Outbox
from bcd.node.session import GatewaySession
from tests.core.node_root import make_release, quick_node
from tests.node.gateways import eventually
from tests.node.stations import NODE_ID, Station, failing, hurry, order

ONE = make_release("1.1.0", 11)
NOT_WELCOMED = "bcd 1.1.0 was not welcomed by a gateway before its deadline"
NO_SPACE = HostError("no-space", "could not write: No space left on device")


@pytest.fixture
def station(tmp_path: Path, gateway: Gateway, lab_authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Station:
    """A node that runs 1.0.0 and was never updated; its pauses are short."""
    hurry(monkeypatch)
    return Station(quick_node(tmp_path, monkeypatch), gateway, lab_authority)


@pytest.fixture
def pending(station: Station) -> Station:
    """A node on which 1.1.0 was swapped in by the command `c1` a moment ago, and nothing runs yet."""
    station.node.start()
    Outbox(station.node.config.node.data_dir).put(Entry(id="c1", version="1.1.0", state="RUNNING"))
    station.node.swap(ONE, command_id="c1")
    with station.gateway.page(NODE_ID) as page:
        page.commands["c1"] = order("c1", ONE)
    return station


# A good update -------------------------------------------------------------------------------------------------------


async def test_a_command_is_taken_by_the_old_binary_and_answered_by_the_new_one(station: Station) -> None:
    """The first welcome of the new one confirms it, raises the floor, and then the command has succeeded."""
    async with station.running() as old:
        await station.until_welcomed("1.0.0")
        command = await station.command(ONE)
        async with asyncio.timeout(10):
            await old
    assert station.node.runs() == "1.1.0"
    assert station.states(command) == ["ACCEPTED", "RUNNING"]
    async with station.running():
        answer = await station.answer(command)
    assert (answer["state"], answer["message"]) == ("SUCCEEDED", "1.1.0 runs")
    assert station.page.versions() == ["1.0.0", "1.1.0"]
    assert station.node.floor() == 11
    assert station.node.json(station.node.layout.pending_record) is None
    assert station.shelf.fetched == ["1.1.0"]


async def test_a_section_becomes_ready_once_its_version_is_confirmed(station: Station) -> None:
    """Progress keeps the generation that was last decided; the new binary tells the new one."""
    async with station.running() as old:
        await station.until_welcomed("1.0.0")
        generation = await station.push(ONE)
        async with asyncio.timeout(10):
            await old
    assert [(one["state"], one["observed_generation"]) for one in station.page.section_statuses()] == [
        ("PROGRESSING", 0)
    ]
    async with station.running():
        await station.until(lambda _: station.section().get("state") == "READY")
    assert station.section()["observed_generation"] == generation
    assert station.node.floor() == 11


async def test_the_role_site_updates_itself_too(
    tmp_path: Path, gateway: Gateway, lab_authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a node does."""
    station = Station(quick_node(tmp_path, monkeypatch), gateway, lab_authority, role="site")
    async with station.running() as old:
        await station.until_welcomed("1.0.0")
        await station.push(ONE)
        async with asyncio.timeout(10):
            await old
    assert station.node.runs() == "1.1.0"


async def test_a_status_is_kept_before_it_is_told(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the moment when a command's status is handed to the session, it is on disk: power may fail right after."""
    send = GatewaySession.send
    outbox = Path(station.node.config.node.data_dir, "outbox.json")
    told: list[str] = []

    async def watched(session: GatewaySession, frame: Outgoing) -> None:
        if isinstance(frame, CommandStatus):
            kept = {entry["id"]: entry for entry in json.loads(outbox.read_bytes())["commands"]}
            assert kept[frame.id].get("state", "ACCEPTED") == frame.state
            told.append(frame.state)
        await send(session, frame)

    monkeypatch.setattr(GatewaySession, "send", watched)
    async with station.running() as old:
        await station.until_welcomed("1.0.0")
        await station.command(ONE)
        async with asyncio.timeout(10):
            await old
    async with station.running():
        await station.until(lambda _: "SUCCEEDED" in told)
    assert told[:2] == ["ACCEPTED", "RUNNING"]


# The welcome that confirms -------------------------------------------------------------------------------------------


async def test_a_busy_gateway_is_no_verdict(pending: Station) -> None:
    """Field report 13: 429 for a while, then the welcome: confirmed."""
    pending.behave(busy(429))
    async with pending.running():
        await pending.until(lambda page: page.turned_away >= 2)
        assert pending.node.floor() == 0
        pending.behave(WELCOME)
        answer = await pending.answer("c1")
    assert answer["state"] == "SUCCEEDED"
    assert pending.node.floor() == 11


async def test_a_silent_gateway_does_not_confirm(pending: Station) -> None:
    """It took the connection and the hello: that is no welcome, and what waits is shown."""
    pending.behave(SILENT)
    async with pending.running():
        await pending.until(lambda page: page.sessions)
        record = pending.node.json(pending.node.layout.pending_record)
        assert record is not None
        assert record["launched"] is True
        state = await asyncio.to_thread(read_live_state, pending.node.config.node.data_dir)
        assert state is not None
        assert (state["phase"], state["target"], state["pending_deadline"]) == (
            "waiting for welcome",
            "1.1.0",
            record["deadline"],
        )
        assert pending.node.floor() == 0
        pending.behave(WELCOME)
        await pending.answer("c1")
        state = await asyncio.to_thread(read_live_state, pending.node.config.node.data_dir)
        assert state is not None
        assert (state["phase"], state["target"], state["pending_deadline"]) == ("idle", None, None)


async def test_a_welcome_that_cannot_be_written_down_is_tried_again(
    pending: Station, caplog: pytest.LogCaptureFixture
) -> None:
    """Until then nothing has succeeded: neither the command nor the section is told as done, whoever asks."""
    manager = pending.node.manager()
    settled = manager.settle()
    manager.confirm = failing(NO_SPACE, 2, manager.confirm)  # type: ignore[method-assign]  # a disk that is full
    await pending.push(ONE)
    with caplog.at_level(logging.WARNING):
        async with pending.running(pending.agent(manager, settled)):
            await pending.until(lambda _: pending.section().get("code") == "update-in-progress")
            assert pending.states("c1")[-1] == "RUNNING"
            assert pending.node.floor() == 0
            answer = await pending.answer("c1")
            await pending.until(lambda _: pending.section().get("state") == "READY")
    assert answer["state"] == "SUCCEEDED"
    assert pending.node.floor() == 11
    states = [one["state"] for one in pending.page.section_statuses()]
    assert states == ["PROGRESSING"] * (len(states) - 1) + ["READY"]
    unconfirmed = [record for record in caplog.records if "could not be confirmed" in record.getMessage()]
    assert len(unconfirmed) == 1


async def test_a_start_that_could_not_be_settled_is_settled_later(pending: Station) -> None:
    """The disk was full at the first start of the new binary: once it is not, the welcome that it has confirms it."""
    manager = pending.node.manager()
    manager.settle = failing(NO_SPACE, 3, manager.settle)  # type: ignore[method-assign]
    async with pending.running(pending.agent(manager, None)):
        await pending.until_welcomed("1.1.0")
        answer = await pending.answer("c1")
    assert answer["state"] == "SUCCEEDED"
    assert pending.node.floor() == 11


async def test_a_start_that_could_not_be_settled_still_has_a_deadline(pending: Station) -> None:
    """Without a welcome it is rolled back when it is settled."""
    pending.behave(SILENT)
    manager = pending.node.manager()
    manager.settle = failing(NO_SPACE, 3, manager.settle)  # type: ignore[method-assign]
    async with pending.running(pending.agent(manager, None)) as task:
        await pending.until(lambda page: page.sessions)
        pending.node.clock.passes(121)
        async with asyncio.timeout(10):
            await task
    assert pending.node.runs() == "1.0.0"


# No welcome ----------------------------------------------------------------------------------------------------------


async def test_a_deadline_that_passes_brings_the_old_binary_back(pending: Station) -> None:
    """It settles the failure, and the command that asked for it fails once, with the reason."""
    pending.behave(SILENT)
    async with pending.running() as new:
        await pending.until(lambda page: page.sessions)
        pending.node.clock.passes(119)
        await asyncio.sleep(0.3)
        assert not new.done()
        pending.node.clock.passes(2)
        async with asyncio.timeout(10):
            await new
    assert pending.node.runs() == "1.0.0"
    pending.behave(WELCOME)
    async with pending.running():
        answer = await pending.answer("c1")
    assert answer == {
        "type": "command_status",
        "id": "c1",
        "state": "FAILED",
        "reason": "update-failed",
        "code": "failed-version",
        "message": NOT_WELCOMED,
    }
    assert pending.node.floor() == 0
    assert pending.shelf.fetched == []


async def test_a_deadline_is_not_kept_by_the_wall_clock(pending: Station) -> None:
    """An hour's step forward right after the swap kills nothing (field report 33)."""
    pending.behave(SILENT)
    async with pending.running() as new:
        await pending.until(lambda page: page.sessions)
        pending.node.clock.now += 3600
        await asyncio.sleep(0.3)
        assert not new.done()
        pending.behave(WELCOME)
        await pending.answer("c1")
    assert pending.node.floor() == 11


async def test_a_refusal_of_the_gateway_is_the_reason_when_the_deadline_passes(pending: Station) -> None:
    """With what it said."""
    pending.behave(refuse("this node is blocked"))
    async with pending.running() as new:
        await eventually(lambda: (pending.node.json(pending.node.layout.pending_record) or {}).get("refused"))
        assert not new.done()
        pending.node.clock.passes(121)
        async with asyncio.timeout(10):
            await new
    pending.behave(WELCOME)
    async with pending.running():
        answer = await pending.answer("c1")
    assert answer["message"] == "bcd 1.1.0 was refused by the gateway until its deadline: this node is blocked"


async def test_a_section_that_failed_here_says_so_and_is_not_downloaded_again(station: Station) -> None:
    """Field report 22: the section that brought it is FAILED for its generation, with the code and the reason."""
    station.node.fail(ONE)
    async with station.running():
        await station.until_welcomed("1.0.0")
        generation = await station.push(ONE)
        await station.until(lambda _: station.section().get("state") == "FAILED")
        status = station.section()
        for _ in range(3):
            station.gateway.drop_session(NODE_ID)
            before = len(station.page.section_statuses())
            await station.until(lambda page: len(page.section_statuses()) > before)  # noqa: B023  # in this round
    assert (status["observed_generation"], status["reason"], status["code"]) == (
        generation,
        "UpdateFailed",
        "failed-version",
    )
    assert NOT_WELCOMED in status["message"]
    assert all(one == status for one in station.page.section_statuses())
    assert station.shelf.fetched == []


async def test_a_rollback_that_cannot_be_written_is_tried_again(
    pending: Station, caplog: pytest.LogCaptureFixture
) -> None:
    """And a record that cannot be read for a moment ends nothing either."""
    pending.behave(SILENT)
    manager = pending.node.manager()
    settled = manager.settle()
    manager.rollback = failing(NO_SPACE, 3, manager.rollback)  # type: ignore[method-assign]
    manager.look.time_left = failing(NO_SPACE, 2, manager.look.time_left)  # type: ignore[method-assign]
    with caplog.at_level(logging.ERROR):
        async with pending.running(pending.agent(manager, settled)) as new:
            await pending.until(lambda page: page.sessions)
            pending.node.clock.passes(121)
            async with asyncio.timeout(10):
                await new
    assert pending.node.runs() == "1.0.0"
    assert len([record for record in caplog.records if "did not happen" in record.getMessage()]) == 1


async def test_a_rollback_from_outside_is_followed_at_the_deadline(pending: Station) -> None:
    """The crash loop's script, or a hand, pointed `current` back under the running binary."""
    pending.behave(SILENT)
    async with pending.running() as new:
        await pending.until(lambda page: page.sessions)
        switch_link(pending.node.layout.current, "bcd-a")
        pending.node.clock.passes(121)
        async with asyncio.timeout(10):
            await new
    assert pending.node.runs() == "1.0.0"


async def test_a_welcome_after_a_rollback_from_outside_confirms_nothing(pending: Station) -> None:
    """What runs is no longer what is current: it gives way, and nothing has succeeded."""
    pending.behave(SILENT)
    async with pending.running() as new:
        await pending.until(lambda page: page.sessions)
        switch_link(pending.node.layout.current, "bcd-a")
        pending.behave(WELCOME)
        async with asyncio.timeout(10):
            await new
    assert pending.node.floor() == 0
    assert pending.states("c1")[-1:] != ["SUCCEEDED"]


async def test_an_update_that_was_cut_off_before_it_ran_is_tried_again(pending: Station) -> None:
    """Power failed between the record and the link: nothing was learned about the version."""
    switch_link(pending.node.layout.current, "bcd-a")
    pending.publish(ONE)
    await pending.until_restart()
    assert pending.node.runs() == "1.1.0"
    async with pending.running():
        answer = await pending.answer("c1")
    assert answer["state"] == "SUCCEEDED"
    assert pending.page.versions() == ["1.0.0", "1.1.0"]


# Its own end ---------------------------------------------------------------------------------------------------------


async def test_a_fault_of_its_own_ends_the_whole_agent(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half an agent would look alive and hear nothing: whatever starts bcd starts it anew."""

    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    agent = station.agent()
    monkeypatch.setattr(agent, "welcomed", broken)
    async with asyncio.timeout(10):
        with pytest.raises(ZeroDivisionError):
            await agent.run()
    assert not os.path.exists(station.live_socket)


async def test_it_says_goodbye_when_it_ends(station: Station) -> None:
    """And its socket is gone."""
    async with station.running():
        await station.until_welcomed("1.0.0")
        assert os.path.exists(station.live_socket)
    goodbye = {"type": "bye", "reason": "bcd 1.0.0 ends"}
    await station.until(lambda page: page.frames[-1].body == goodbye)
    assert not os.path.exists(station.live_socket)
