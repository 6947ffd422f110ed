"""The files in the slots: hashed as they lie there, and replaced so that what was checked is what will run."""

import errno
import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from bcd.core.build import this_platform
from bcd.core.errors import HostError, Refusal
from bcd.core.records import SlotRecord
from bcd.core.slotfile import Digest, hash_slot_file, is_program, is_whole, replace_slot_file
from tests.core.disk import Entry, entry, open_files, snapshot, unchanged
from tests.core.faults import failing, recorded, umask

NEW = b"#!/bin/sh\necho new\n"
OLD = b"#!/bin/sh\necho old\n"


def digest_of(data: bytes) -> Digest:
    """What a file of these bytes must be."""
    return Digest(sha256(data).hexdigest(), len(data))


@pytest.fixture
def slots(tmp_path: Path) -> Path:
    """A slots directory with an old program in b, and a new one staged beside it."""
    made = tmp_path / "slots"
    made.mkdir()
    (made / "bcd-b").write_bytes(OLD)
    (made / "bcd-b").chmod(0o755)
    (tmp_path / "staged").write_bytes(NEW)
    return made


def replace(
    slots: Path,
    data: bytes = NEW,
    *,
    expected: Digest | None = None,
    source: str | None = None,
    before_rename: Callable[[], None] = lambda: None,
) -> Digest:
    """Put the staged file into slot b; by default what is expected are `data`."""
    handle = os.open(source or slots.parent / "staged", os.O_RDONLY)
    try:
        return replace_slot_file(
            str(slots),
            "b",
            handle,
            expected=expected or digest_of(data),
            platform="linux-amd64",
            before_rename=before_rename,
        )
    finally:
        os.close(handle)


# Hashing --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", OLD, b"x" * 2_500_000], ids=["empty", "short", "chunks"])
def test_a_slot_is_hashed_whole(slots: Path, data: bytes) -> None:
    """Every byte of it, and nothing stays open."""
    (slots / "bcd-b").write_bytes(data)
    before = open_files()
    assert hash_slot_file(str(slots), "b") == digest_of(data)
    assert open_files() == before


def make_socket(path: Path) -> None:
    """Leave a socket behind."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


NO_FILE: dict[str, Callable[[Path], None]] = {
    "nothing": lambda _: None,
    "directory": Path.mkdir,
    "fifo": os.mkfifo,
    "socket": make_socket,
    "link to a program": lambda path: path.symlink_to("bcd-old"),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("plant", NO_FILE.values(), ids=NO_FILE)
def test_what_is_no_file_in_a_slot_is_neither_whole_nor_a_program(slots: Path, plant: Callable[[Path], None]) -> None:
    """Never followed and never waited for, also where a link leads to the very program."""
    (slots / "bcd-b").rename(slots / "bcd-old")
    plant(slots / "bcd-b")
    before = open_files()
    with unchanged(slots):
        assert hash_slot_file(str(slots), "b") is None
        assert not is_whole(str(slots), "b", SlotRecord("1.4.0", 1, digest_of(OLD).sha256, len(OLD), 0))
        assert not is_program(str(slots), "b")
    assert open_files() == before


@pytest.mark.parametrize(
    ("sha", "size", "whole"),
    [
        (digest_of(OLD).sha256, len(OLD), True),
        (digest_of(OLD).sha256, len(OLD) + 1, False),
        (digest_of(NEW).sha256, len(OLD), False),
        (digest_of(OLD).sha256.upper(), len(OLD), False),
        ("", 0, False),
    ],
)
def test_a_slot_is_whole_when_it_hashes_to_its_record(slots: Path, sha: str, size: int, whole: bool) -> None:
    """By digest and by size; without a record nothing is."""
    assert is_whole(str(slots), "b", SlotRecord("1.4.0", 1, sha, size, 0)) == whole
    assert not is_whole(str(slots), "b", None)
    assert not is_whole(str(slots), "a", SlotRecord("1.4.0", 1, sha, size, 0))


@pytest.mark.parametrize(
    ("mode", "data", "program"),
    [
        (0o755, OLD, True),
        (0o700, OLD, True),
        (0o100, OLD, True),
        (0o644, OLD, False),
        (0o000, OLD, False),
        (0o755, b"", False),
    ],
)
def test_a_program_is_a_file_that_could_be_started(slots: Path, mode: int, data: bytes, program: bool) -> None:
    """Not empty, and executable by somebody."""
    (slots / "bcd-b").write_bytes(data)
    (slots / "bcd-b").chmod(mode)
    assert is_program(str(slots), "b") == program


# Replacing ------------------------------------------------------------------------------------------------------------


def test_a_slot_is_replaced(slots: Path) -> None:
    """By all of the new file, as a program; nothing stays beside it or open."""
    before = open_files()
    assert replace(slots) == digest_of(NEW)
    assert snapshot(slots) == {".": entry(slots), "bcd-b": Entry("file", 0o755, NEW)}
    assert open_files() == before


def test_an_empty_slot_is_filled(slots: Path) -> None:
    """The first time."""
    (slots / "bcd-b").unlink()
    replace(slots)
    assert entry(slots / "bcd-b") == Entry("file", 0o755, NEW)


@pytest.mark.parametrize("mask", [0o000, 0o027, 0o077, 0o777], ids=oct)
def test_a_slots_mode_is_no_matter_of_the_umask(slots: Path, mask: int) -> None:
    """A service user can always start what was put there (field report 26)."""
    with umask(mask):
        replace(slots)
    assert entry(slots / "bcd-b") == Entry("file", 0o755, NEW)


def test_the_staged_files_own_mode_is_not_taken_along(slots: Path) -> None:
    """Neither its setuid bit nor its lack of rights."""
    for mode in (0o4777, 0o000):
        (slots.parent / "staged").chmod(mode)
        if mode or os.geteuid() == 0:
            replace(slots)
        assert entry(slots / "bcd-b") == Entry("file", 0o755, NEW)


def test_the_file_is_synced_before_it_is_renamed_and_the_directory_after(slots: Path) -> None:
    """In this order, with the caller's own step between (field report 03)."""
    with recorded("write", "fchmod", "fsync", "rename") as calls:
        replace(slots, before_rename=lambda: calls.append(("before_rename", "")))
    temporary = "bcd-b.tmp"
    assert calls == [
        ("write", temporary),
        ("fchmod", temporary),
        ("fsync", temporary),
        ("before_rename", ""),
        ("rename", "bcd-b"),
        ("fsync", "slots"),
    ]


