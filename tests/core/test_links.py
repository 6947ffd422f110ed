"""The two links: what each names, and the one way to move one, in which there is no instant without it (field report 28)."""

import errno
import os
import re
import threading
from pathlib import Path

import pytest

from bcd.core.links import SLOTS, Link, other_slot, read_link, slot_file, switch_link
from tests.core.disk import Entry, entry, snapshot, unchanged
from tests.core.faults import failing, recorded
from tests.core.public import as_nobody, public_directory


@pytest.fixture
def slots(tmp_path: Path) -> Path:
    """A slots directory with both files and `current` on a."""
    made = tmp_path / "slots"
    made.mkdir()
    for slot in "ab":
        (made / f"bcd-{slot}").write_bytes(slot.encode())
    (made / "current").symlink_to("bcd-a")
    return made


def test_there_are_two_slots() -> None:
    """Each is the other's other, and has its file."""
    assert SLOTS == ("a", "b")
    assert [other_slot(slot) for slot in SLOTS] == ["b", "a"]
    assert [slot_file(slot) for slot in SLOTS] == ["bcd-a", "bcd-b"]


# Reading --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slot", SLOTS)
def test_a_link_to_a_slot_names_it(slots: Path, slot: str) -> None:
    """Whether or not the slot's file is there: a link is its text."""
    (slots / "previous").symlink_to(f"bcd-{slot}")
    (slots / "bcd-b").unlink()
    with unchanged(slots):
        assert read_link(str(slots), "previous") == Link(slot, f"bcd-{slot}", present=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "target",
    [
        "bcd-c",
        "bcd-",
        "bcd-a/",
        "./bcd-a",
        "bcd-A",
        "../slots/bcd-a",
        "/usr/local/bin/bcd",
        "bcd-a\n",
        "current",
        "bcd-a.tmp",
        "\x1b[2J",
    ],
)
def test_a_link_to_anything_else_names_no_slot(slots: Path, target: str) -> None:
    """Also where it leads to a slot's very file by another spelling: only the relative name is ours."""
    (slots / "previous").symlink_to(target)
    with unchanged(slots):
        assert read_link(str(slots), "previous") == Link(None, target, present=True)


def test_an_absolute_link_to_a_slot_names_none(slots: Path) -> None:
    """It would stay behind when the directory is moved or seen from another root."""
    (slots / "previous").symlink_to(slots / "bcd-a")
    assert read_link(str(slots), "previous").slot is None


def test_a_missing_link_is_absent(slots: Path) -> None:
    """So is one whose directory is missing, or is a file."""
    absent = Link(None, None, present=False)
    assert read_link(str(slots), "previous") == absent
    assert read_link(str(slots / "missing"), "current") == absent
    assert read_link(str(slots / "bcd-a"), "current") == absent


@pytest.mark.parametrize("plant", [Path.touch, Path.mkdir, os.mkfifo], ids=["file", "dir", "fifo"])
def test_what_is_no_link_is_present_and_names_no_slot(slots: Path, plant: object) -> None:
    """It is never opened, so it can't hang."""
    assert callable(plant)
    plant(slots / "previous")
    assert read_link(str(slots), "previous") == Link(None, None, present=True)


def test_a_link_that_may_not_be_looked_at_is_an_error() -> None:
    """Not permitted is not absent (field report 38)."""
    with public_directory() as directory:
        closed = directory / "slots"
        closed.mkdir()
        (closed / "current").symlink_to("bcd-a")
        closed.chmod(0o000)
        with as_nobody(), pytest.raises(PermissionError):
            read_link(str(closed), "current")
        closed.chmod(0o700)


# Switching ------------------------------------------------------------------------------------------------------------


def test_a_link_is_switched_by_one_rename_and_synced(slots: Path) -> None:
    """A temporary link, the rename over the old one, the directory's fsync; nothing stays beside it."""
    with recorded("symlink", "rename", "fsync", "unlink") as calls:
        switch_link(str(slots / "current"), "bcd-b")
    assert re.fullmatch(r"\.current\.[0-9a-f]{12}\.tmp", calls[0][1])
    assert [calls[0][0], *calls[1:]] == ["symlink", ("rename", "current"), ("fsync", "slots")]
    assert entry(slots / "current") == Entry("link", 0, b"bcd-b")
    assert sorted(os.listdir(slots)) == ["bcd-a", "bcd-b", "current"]


def test_a_link_is_made_where_there_was_none(slots: Path) -> None:
    """Pointing to itself's target text, whatever that is."""
    switch_link(str(slots / "previous"), "bcd-a")
    assert entry(slots / "previous") == Entry("link", 0, b"bcd-a")


def test_a_file_in_a_links_place_is_replaced(slots: Path) -> None:
    """Adoption: the entrypoint's plain file gives way to a link."""
    (slots / "entrypoint").write_bytes(b"program")
    switch_link(str(slots / "entrypoint"), "/slots/current")
    assert entry(slots / "entrypoint") == Entry("link", 0, b"/slots/current")


def test_what_the_old_link_led_to_is_left_alone(slots: Path) -> None:
    """The link is moved, not its target."""
    switch_link(str(slots / "current"), "bcd-b")
    assert (slots / "bcd-a").read_bytes() == b"a"


@pytest.mark.parametrize("name", ["symlink", "rename"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_switch_that_fails_leaves_the_old_link_and_nothing_beside_it(slots: Path, name: str, number: int) -> None:
    """Each step, with each error (field reports 05, 29)."""
    with unchanged(slots), pytest.raises(OSError, match=os.strerror(number)), failing(name, number):
        switch_link(str(slots / "current"), "bcd-b")


def test_a_switch_that_cannot_be_synced_is_an_error_with_a_whole_link(slots: Path) -> None:
    """It names the new slot now, and one of the two after a crash; whoever called has to look."""
    with pytest.raises(OSError, match="Input/output"), failing("fsync", errno.EIO):
        switch_link(str(slots / "current"), "bcd-b")
    assert snapshot(slots)["current"] == Entry("link", 0, b"bcd-b")
    assert sorted(os.listdir(slots)) == ["bcd-a", "bcd-b", "current"]


def test_a_directory_in_a_links_place_is_an_error(slots: Path) -> None:
    """Nothing of it is touched."""
    (slots / "current").unlink()
    (slots / "current").mkdir()
    (slots / "current" / "kept").touch()
    with unchanged(slots), pytest.raises(IsADirectoryError):
        switch_link(str(slots / "current"), "bcd-b")


def test_there_is_no_instant_without_the_link(slots: Path) -> None:
    """Whoever looks while it is switched two hundred times reads one slot or the other, whole."""
    path = slots / "current"
    seen: set[bytes] = set()
    failures: list[OSError] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            try:
                seen.add(path.read_bytes())
            except OSError as error:
                failures.append(error)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", lambda _: None)
            for number in range(200):
                switch_link(str(path), slot_file("ab"[number % 2]))  # type: ignore[arg-type]
    finally:
        done.set()
        looking.join()
    assert failures == []
    assert seen <= {b"a", b"b"}
