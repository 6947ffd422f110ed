"""What lies in a record's place and is no file, is not there, may not be read, or can't be."""

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.core.records import (
    Reading,
    dump,
    read_update,
)
from tests.core.disk import open_files
from tests.core.public import as_nobody, public_directory
from tests.core.test_records import KINDS, UPDATE


def make_socket(path: Path) -> None:
    """Leave a socket behind."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def link_to(target: str) -> Callable[[Path], None]:
    """Make a symlink."""
    return lambda path: path.symlink_to(target)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "plant",
    [
        os.mkfifo,
        make_socket,
        Path.mkdir,
        link_to("/dev/zero"),
        link_to("other"),
        link_to("nowhere"),
        link_to("/etc/passwd"),
    ],
    ids=["fifo", "socket", "directory", "device", "good record", "dangling", "somebody's file"],
)
def test_what_is_no_file_in_a_records_place_is_corrupt(
    kind: str, plant: Callable[[Path], None], tmp_path: Path
) -> None:
    """Never followed and never waited for, also where the link leads to a good record; and nothing stays open."""
    (tmp_path / "other").write_bytes(dump(KINDS[kind][0]))
    plant(tmp_path / kind)
    before, started = open_files(), time.monotonic()
    reading = KINDS[kind][1](str(tmp_path / kind))
    assert (reading.state, reading.value) == ("corrupt", None)
    assert time.monotonic() - started < 2
    assert open_files() == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_record_is_absent(kind: str, tmp_path: Path) -> None:
    """So is one whose directory is missing, or is a file."""
    (tmp_path / "file").touch()
    for name in (kind, f"missing/{kind}", f"file/{kind}"):
        assert KINDS[kind][1](str(tmp_path / name)) == Reading("absent", None, "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_that_this_user_may_not_read_is_not_absent(kind: str) -> None:
    """Field report 38; neither is it broken, so nobody moves it aside."""
    with public_directory() as directory:
        path = directory / kind
        path.write_bytes(dump(KINDS[kind][0]))
        path.chmod(0o600 if os.geteuid() == 0 else 0o000)
        with as_nobody():
            reading = KINDS[kind][1](str(path))
    assert (reading.state, reading.value) == ("unreadable", None)
    assert "may not read" in reading.why


def test_a_disk_that_fails_is_no_broken_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An I/O error says nothing of what is written there; and nothing stays open."""
    (tmp_path / "update.json").write_bytes(dump(UPDATE))
    before = open_files()

    def fail(_handle: int, _length: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", fail)
    reading = read_update(str(tmp_path / "update.json"))
    monkeypatch.undo()
    assert (reading.state, reading.why) == ("unreadable", "Input/output error")
    assert open_files() == before
