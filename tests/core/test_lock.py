"""One at a time: the lock between processes, whoever dies while holding it (field report 21)."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bcd.core.errors import HostError
from bcd.core.lock import LOCK_NAME, locked
from tests.core.disk import entry, open_files, snapshot, unchanged
from tests.core.faults import umask

HOLD = """
import sys
from bcd.core.lock import locked
with locked(sys.argv[1], 5.0):
    print("held", flush=True)
    sys.stdin.read()
print("left", flush=True)
"""


@contextmanager
def holder(records: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the lock until it is told to leave it."""
    command = [sys.executable, "-c", HOLD, str(records)]
    root = str(Path(__file__).parent.parent.parent)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": root}
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def busy(records: Path, seconds: float = 0.0) -> float:
    """Somebody else holds it; how long it took to say so."""
    started = time.monotonic()
    with pytest.raises(HostError) as caught, locked(str(records), seconds):
        pytest.fail("two hold the lock")
    assert (caught.value.code, caught.value.retryable) == ("update-in-progress", True)
    return time.monotonic() - started


def test_of_two_processes_one_holds_the_lock(tmp_path: Path) -> None:
    """The other is told that an update is in progress, at once; and may hold it when the first one is done."""
    with holder(tmp_path) as process:
        with unchanged(tmp_path):
            assert busy(tmp_path) < 2
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        assert process.stdout.readline() == "left\n"
        with locked(str(tmp_path), 0.0):
            pass


def test_a_holder_that_is_killed_holds_nothing(tmp_path: Path) -> None:
    """The kernel frees it; the file that stays is no lock."""
    with holder(tmp_path) as process:
        busy(tmp_path)
        process.kill()
        process.wait()
        assert (tmp_path / LOCK_NAME).exists()
        with locked(str(tmp_path), 0.0):
            pass


def test_whoever_may_wait_gets_it_when_it_is_free(tmp_path: Path) -> None:
    """Soon after, and not before."""
    with holder(tmp_path) as process:
        assert 0.3 <= busy(tmp_path, 0.3) < 3
        process.kill()
        with locked(str(tmp_path), 5.0):
            pass


def test_in_one_process_it_is_held_once_as_well(tmp_path: Path) -> None:
    """Threads of the agent exclude each other, too."""
    with locked(str(tmp_path), 0.0):
        busy(tmp_path)
    with locked(str(tmp_path), 0.0):
        pass


def test_an_error_inside_leaves_it_free(tmp_path: Path) -> None:
    """And the error is what it was."""
    before = open_files()
    with pytest.raises(KeyError), locked(str(tmp_path), 0.0):
        raise KeyError
    assert open_files() == before
    with locked(str(tmp_path), 0.0):
        pass


def test_a_program_that_is_started_inside_does_not_hold_it_on(tmp_path: Path) -> None:
    """The descriptor is not for children."""
    with locked(str(tmp_path), 0.0):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with locked(str(tmp_path), 0.0):
            pass
    finally:
        child.kill()
        child.wait()


def test_the_lock_is_an_empty_file_that_stays(tmp_path: Path) -> None:
    """Removing it would let two processes lock two files of one name."""
    for _ in range(2):
        with locked(str(tmp_path), 0.0):
            assert set(snapshot(tmp_path)) == {".", LOCK_NAME}
    assert entry(tmp_path / LOCK_NAME).content == b""


def test_a_lock_with_something_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    """It is opened, never written."""
    (tmp_path / LOCK_NAME).write_bytes(b"4711\n")
    with unchanged(tmp_path), locked(str(tmp_path), 0.0):
        pass


def test_the_umask_does_not_keep_its_owner_out(tmp_path: Path) -> None:
    """Under 077 it is still the owner's to take again."""
    with umask(0o077), locked(str(tmp_path), 0.0):
        pass
    with locked(str(tmp_path), 0.0):
        pass


@pytest.mark.parametrize("plant", ["dir", "link", "missing"])
def test_a_lock_that_cannot_be_opened_is_an_io_error(tmp_path: Path, plant: str) -> None:
    """Retryable, with its path; a link is not followed, and what it leads to not made."""
    records = tmp_path / "records"
    if plant != "missing":
        records.mkdir()
    if plant == "dir":
        (records / LOCK_NAME).mkdir()
    elif plant == "link":
        (records / LOCK_NAME).symlink_to(tmp_path / "victim")
    with (
        unchanged(tmp_path),
        pytest.raises(HostError, match="take the update lock") as caught,
        locked(str(records), 0.0),
    ):
        pytest.fail("it was taken")
    assert (caught.value.code, caught.value.retryable) == ("io-error", True)
    assert str(records / LOCK_NAME) in caught.value.message
