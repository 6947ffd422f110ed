"""The tracebacks that a fault of bcd's own leaves for whoever mends it: told where, few, and of a bounded size."""

import os
import tempfile
from pathlib import Path

import pytest

from bcd.commands import crash
from bcd.commands.crash import report_fault
from bcd.core.exits import ExitStatus


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def fault(words: str = "the end") -> ExitStatus:
    """A fault of bcd's own, caught and reported."""
    try:
        raise ZeroDivisionError(words)
    except ZeroDivisionError as error:
        return report_fault(error)


def test_a_fault_leaves_its_traceback_and_says_where(temporary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sentence for people, the rest in a file of its user's alone."""
    assert fault() is ExitStatus.CRASH
    (kept,) = temporary.iterdir()
    assert str(kept) in capsys.readouterr().err
    assert "ZeroDivisionError: the end" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_crash_loop_keeps_the_newest_few(temporary: Path) -> None:
    """Not one file a start, for ever."""
    for number in range(crash._KEPT + 5):
        fault(f"number {number}")
        for age, path in enumerate(sorted(temporary.iterdir(), key=lambda path: path.stat().st_mtime_ns)):
            os.utime(path, (1_600_000_000 + age,) * 2)  # apart on any file system's clock
    said = sorted(path.read_text().splitlines()[-1] for path in temporary.iterdir())
    assert said == sorted(f"ZeroDivisionError: number {number}" for number in range(5, crash._KEPT + 5))


def test_what_is_not_ours_stays(temporary: Path) -> None:
    """The attack: names in /tmp that lead to somebody's file, or are no files at all."""
    victim = temporary / "victim"
    victim.write_text("kept")
    for number in range(crash._KEPT + 2):
        (temporary / f"bcd-crash-link{number}.txt").symlink_to(victim)
    (temporary / "bcd-crash-directory.txt").mkdir()
    (temporary / "bcd-crash-else.log").touch()
    if os.geteuid() == 0:
        (temporary / "bcd-crash-strange.txt").touch()
        os.chown(temporary / "bcd-crash-strange.txt", 65534, -1)
    before = {path.name for path in temporary.iterdir()}
    for _ in range(crash._KEPT + 3):
        fault()
    after = {path.name for path in temporary.iterdir()}
    assert before <= after
    assert len(after - before) == crash._KEPT
    assert victim.read_text() == "kept"


def test_a_long_traceback_is_cut(temporary: Path) -> None:
    """An error may quote a whole file."""
    fault("x" * 1_000_000)
    (kept,) = temporary.iterdir()
    assert kept.stat().st_size == crash._LIMIT_BYTES


def test_where_nothing_can_be_kept_it_is_still_told(
    temporary: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is no second fault."""
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "missing"))
    assert fault() is ExitStatus.CRASH
    assert "set BCD_DEBUG=1 for the details" in capsys.readouterr().err
