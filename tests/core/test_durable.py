"""Writing so that power may fail: what is synced in which order, and what a step that fails leaves (field reports 01, 03)."""

import errno
import os
import re
from pathlib import Path

import pytest

from bcd.core.durable import (
    as_host_error,
    host_error,
    make_directories,
    remove_durably,
    remove_if_there,
    sync_directory,
    temporary_name,
    write_all,
    write_durably,
)
from bcd.core.errors import HostError
from tests.core.disk import Entry, entry, open_files, snapshot, unchanged
from tests.core.faults import failing, recorded, umask

UMASKS = [0o000, 0o022, 0o027, 0o077, 0o777]


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A record with something in it, alone in a directory."""
    directory = tmp_path / "records"
    directory.mkdir()
    made = directory / "update.json"
    made.write_bytes(b"old")
    made.chmod(0o644)
    return made


def other_names(path: Path) -> list[str]:
    """What lies beside a file."""
    return [name for name in os.listdir(path.parent) if name != path.name]


# Writing --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"new", b"\0\xff", b"x" * 300_000], ids=["empty", "short", "binary", "long"])
def test_a_record_is_replaced(record: Path, data: bytes) -> None:
    """By all of it, and nothing stays beside it or open."""
    before = open_files()
    write_durably(str(record), data)
    assert entry(record) == Entry("file", 0o644, data)
    assert other_names(record) == []
    assert open_files() == before


def test_a_record_is_made_where_there_was_none(tmp_path: Path) -> None:
    """The same way."""
    write_durably(str(tmp_path / "update.json"), b"new")
    assert snapshot(tmp_path)["update.json"] == Entry("file", 0o644, b"new")


@pytest.mark.parametrize("mask", UMASKS, ids=oct)
@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_a_records_mode_is_no_matter_of_the_umask(record: Path, mask: int, mode: int) -> None:
    """A service's UMask=077 hides no record from the people who look (field report 26)."""
    with umask(mask):
        write_durably(str(record), b"new", mode)
    assert entry(record) == Entry("file", mode, b"new")


def test_a_new_record_is_nobodys_to_read_before_it_is_whole(record: Path) -> None:
    """Until its mode is set it is its writer's alone, whatever the umask."""
    seen = []

    def look(handle: int, _mode: int) -> None:
        seen.append(os.fstat(handle).st_mode & 0o777)

    with umask(0), pytest.raises(OSError, match="Input/output"), failing("fchmod", errno.EIO, first=look):
        write_durably(str(record), b"new")
    assert seen == [0o600]


def test_the_file_is_synced_before_the_rename_and_the_directory_after_it(record: Path) -> None:
    """In this order, once each: bytes and mode, fsync, rename, fsync of the directory."""
    with recorded("write", "fchmod", "fsync", "rename") as calls:
        write_durably(str(record), b"new")
    temporary = calls[0][1]
    assert re.fullmatch(r"\.update\.json\.[0-9a-f]{12}\.tmp", temporary)
    assert calls == [
        ("write", temporary),
        ("fchmod", temporary),
        ("fsync", temporary),
        ("rename", "update.json"),
        ("fsync", "records"),
    ]


def test_until_the_rename_the_old_record_stands_and_the_new_one_is_whole(record: Path) -> None:
    """There is no instant without a record."""
    seen = []

    def look(source: str, target: str) -> None:
        seen.append((Path(source).read_bytes(), Path(target).read_bytes()))

    with pytest.raises(OSError, match="Input/output"), failing("rename", errno.EIO, first=look):
        write_durably(str(record), b"new")
    assert seen == [(b"new", b"old")]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("name", ["open", "write", "fchmod", "fsync", "rename"])
def test_a_step_that_fails_leaves_the_old_record_and_nothing_beside_it(record: Path, name: str, number: int) -> None:
    """Each step, with each error (field reports 05, 29); and nothing stays open."""
    before = open_files()
    with unchanged(record.parent), pytest.raises(OSError, match=os.strerror(number)) as caught, failing(name, number):
        write_durably(str(record), b"new")
    assert caught.value.errno == number
    assert open_files() == before


