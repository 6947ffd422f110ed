"""What happened here: newest first, bounded, and losing it loses nothing that decides."""

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bcd.core.history import EVENTS, append_event, read_events
from bcd.core.text import raw
from tests.core.disk import entry, open_files, snapshot, unchanged
from tests.core.faults import failing, umask
from tests.core.public import as_nobody, public_directory

MEBIBYTE = 1_048_576


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where the history is."""
    return str(tmp_path / "history.jsonl")


def events(path: str) -> list[dict[str, Any]]:
    """All that is read of it."""
    return list(read_events(path))


def size(path: str) -> int:
    """Of all its parts."""
    return sum(file.stat().st_size for file in Path(path).parent.iterdir())


def test_an_event_is_one_line(path: str) -> None:
    """What, when, and whatever else; ASCII, so that a torn line can't take the next one with it."""
    append_event(path, "swapped", 1_800_000_000, version="1.4.1", sequence=15, slot="b", said="a\nb\u2028\U0001f511")
    data = Path(path).read_bytes()
    assert data.isascii()
    assert data.count(b"\n") == 1
    assert data.endswith(b"\n")
    assert json.loads(data) == {
        "at": 1_800_000_000,
        "event": "swapped",
        "version": "1.4.1",
        "sequence": 15,
        "slot": "b",
        "said": "a\nb\u2028\U0001f511",
    }


def test_the_events_are_those_of_the_rules() -> None:
    """Section 5's nine."""
    named = "prepared, refused, downloaded, swapped, confirmed, rolled-back, settled-failed, cleared, adopted"
    assert ", ".join(EVENTS) == named


def test_events_are_read_newest_first(path: str) -> None:
    """In the order in which they were written, turned round; the clock has no say."""
    for number, at in enumerate([5, 3, 9]):
        append_event(path, "prepared", at, number=number)
    assert [event["number"] for event in events(path)] == [2, 1, 0]


def test_without_a_history_nothing_happened(path: str) -> None:
    """No error, and none is made."""
    with unchanged(Path(path).parent):
        assert events(path) == []


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077], ids=oct)
def test_the_history_is_for_everybody_to_read(path: str, mask: int) -> None:
    """Whatever the umask, from its first event on."""
    with umask(mask):
        append_event(path, "prepared", 1)
        append_event(path, "prepared", 2)
    assert entry(path).mode == 0o644
    assert len(events(path)) == 2


TORN = [
    b"",
    b"{",
    b'{"at":1,"event":"swa',
    b"\0" * 100,
    b"null",
    b"[]",
    b'"prepared"',
    b"1",
    b"\xff\xfe",
    b'{"at": 1, "at": ',
    b"[" * 100_000,
    b'{"x":' * 100_000,
    b"1" * 5000,
    b'{"at":NaN}',
    b'{"at":1e999}',
]


@pytest.mark.parametrize("torn", TORN, ids=lambda torn: repr(torn[:12]))
def test_a_torn_line_is_passed_over(path: str, torn: bytes) -> None:
    """Those before and after it are read, wherever it stands."""
    good = b'{"at":1,"event":"prepared"}\n'
    for data in (torn + b"\n" + good * 2, good + torn + b"\n" + good, good * 2 + torn):
        Path(path).write_bytes(data)
        assert events(path) == [{"at": 1, "event": "prepared"}] * 2


def test_an_event_after_a_torn_line_is_not_lost_with_it(path: str) -> None:
    """Power failed in the middle of a line; the next event starts one of its own."""
    append_event(path, "prepared", 1)
    with open(path, "ab") as file:
        file.write(b'{"at":2,"event":"swa')
    append_event(path, "confirmed", 3)
    append_event(path, "prepared", 4)
    assert [event["at"] for event in events(path)] == [4, 3, 1]


def test_the_history_stays_within_a_mebibyte(path: str) -> None:
    """At every moment; what is kept are the newest, without a gap, and more than a third of the bound."""
    written = 0
    for number in range(1500):
        append_event(path, "refused", number, reason="x" * 1000)
        written += 1
        if number % 50 == 0 or number > 1450:
            assert size(path) <= MEBIBYTE
    assert written * 1000 > MEBIBYTE
    kept = [event["at"] for event in events(path)]
    assert kept == list(range(1499, 1499 - len(kept), -1))
    assert len(kept) * 1000 > MEBIBYTE / 3
    assert set(snapshot(Path(path).parent)) == {".", "history.jsonl", "history.jsonl.1"}