def test_the_record_can_be_cleared_while_the_old_file_is_still_there(slots: Path) -> None:
    """When asked, the new file is whole and executable and the old one in its place."""
    seen = []
    replace(slots, before_rename=lambda: seen.append(snapshot(slots)))
    (found,) = seen
    assert found["bcd-b"] == Entry("file", 0o755, OLD)
    assert found["bcd-b.tmp"] == Entry("file", 0o755, NEW)


def test_until_it_is_checked_the_copy_is_no_program(slots: Path) -> None:
    """Its writer's alone to read, and nobody's to run."""
    seen: list[int] = []

    def look(handle: int, _mode: int) -> None:
        seen.append(os.fstat(handle).st_mode & 0o777)

    with umask(0), pytest.raises(OSError, match="Input/output"), failing("fchmod", errno.EIO, first=look):
        replace(slots)
    assert seen == [0o600]


WRONG = {
    "another digest": digest_of(OLD)._replace(size=len(NEW)),
    "shorter than it is": digest_of(NEW[:-1]),
    "longer than it is": digest_of(NEW + b"x"),
    "empty": digest_of(b""),
    "right digest and another size": digest_of(NEW)._replace(size=len(NEW) + 1),
    "digest in upper case": Digest(digest_of(NEW).sha256.upper(), len(NEW)),
}


@pytest.mark.parametrize("expected", WRONG.values(), ids=WRONG)
def test_bytes_that_are_not_the_expected_ones_are_refused(slots: Path, expected: Digest) -> None:
    """The slot is as it was, nothing was cleared, and what is said names what was there."""

    def must_not_be_called() -> None:
        raise AssertionError

    before = open_files()
    with unchanged(slots), pytest.raises(HostError, match="changed after it was checked") as caught:
        replace(slots, expected=expected, before_rename=must_not_be_called)
    assert caught.value.code == "io-error"
    assert open_files() == before


def test_a_source_without_an_end_does_not_fill_the_disk(slots: Path) -> None:
    """At most one byte more than was expected is read of it and written."""
    written = []
    real = os.write

    def counting(handle: int, data: memoryview) -> int:
        written.append(len(data))
        return real(handle, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", counting)
        with unchanged(slots), pytest.raises(HostError, match="1000001 bytes"):
            replace(slots, expected=Digest("ab" * 32, 1_000_000), source="/dev/zero")
    assert sum(written) == 1_000_001


def test_a_source_that_grows_while_it_is_copied_is_refused(slots: Path) -> None:
    """The attack: the right bytes first, and more of them after they were judged."""
    staged = slots.parent / "staged"
    real = os.read

    def growing(handle: int, length: int) -> bytes:
        data = real(handle, length)
        with staged.open("ab") as file:
            file.write(b"# and more\n")
        return data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "read", growing)
        with unchanged(slots), pytest.raises(HostError, match=f"{len(NEW) + 1} bytes"):
            replace(slots)