def test_a_disk_that_fills_half_way_leaves_the_old_record(record: Path) -> None:
    """The first write takes a part, the second takes nothing."""
    real = os.write
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", lambda handle, data: real(handle, data[:2]))
        with unchanged(record.parent), pytest.raises(OSError, match="No space"), failing("write", on=2):
            write_durably(str(record), b"new one")


def test_a_directory_that_cannot_be_synced_is_an_error_with_the_new_record_whole(record: Path) -> None:
    """It may or may not survive power loss, so it does not count as written; either way a whole record is there."""
    with pytest.raises(OSError, match="Input/output"), failing("fsync", errno.EIO, on=2):
        write_durably(str(record), b"new")
    assert entry(record) == Entry("file", 0o644, b"new")
    assert other_names(record) == []


def test_a_directory_in_the_records_place_is_an_error(record: Path) -> None:
    """Nothing is replaced and nothing stays."""
    record.unlink()
    record.mkdir()
    with unchanged(record.parent), pytest.raises(OSError, match="directory"):
        write_durably(str(record), b"new")


def test_a_link_in_the_records_place_is_replaced_and_not_followed(record: Path, tmp_path: Path) -> None:
    """The attack: the record's name leads to somebody's file."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"kept")
    record.unlink()
    record.symlink_to(victim)
    write_durably(str(record), b"new")
    assert entry(record) == Entry("file", 0o644, b"new")
    assert victim.read_bytes() == b"kept"


def test_a_missing_directory_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    """Whoever writes has made it."""
    with unchanged(tmp_path), pytest.raises(FileNotFoundError):
        write_durably(str(tmp_path / "missing" / "update.json"), b"new")


def test_no_two_writers_share_a_temporary_name() -> None:
    """Two updaters at once (field report 21); hidden, and known again as a leftover."""
    names = {temporary_name("update.json") for _ in range(1000)}
    assert len(names) == 1000
    assert all(re.fullmatch(r"\.update\.json\.[0-9a-f]{12}\.tmp", name) for name in names)


def test_every_byte_is_written_however_few_a_write_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """write(2) may take fewer, down to one."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:3]))
    path = tmp_path / "file"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT)
    write_all(handle, bytes(range(256)))
    write_all(handle, memoryview(b"end"))
    write_all(handle, b"")
    os.close(handle)
    assert path.read_bytes() == bytes(range(256)) + b"end"


# Removing -------------------------------------------------------------------------------------------------------------


def test_what_is_removed_stays_removed(record: Path) -> None:
    """The directory is synced after it; and it is told that something was there."""
    with recorded("unlink", "fsync") as calls:
        assert remove_durably(str(record))
    assert calls == [("unlink", "update.json"), ("fsync", "records")]
    assert not record.exists()


def test_what_is_not_there_need_not_be_removed(record: Path) -> None:
    """No error and nothing to sync."""
    record.unlink()
    with unchanged(record.parent), recorded("fsync") as calls:
        assert not remove_durably(str(record))
        assert not remove_if_there(str(record))
    assert calls == []


def test_what_cannot_be_removed_is_an_error(record: Path) -> None:
    """Whatever the reason, but for being gone."""
    with unchanged(record.parent):
        with pytest.raises(OSError, match="Read-only"), failing("unlink", errno.EROFS):
            remove_durably(str(record))
        with pytest.raises(NotADirectoryError):
            remove_if_there(str(record / "x"))


def test_only_the_link_is_removed(record: Path) -> None:
    """Never what it leads to."""
    link = record.parent / "link"
    link.symlink_to(record.name)
    assert remove_durably(str(link))
    assert record.read_bytes() == b"old"
    assert not link.is_symlink()


def test_only_a_directory_is_synced_as_one(record: Path) -> None:
    """And nothing stays open."""
    before = open_files()
    sync_directory(str(record.parent))
    with pytest.raises(NotADirectoryError):
        sync_directory(str(record))
    with pytest.raises(OSError, match="Input/output"), failing("fsync", errno.EIO):
        sync_directory(str(record.parent))
    assert open_files() == before


# Directories ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", UMASKS, ids=oct)
@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_directories_are_made_with_their_mode_whatever_the_umask(tmp_path: Path, mask: int, mode: int) -> None:
    """Each that was missing (field report 26)."""
    with umask(mask):
        make_directories(str(tmp_path / "a" / "b" / "c"), mode)
    found = snapshot(tmp_path)
    assert {name: found[name].mode for name in ("a", "a/b", "a/b/c")} == dict.fromkeys(("a", "a/b", "a/b/c"), mode)


