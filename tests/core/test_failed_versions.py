"""The list of failed versions: 32 at most, each once, the newest last."""

from pathlib import Path

from bcd.core.records import (
    FAILED_LIMIT,
    Confirmed,
    Failed,
    UpdateRecord,
)
from bcd.core.text import raw
from tests.core.test_records import FAILED, UPDATE, good


def failure(number: int, at: int = 0) -> Failed:
    """A version that failed."""
    return Failed(f"1.0.{number}", number, "x", at)


def test_of_33_failed_versions_the_oldest_is_dropped() -> None:
    """32 are kept, oldest first."""
    record = UpdateRecord()
    for number in range(FAILED_LIMIT):
        record = record.with_failed(failure(number))
    assert [entry.sequence for entry in record.failed] == list(range(32))
    record = record.with_failed(failure(32))
    assert [entry.sequence for entry in record.failed] == list(range(1, 33))


def test_a_version_that_fails_again_moves_to_the_end() -> None:
    """Once, with its newest reason; nobody else is dropped for it."""
    record = UpdateRecord(failed=tuple(failure(number) for number in range(FAILED_LIMIT)))
    record = record.with_failed(failure(3, at=7))
    assert len(record.failed) == FAILED_LIMIT
    assert record.failed[-1] == failure(3, at=7)
    assert [entry.sequence for entry in record.failed] == [number for number in range(32) if number != 3] + [3]


def test_a_version_is_known_again_by_what_it_is_and_not_by_how_it_is_shown(tmp_path: Path) -> None:
    """A record by another hand may hold a text that is shown otherwise; it is still one version."""
    document = {**UPDATE, "failed": [{**FAILED, "version": "1.4.1\x1b"}, {**FAILED, "version": "1.4.1"}]}
    record = good("update.json", document, tmp_path)
    again = record.with_failed(Failed("1.4.1\x1b", 15, "y", 2))
    assert [raw(entry.version) for entry in again.failed] == ["1.4.1", "1.4.1\x1b"]


def test_adding_a_failure_leaves_the_floor_and_what_was_confirmed() -> None:
    """A failure says nothing of either."""
    confirmed = Confirmed("1.4.0", 14, 1, "00" * 16)
    record = UpdateRecord(14, confirmed, (), {"x": 1}).with_failed(failure(1))
    assert (record.sequence, record.confirmed, record.extra) == (14, confirmed, {"x": 1})


def test_a_longer_list_of_another_bcd_is_read_whole(tmp_path: Path) -> None:
    """Each of them failed here; it is cut when the next one is added."""
    document = {**UPDATE, "failed": [{**FAILED, "version": f"1.0.{number}"} for number in range(40)]}
    record = good("update.json", document, tmp_path)
    assert len(record.failed) == 40
    assert record.with_failed(failure(99)).failed[0].version == "1.0.9"