@pytest.mark.parametrize("length", [600_000, 3_000_000])
def test_no_single_event_breaks_the_bound(path: str, length: int) -> None:
    """A section may name a version of a megabyte; its refusal is still told, and what came before is kept."""
    append_event(path, "confirmed", 1, version="1.4.0")
    for at in range(2, 5):
        append_event(path, "refused", at, version="v" * length, code="bad-section")
        assert size(path) <= MEBIBYTE
    found = events(path)
    assert [(event["at"], event["event"]) for event in found] == [
        (4, "refused"),
        (3, "refused"),
        (2, "refused"),
        (1, "confirmed"),
    ]
    assert found[0]["code"] == "bad-section"
    assert found[0]["version"].startswith("vvv")


def test_what_is_read_is_clean_and_keeps_its_value(path: str) -> None:
    """Reasons and versions come from outside (C06)."""
    attack = "\x1b]52;c;eA==\x07"
    append_event(path, "settled-failed", 1, reason=attack, version=attack)
    (event,) = read_events(path)
    assert str(event["reason"]).isprintable()
    assert raw(str(event["reason"])) != attack
    reason = event["reason"]
    assert isinstance(reason, str)
    assert raw(reason) == attack


@pytest.mark.parametrize("plant", ["dir", "fifo", "link", "dangling"])
def test_something_else_in_its_place_is_logged_and_hangs_nobody(
    path: str, plant: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A history that can't be written is no failure of an update; nothing is followed, and nothing stays open."""
    victim = Path(path).with_name("victim")
    victim.write_bytes(b"kept")
    match plant:
        case "dir":
            os.mkdir(path)
        case "fifo":
            os.mkfifo(path)
        case "link":
            os.symlink("victim", path)
        case _:
            os.symlink("nowhere", path)
    before, started = open_files(), time.monotonic()
    with unchanged(Path(path).parent), caplog.at_level(logging.WARNING):
        append_event(path, "prepared", 1)
    assert "history could not be written" in caplog.text
    assert time.monotonic() - started < 2
    assert open_files() == before


@pytest.mark.parametrize("part", ["", ".1"])
@pytest.mark.parametrize("plant", [os.mkdir, os.mkfifo], ids=["dir", "fifo"])
def test_what_is_no_file_in_its_place_is_an_error_and_hangs_nobody(
    path: str, part: str, plant: Callable[[str], None]
) -> None:
    """It is not an empty history; and nothing stays open."""
    plant(path + part)
    before, started = open_files(), time.monotonic()
    with pytest.raises(OSError, match="no regular file"):
        events(path)
    assert time.monotonic() - started < 2
    assert open_files() == before


def test_the_part_before_is_read_where_the_newest_is_gone(path: str) -> None:
    """Deleted by hand, or never begun after the turn."""
    Path(path + ".1").write_bytes(b'{"at":1,"event":"prepared"}\n')
    assert [event["at"] for event in events(path)] == [1]
    os.symlink("nowhere", path)
    assert [event["at"] for event in events(path)] == [1]


@pytest.mark.parametrize("name", ["open", "fchmod", "write"])
def test_a_history_that_cannot_be_written_is_logged(path: str, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """And what was written before is kept."""
    append_event(path, "prepared", 1)
    before = open_files()
    with unchanged(Path(path).parent), caplog.at_level(logging.WARNING), failing(name):
        append_event(path, "confirmed", 2)
    assert "No space left" in caplog.text
    assert open_files() == before


def test_a_missing_directory_is_logged(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is not made for this."""
    append_event(os.path.join(path, "missing", "history.jsonl"), "prepared", 1)
    assert "history could not be written" in caplog.text


def test_a_history_that_this_user_may_not_read_is_an_error() -> None:
    """It is not empty, and not to be shown as that (field report 38)."""
    with public_directory() as directory:
        path = directory / "history.jsonl"
        append_event(str(path), "prepared", 1)
        path.chmod(0o600 if os.geteuid() == 0 else 0o000)
        with as_nobody(), pytest.raises(PermissionError):
            events(str(path))


def test_events_of_another_bcd_are_read_as_they_are(path: str) -> None:
    """Unknown events and fields are shown, whatever they hold."""
    line = {"at": "yesterday", "event": "teleported", "x": [1, {"y": None}]}
    Path(path).write_text(json.dumps(line) + "\n")
    assert events(path) == [line]