def test_a_directory_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    """Its mode is its owner's to choose; the new one inside has ours."""
    (tmp_path / "a").mkdir(mode=0o700)
    with recorded("mkdir", "chmod", "fsync") as calls:
        make_directories(str(tmp_path / "a"))
    assert calls == []
    make_directories(str(tmp_path / "a" / "b"))
    found = snapshot(tmp_path)
    assert (found["a"].mode, found["a/b"].mode) == (0o700, 0o755)


def test_each_new_directory_is_durable_in_the_one_above_it(tmp_path: Path) -> None:
    """From the top down."""
    with recorded("mkdir", "chmod", "fsync") as calls:
        make_directories(str(tmp_path / "a" / "b"))
    assert calls == [
        ("mkdir", "a"),
        ("chmod", "a"),
        ("fsync", tmp_path.name),
        ("mkdir", "b"),
        ("chmod", "b"),
        ("fsync", "a"),
    ]


@pytest.mark.parametrize("name", ["a/b", "./a/b", "a//b/", ""])
def test_a_relative_directory_is_made_below_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The parents of a relative path end in nothing at all, which is no directory and its own parent."""
    monkeypatch.chdir(tmp_path)
    make_directories(name)
    assert (tmp_path / name).is_dir()
    assert [path for path in snapshot(tmp_path) if path != "."] == (["a", "a/b"] if name else [])


def test_a_link_to_a_directory_is_a_directory(tmp_path: Path) -> None:
    """An operator may have moved it to another disk."""
    (tmp_path / "real").mkdir()
    (tmp_path / "slots").symlink_to("real")
    make_directories(str(tmp_path / "slots" / "bcd"))
    assert (tmp_path / "real" / "bcd").is_dir()


@pytest.mark.parametrize(
    "plant", [Path.touch, lambda path: path.symlink_to("nowhere"), os.mkfifo], ids=["file", "dangling", "fifo"]
)
def test_something_else_in_a_directorys_place_is_an_error(tmp_path: Path, plant: object) -> None:
    """It is neither replaced nor followed."""
    assert callable(plant)
    plant(tmp_path / "slots")
    with unchanged(tmp_path), pytest.raises(OSError, match=r"File exists|Not a directory|No such file"):
        make_directories(str(tmp_path / "slots" / "bcd"))


# What an error means --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (errno.ENOSPC, "no-space", "free some space"),
        (errno.EDQUOT, "no-space", "free some space"),
        (errno.EROFS, "io-error", "read-write"),
        (errno.EACCES, "io-error", "bcd doctor"),
        (errno.EIO, "io-error", "bcd doctor"),
        (errno.ETXTBSY, "io-error", "bcd doctor"),
    ],
)
def test_an_oserror_becomes_an_error_with_code_place_and_hint(number: int, code: str, words: str) -> None:
    """Retryable, saying what was tried, where, and what the system said."""
    for name in ("/slots/bcd-b.tmp", b"/slots/bcd-b.tmp"):
        error = host_error(OSError(number, os.strerror(number), name), "swap")
        assert (error.code, error.retryable) == (code, True)
        assert error.message == f"could not swap: /slots/bcd-b.tmp {os.strerror(number)}"
        assert words in error.hint


def test_an_oserror_without_a_place_or_words_is_told_all_the_same() -> None:
    """fsync names no file; some errors have no number."""
    assert host_error(OSError(errno.EIO, "Input/output error"), "swap").message == "could not swap: Input/output error"
    assert host_error(OSError("odd"), "swap").message == "could not swap: odd"
    assert (
        host_error(OSError(errno.EIO, "Input/output error", 7), "swap").message == "could not swap: Input/output error"
    )


def test_no_oserror_leaves_core() -> None:
    """It becomes what it means, with its cause; other errors pass."""
    with pytest.raises(HostError, match="could not settle") as caught, as_host_error("settle"):
        raise PermissionError(errno.EACCES, "Permission denied", "/x")
    assert isinstance(caught.value.__cause__, PermissionError)
    with pytest.raises(KeyError), as_host_error("settle"):
        raise KeyError
    with as_host_error("settle"):
        pass
