"""What the node still has to tell its gateway survives whatever ends the process (spec/gateway.md; field report 37)."""

import errno
import json
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from bcd.core.errors import HostError
from bcd.core.text import Foreign
from bcd.node.frames import CommandState, CommandStatus, SectionStatus
from bcd.node.outbox import Entry, Outbox

READY = SectionStatus(name="daemon", observed_generation=7, state="READY")
FAILED = SectionStatus(
    name="daemon", observed_generation=8, state="FAILED", reason="UpdateFailed", code="expired", message="it expired"
)


def on_disk(directory: Path) -> dict[str, str]:
    """The kept commands' states, read without bcd."""
    document = json.loads((directory / "outbox.json").read_bytes())
    return {entry["id"]: entry.get("state", "ACCEPTED") for entry in document["commands"]}


@contextmanager
def full_disk() -> Iterator[None]:
    """Nothing can be made durable."""

    def fsync(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with patch.object(os, "fsync", fsync):
        yield


def test_a_node_that_never_kept_anything_has_an_empty_outbox(tmp_path: Path) -> None:
    """Looking makes no file."""
    outbox = Outbox(str(tmp_path))
    assert (outbox.unfinished(), outbox.unacked(), outbox.sections()) == ([], [], [])
    assert list(tmp_path.iterdir()) == []


def test_a_command_is_on_disk_when_put_returns(tmp_path: Path) -> None:
    """So it is kept before anybody is told."""
    outbox = Outbox(str(tmp_path))
    outbox.put(Entry(id="c1", version="1.4.1"))
    assert on_disk(tmp_path) == {"c1": "ACCEPTED"}
    assert stat.S_IMODE((tmp_path / "outbox.json").stat().st_mode) == 0o600


def test_what_a_helper_said_is_kept(tmp_path: Path) -> None:
    outbox = Outbox(str(tmp_path))
    said = Foreign("below-floor")
    outbox.put(Entry(id="c1", version="1.3.9", state="FAILED", reason="update-failed", code=said, message=said))
    kept = Outbox(str(tmp_path)).command("c1")
    assert kept is not None
    assert (kept.code, kept.message) == ("below-floor", "below-floor")


def test_all_of_it_survives_a_restart(tmp_path: Path) -> None:
    """Commands in their order with everything that is told of them, and each section's last status."""
    outbox = Outbox(str(tmp_path))
    outbox.put(Entry(id="c2", version="1.4.1", state="RUNNING", message="downloading"))
    outbox.put(Entry(id="c1", version="1.4.2", state="FAILED", reason="update-failed", code="no-pins", message="no"))
    outbox.put_section(READY)
    outbox.put_section(FAILED)
    again = Outbox(str(tmp_path))
    assert again.unacked() == [
        CommandStatus(id="c2", state="RUNNING", message="downloading"),
        CommandStatus(id="c1", state="FAILED", reason="update-failed", code="no-pins", message="no"),
    ]
    assert [entry.version for entry in again.unfinished()] == ["1.4.1"]
    assert again.sections() == [FAILED]


def test_an_acked_command_is_told_no_more_and_still_known(tmp_path: Path) -> None:
    """A command that arrives again after its ack gets the answer that it got, also after a restart."""
    outbox = Outbox(str(tmp_path))
    outbox.put(Entry(id="c1", state="SUCCEEDED"))
    outbox.ack("c1")
    outbox.ack("c1")
    for kept in (outbox, Outbox(str(tmp_path))):
        assert kept.unacked() == []
        entry = kept.command("c1")
        assert entry is not None
        assert entry.final
        assert entry.status() == CommandStatus(id="c1", state="SUCCEEDED")


def test_an_ack_before_the_end_is_no_ack(tmp_path: Path) -> None:
    """Only a final status can be acked: otherwise the end of the command would never be told."""
    outbox = Outbox(str(tmp_path))
    outbox.put(Entry(id="c1", state="RUNNING"))
    outbox.ack("c1")
    outbox.ack("somebody else's")
    assert [status.id for status in outbox.unacked()] == ["c1"]
    assert [entry.id for entry in outbox.unfinished()] == ["c1"]


def test_a_command_that_is_put_again_is_one_command(tmp_path: Path) -> None:
    """It keeps its place and has the later state."""
    outbox = Outbox(str(tmp_path))
    states: tuple[CommandState, ...] = ("ACCEPTED", "RUNNING", "SUCCEEDED")
    for state in states:
        outbox.put(Entry(id="c1", state=state))
        outbox.put(Entry(id="c2"))
    assert list(on_disk(tmp_path).items()) == [("c1", "SUCCEEDED"), ("c2", "ACCEPTED")]


def test_a_file_that_holds_a_command_twice_tells_it_once(tmp_path: Path) -> None:
    """The later one of them."""
    entries = [{"id": "c1", "state": "RUNNING"}, {"id": "c1", "state": "SUCCEEDED"}]
    (tmp_path / "outbox.json").write_text(json.dumps({"format": 1, "commands": entries, "sections": {}}))
    assert Outbox(str(tmp_path)).unacked() == [CommandStatus(id="c1", state="SUCCEEDED")]


def test_acked_commands_are_forgotten_oldest_first(tmp_path: Path) -> None:
    """256 stay; what is not acked stays whatever its age."""
    kept = [{"id": f"old-{number}", "state": "SUCCEEDED", "acked": True} for number in range(300)]
    kept.insert(0, {"id": "never acked", "state": "FAILED"})
    (tmp_path / "outbox.json").write_text(json.dumps({"commands": kept}))
    outbox = Outbox(str(tmp_path))
    outbox.put(Entry(id="new", state="SUCCEEDED"))
    outbox.ack("new")
    states = on_disk(tmp_path)
    assert list(states) == ["never acked", *(f"old-{number}" for number in range(45, 300)), "new"]
    assert Outbox(str(tmp_path)).command("old-44") is None


def test_a_section_that_stands_as_it_stood_is_not_written_again(tmp_path: Path) -> None:
    """A gateway that replays its sections all day costs the disk nothing."""
    outbox = Outbox(str(tmp_path))
    outbox.put_section(READY)
    before = (tmp_path / "outbox.json").stat()
    outbox.put_section(SectionStatus(name="daemon", observed_generation=7, state="READY"))
    after = (tmp_path / "outbox.json").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


BROKEN = {
    "empty": b"",
    "torn": b'{"format":1,"commands":[{"id":"c1","sta',
    "nul-bytes": b"\0" * 512,
    "foreign": b"[node]\ndata_dir = '/var/lib/bcd'\n",
    "a-list": b"[]",
    "not-utf-8": b'{"format":1,"commands":[{"id":"\xff\xfe"}]}',
    "a-state-of-a-newer-bcd": b'{"format":2,"commands":[{"id":"c1","state":"DEFERRED"}]}',
    "nested-deep": b'{"commands":' + b"[" * 100_000,
    "mistyped": b'{"commands":{"c1":"RUNNING"}}',
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_moved_aside_and_work_goes_on(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is kept byte for byte for people, said once, and the next change is kept as ever."""
    (tmp_path / "outbox.json").write_bytes(content)
    with caplog.at_level(logging.WARNING):
        outbox = Outbox(str(tmp_path))
    assert (outbox.unacked(), outbox.sections()) == ([], [])
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [content]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert next(tmp_path.iterdir()).name.startswith("outbox.json.corrupt-")
    outbox.put(Entry(id="c1"))
    assert on_disk(tmp_path) == {"c1": "ACCEPTED"}


def test_a_directory_in_its_place_is_moved_aside(tmp_path: Path) -> None:
    """Whatever lies there is no reason not to start."""
    (tmp_path / "outbox.json").mkdir()
    Outbox(str(tmp_path)).put(Entry(id="c1"))
    assert on_disk(tmp_path) == {"c1": "ACCEPTED"}


def test_a_field_of_a_newer_bcd_does_not_break_it(tmp_path: Path) -> None:
    """An older bcd after a rollback reads what it knows."""
    entry = {"id": "c1", "state": "RUNNING", "since": 5}
    (tmp_path / "outbox.json").write_text(json.dumps({"format": 2, "commands": [entry], "sections": {}, "more": 1}))
    assert Outbox(str(tmp_path)).unacked() == [CommandStatus(id="c1", state="RUNNING")]


def test_a_full_disk_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    """The error says so, the old file stays, no temporary one does, and memory has what could not be written."""
    outbox = Outbox(str(tmp_path))
    outbox.put(Entry(id="c1", state="RUNNING"))
    before = (tmp_path / "outbox.json").read_bytes()
    with full_disk(), pytest.raises(HostError) as caught:
        outbox.put(Entry(id="c2"))
    assert caught.value.code == "no-space"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"outbox.json": before}
    assert [status.id for status in outbox.unacked()] == ["c1", "c2"]
    outbox.put_section(READY)
    assert on_disk(tmp_path) == {"c1": "RUNNING", "c2": "ACCEPTED"}


def test_an_ack_that_cannot_be_written_costs_a_repetition_and_nothing_else(tmp_path: Path) -> None:
    """After a restart the gateway is sent a status that it kept already; the command is no less finished."""
    outbox = Outbox(str(tmp_path))
    outbox.put(Entry(id="c1", state="SUCCEEDED"))
    with full_disk(), pytest.raises(HostError):
        outbox.ack("c1")
    assert outbox.unacked() == []
    again = Outbox(str(tmp_path))
    assert again.unacked() == [CommandStatus(id="c1", state="SUCCEEDED")]
    assert again.unfinished() == []


def test_an_outbox_that_nobody_acks_is_full_and_loses_nothing(tmp_path: Path) -> None:
    """What waits for its end or its ack is bounded by taking no more, never by forgetting; an ack makes room."""
    outbox = Outbox(str(tmp_path))
    for number in range(256):
        assert not outbox.is_full()
        outbox.put(Entry(id=f"c{number}", state="SUCCEEDED" if number % 2 else "ACCEPTED"))
    assert outbox.is_full()
    assert Outbox(str(tmp_path)).is_full()  # a restart forgets none
    outbox.ack("c0")  # not finished, so there is nothing to keep yet
    assert outbox.is_full()
    outbox.ack("c1")
    assert not outbox.is_full()
    assert len(outbox.unacked()) == 255