def test_a_source_that_changes_while_it_is_copied_is_refused_or_whole(slots: Path) -> None:
    """What was hashed is what was written: a change after the first read is in both, or in none."""
    data = NEW + b"#" * 2_000_000
    staged = slots.parent / "staged"
    staged.write_bytes(data)
    real = os.read

    def changing(handle: int, length: int) -> bytes:
        got = real(handle, length)
        with staged.open("r+b") as file:
            file.write(b"#!/bin/evil")
            file.seek(-5, os.SEEK_END)
            file.write(b"evil\n")
        return got

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "read", changing)
        with unchanged(slots), pytest.raises(HostError, match="changed after it was checked"):
            replace(slots, data)


def test_what_is_adopted_is_taken_as_it_is(slots: Path) -> None:
    """Without an expectation every byte is taken, and its digest is told."""
    data = NEW + b"#" * 2_500_000
    (slots.parent / "staged").write_bytes(data)
    handle = os.open(slots.parent / "staged", os.O_RDONLY)
    copied = replace_slot_file(
        str(slots), "b", handle, expected=None, platform="linux-amd64", before_rename=lambda: None
    )
    os.close(handle)
    assert copied == digest_of(data)
    assert entry(slots / "bcd-b") == Entry("file", 0o755, data)


@pytest.mark.parametrize(
    "data", [b"MZ" + bytes(100), b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00" + bytes(40)]
)
def test_another_machines_program_is_refused(slots: Path, data: bytes) -> None:
    """However well signed; terminal, and the slot is as it was (field report 32)."""
    (slots.parent / "staged").write_bytes(data)
    with unchanged(slots), pytest.raises(Refusal) as caught:
        replace(slots, data)
    assert caught.value.code == "wrong-platform-binary"


# Steps that fail ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
@pytest.mark.parametrize(
    ("name", "on"), [("open", 2), ("write", 1), ("fchmod", 1), ("fsync", 1), ("rename", 1), ("pread", 1)]
)
def test_a_step_that_fails_leaves_the_slot_and_nothing_beside_it(slots: Path, name: str, on: int, number: int) -> None:
    """Each step, with each error (field reports 05, 29); and nothing stays open."""
    before = open_files()
    with unchanged(slots), pytest.raises(OSError, match=os.strerror(number)), failing(name, number, on=on):
        replace(slots)
    assert open_files() == before


def test_a_source_that_cannot_be_read_leaves_the_slot(slots: Path) -> None:
    """An I/O error half way."""
    (slots.parent / "staged").write_bytes(b"x" * 3_000_000)
    with unchanged(slots), pytest.raises(OSError, match="Input/output"), failing("read", errno.EIO, on=2):
        replace(slots, b"x" * 3_000_000)


def test_a_record_that_cannot_be_cleared_leaves_the_slot(slots: Path) -> None:
    """The caller's step fails: the old file stays, with its record; even where it is no error of the disk."""

    def fail() -> None:
        raise KeyboardInterrupt

    with unchanged(slots), pytest.raises(KeyboardInterrupt):
        replace(slots, before_rename=fail)


def test_a_directory_that_cannot_be_synced_is_an_error_with_a_whole_slot(slots: Path) -> None:
    """The new file is there, without a record: it counts for nothing until it is staged anew."""
    with pytest.raises(OSError, match="Input/output"), failing("fsync", errno.EIO, on=2):
        replace(slots)
    assert snapshot(slots) == {".": entry(slots), "bcd-b": Entry("file", 0o755, NEW)}


def test_a_directory_in_the_slots_place_is_an_error(slots: Path) -> None:
    """Nothing of it is touched."""
    (slots / "bcd-b").unlink()
    (slots / "bcd-b").mkdir()
    (slots / "bcd-b" / "kept").touch()
    with unchanged(slots), pytest.raises(IsADirectoryError):
        replace(slots)


def test_a_link_in_the_slots_place_is_replaced_and_not_followed(slots: Path) -> None:
    """The attack: the slot's name leads to somebody's file."""
    victim = slots.parent / "victim"
    victim.write_bytes(b"kept")
    (slots / "bcd-b").unlink()
    (slots / "bcd-b").symlink_to(victim)
    replace(slots)
    assert entry(slots / "bcd-b") == Entry("file", 0o755, NEW)
    assert entry(victim).content == b"kept"


# Leftovers ------------------------------------------------------------------------------------------------------------


def hard_link(path: Path) -> None:
    """A second name for somebody's file."""
    (path.parent.parent / "victim").write_bytes(b"kept")
    path.hardlink_to(path.parent.parent / "victim")


LEFTOVERS: dict[str, Callable[[Path], object]] = {
    "half a copy": lambda path: path.write_bytes(b"half"),
    "longer copy": lambda path: path.write_bytes(b"x" * 100_000),
    "no rights": lambda path: path.touch(mode=0o000),
    "empty directory": Path.mkdir,
    "fifo": os.mkfifo,
    "socket": make_socket,
    "link": lambda path: path.symlink_to("../victim"),
    "link to the current slot": lambda path: path.symlink_to("bcd-a"),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "hard link": hard_link,
}


@pytest.mark.parametrize("plant", LEFTOVERS.values(), ids=LEFTOVERS)
def test_a_leftover_of_any_type_is_no_matter(slots: Path, plant: Callable[[Path], object]) -> None:
    """It is removed without being followed, and the slot is filled."""
    victim = slots.parent / "victim"
    victim.write_bytes(b"kept")
    (slots / "bcd-a").write_bytes(OLD)
    plant(slots / "bcd-b.tmp")
    replace(slots)
    assert entry(slots / "bcd-b") == Entry("file", 0o755, NEW)
    assert not os.path.lexists(slots / "bcd-b.tmp")
    assert victim.read_bytes() == b"kept"
    assert entry(slots / "bcd-a").content == OLD


def test_a_directory_with_content_in_the_temporary_files_place_is_reported(slots: Path) -> None:
    """It is somebody's; the slot is as it was."""
    (slots / "bcd-b.tmp").mkdir()
    (slots / "bcd-b.tmp" / "kept").touch()
    with unchanged(slots), pytest.raises(HostError, match="directory with content") as caught:
        replace(slots)
    assert caught.value.code == "io-error"


def test_a_temporary_file_that_appears_after_the_look_is_not_written_into(slots: Path) -> None:
    """The attack: a link is planted between the removal and the creation."""
    victim = slots.parent / "victim"
    victim.write_bytes(b"kept")
    real = os.open

    def planting(path: str, flags: int, *args: int, **more: int) -> int:
        if str(path).endswith(".tmp"):
            os.symlink(victim, path)
        return real(path, flags, *args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", planting)
        with pytest.raises(FileExistsError):
            replace(slots)
    assert victim.read_bytes() == b"kept"
    assert entry(slots / "bcd-b").content == OLD


# Text file busy -------------------------------------------------------------------------------------------------------


def test_a_slot_whose_old_file_is_still_running_is_replaced(slots: Path) -> None:
    """The old process lives on with its own file; nobody ever opens it for writing (field report 40)."""
    shutil.copy(os.path.realpath(shutil.which("sleep") or "/bin/sleep"), slots / "bcd-b")
    with subprocess.Popen([slots / "bcd-b", "60"]) as running:
        try:
            with pytest.raises(OSError, match="Text file busy"):
                os.close(os.open(slots / "bcd-b", os.O_WRONLY))
            replace(slots)
            assert entry(slots / "bcd-b") == Entry("file", 0o755, NEW)
            assert running.poll() is None
            assert stat.S_ISREG(os.stat(f"/proc/{running.pid}/exe").st_mode)
            assert subprocess.run([slots / "bcd-b"], capture_output=True, check=True).stdout == b"new\n"
        finally:
            running.kill()


def test_a_new_program_that_was_staged_is_a_program(slots: Path) -> None:
    """A real native one of this machine, started from its slot."""
    program = Path(os.path.realpath(shutil.which("true") or "/bin/true")).read_bytes()
    (slots.parent / "staged").write_bytes(program)
    handle = os.open(slots.parent / "staged", os.O_RDONLY)
    replace_slot_file(
        str(slots), "b", handle, expected=digest_of(program), platform=this_platform(), before_rename=lambda: None
    )
    os.close(handle)
    assert subprocess.run([slots / "bcd-b"]).returncode == 0
