"""What the agent answers: commands, once and for good (field report 37), sections, and roles that do not update."""

import asyncio
import errno
import json
import logging
import os
from pathlib import Path

import pytest

from bcd.lab.gateway import Gateway
from bcd.lab.pki import Authority
from bcd.node import outbox as outbox_module
from tests.core.node_root import make_release, quick_node
from tests.node.gateways import eventually
from tests.node.stations import NODE_ID, Station, hurry, order

ONE = make_release("1.1.0", 11)


@pytest.fixture
def station(tmp_path: Path, gateway: Gateway, lab_authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Station:
    """A node that runs 1.0.0 and was never updated; its pauses are short."""
    hurry(monkeypatch)
    return Station(quick_node(tmp_path, monkeypatch), gateway, lab_authority)


# Commands (field report 37) ------------------------------------------------------------------------------------------


async def test_a_command_for_what_runs_succeeds_at_once(station: Station) -> None:
    """Nothing is looked at and nothing is downloaded."""
    async with station.running():
        await station.until_welcomed("1.0.0")
        command = await station.command(make_release("1.0.0", 5))
        assert (await station.answer(command))["state"] == "SUCCEEDED"
    assert station.shelf.fetched == []


async def test_a_finished_command_that_arrives_again_gets_the_answer_that_it_got(station: Station) -> None:
    """After success, after failure, and after a restart; and nothing runs a second time."""
    refused = make_release("1.1.0", 11, product="other")
    async with station.running():
        await station.until_welcomed("1.0.0")
        good, bad = await station.command(make_release("1.0.0", 5)), await station.command(refused)
        answers = [await station.answer(command) for command in (good, bad)]
        await repeat(station, good, bad)
    prepared = len(station.node.events())
    async with station.running():
        await station.until(lambda page: len(page.sessions) == 2 and page.welcomed())
        await repeat(station, good, bad)
    assert [station.page.answers(command)[-1] for command in (good, bad)] == answers
    assert [answer["state"] for answer in answers] == ["SUCCEEDED", "FAILED"]
    assert [answer.get("code") for answer in answers] == [None, "wrong-product"]
    assert len(station.node.events()) == prepared


async def repeat(station: Station, *commands: str) -> None:
    """Deliver finished commands again, and wait for the same answers."""
    for command in commands:
        before = len(station.page.answers(command))
        await asyncio.to_thread(station.gateway.repeat_command, NODE_ID, command)
        await station.until(lambda page: len(page.answers(command)) > before)  # noqa: B023  # in this round
        first, *more = station.page.answers(command)
        assert all(one == first for one in more)


async def test_an_answer_is_told_after_each_welcome_until_it_is_acked(station: Station) -> None:
    """A gateway that forgot is told again; one that acked is not."""
    with station.gateway.page(NODE_ID) as page:
        page.acks = page.replays = False
    async with station.running():
        await station.until_welcomed("1.0.0")
        command = await station.command(make_release("1.0.0", 5))
        await station.until(lambda page: page.answers(command))
        station.gateway.drop_session(NODE_ID)
        await station.until(lambda page: len(page.answers(command)) == 2)
        with station.gateway.page(NODE_ID) as page:
            page.acks = True
        station.gateway.drop_session(NODE_ID)
        await station.answer(command)
        outbox = Path(station.node.config.node.data_dir, "outbox.json")
        await eventually(lambda: json.loads(outbox.read_bytes())["commands"][0].get("acked"))
        told = len(station.page.answers(command))
        station.gateway.drop_session(NODE_ID)
        await station.until(lambda page: len(page.sessions) == 4 and page.welcomed())
        await asyncio.sleep(0.05)
    assert told == len(station.page.answers(command)) == 3


async def test_a_command_of_another_kind_is_unsupported(station: Station) -> None:
    """Its kind is foreign text."""
    async with station.running():
        await station.until_welcomed("1.0.0")
        command = await asyncio.to_thread(station.gateway.push_command, NODE_ID, {}, "reboot\x1b[2J")
        answer = await station.answer(command)
    assert (answer["state"], answer["message"]) == ("UNSUPPORTED", "reboot\\x1b[2J is not supported by the role node")


@pytest.mark.parametrize("command_id", ["", "x" * 257])
async def test_a_command_with_an_unusable_id_is_passed_over(station: Station, command_id: str) -> None:
    """Nothing is kept of it, and the session goes on."""
    command = order(command_id, ONE)
    async with station.running():
        await station.until_welcomed("1.0.0")
        with station.gateway.page(NODE_ID) as page:
            page.commands[command_id] = command
        await asyncio.to_thread(station.gateway.repeat_command, NODE_ID, command_id)
        good = await station.command(make_release("1.0.0", 5))
        await station.answer(good)
    assert station.page.command_statuses(command_id) == []
    assert station.shelf.fetched == []


async def test_a_command_with_a_version_of_megabytes_leaves_a_small_outbox(station: Station) -> None:
    """Kept as it came, a handful of them would be more than is read again at the next start."""
    huge = {**ONE.section, "version": "1" * 3_000_000}
    async with station.running():
        await station.until_welcomed("1.0.0")
        command = await asyncio.to_thread(station.gateway.push_command, NODE_ID, huge)
        answer = await station.answer(command)
    assert (answer["state"], answer["code"]) == ("FAILED", "bad-section")
    assert os.path.getsize(Path(station.node.config.node.data_dir, "outbox.json")) < 10_000


async def test_a_command_too_many_is_turned_away_and_no_status_is_lost(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that acks nothing; once it does, the next command is taken."""
    monkeypatch.setattr(outbox_module, "_UNACKED", 2)
    with station.gateway.page(NODE_ID) as page:
        page.acks = page.replays = False
    async with station.running():
        await station.until_welcomed("1.0.0")
        kept = [await station.command(make_release("1.0.0", 5)) for _ in range(2)]
        for command in kept:
            await station.until(lambda page: page.answers(command))  # noqa: B023  # in this round
        with station.gateway.page(NODE_ID) as page:
            page.acks = True
        refused = await station.answer(await station.command(make_release("1.0.0", 5)))
        assert (refused["state"], refused["code"]) == ("FAILED", "too-many-commands")
        station.gateway.drop_session(NODE_ID)
        for command in kept:
            await station.until(lambda page: len(page.answers(command)) >= 2)  # noqa: B023  # in this round
        assert (await station.answer(await station.command(make_release("1.0.0", 5))))["state"] == "SUCCEEDED"


async def test_a_full_disk_keeps_no_command_from_its_answer(
    station: Station, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It could not be kept and is told all the same."""

    def fsync(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with station.running():
        await station.until_welcomed("1.0.0")
        monkeypatch.setattr(os, "fsync", fsync)
        with caplog.at_level(logging.WARNING):
            command = await station.command(make_release("1.0.0", 5))
            assert (await station.answer(command))["state"] == "SUCCEEDED"
        monkeypatch.setattr(os, "fsync", lambda _: None)
    assert any("No space left" in record.getMessage() for record in caplog.records)


# Roles and sections --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["sim", "ramdisk"])
async def test_a_role_that_does_not_update_itself_says_so(
    tmp_path: Path, gateway: Gateway, lab_authority: Authority, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    """`SectionUnsupported` for the section, `UNSUPPORTED` for the command; slots and records are not touched."""
    node = quick_node(tmp_path, monkeypatch)
    station = Station(node, gateway, lab_authority, role=role)
    async with station.running():
        await station.until_welcomed("1.0.0")
        generation = await station.push(ONE)
        command = await station.command(ONE)
        answer = await station.answer(command)
        await station.until(lambda _: station.section())
        status = station.section()
    assert status == {
        "type": "section_status",
        "name": "daemon",
        "observed_generation": generation,
        "state": "UNSUPPORTED",
        "reason": "SectionUnsupported",
    }
    assert answer["state"] == "UNSUPPORTED"
    assert role in answer["message"]
    assert not os.path.exists(node.layout.records_dir)
    assert not os.path.exists(node.layout.slots_dir)


async def test_the_hello_tells_the_sections_last_status(station: Station) -> None:
    """After a restart too: the gateway knows how things stand before it replays anything."""
    refused = make_release("1.1.0", 11, product="other")
    async with station.running():
        await station.until_welcomed("1.0.0")
        await station.push(refused)
        await station.until(lambda _: station.section().get("state") == "FAILED")
    async with station.running():
        await station.until(lambda page: len(page.sessions) == 2)
    hellos = [frame.body for frame in station.page.frames if frame.body["type"] == "hello"]
    assert hellos[0]["sections"] == []
    assert hellos[1]["sections"] == [station.section()]
    assert (hellos[1]["node_id"], hellos[1]["role"], hellos[1]["version"]) == (NODE_ID, "node", "1.0.0")


async def test_the_gateways_clock_can_only_make_an_expiry_stricter(station: Station) -> None:
    """The node's own clock stands still at a time when the manifest is good."""
    with station.gateway.page(NODE_ID) as page:
        page.clock_ahead = 10 * 365 * 86_400
    async with station.running():
        await station.until_welcomed("1.0.0")
        await station.push(ONE)
        await station.until(lambda _: station.section().get("state") == "FAILED")
    assert station.section()["code"] == "expired"


async def test_a_broken_outbox_does_not_keep_the_agent_from_starting(station: Station) -> None:
    """Commands that the gateway replays are taken anew."""
    Path(station.node.config.node.data_dir, "outbox.json").write_bytes(b"\0" * 100)
    async with station.running():
        await station.until_welcomed("1.0.0")
        command = await station.command(make_release("1.0.0", 5))
        assert (await station.answer(command))["state"] == "SUCCEEDED"
