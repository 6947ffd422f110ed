"""Toasts: what changed is told once, by what changed and not by what is; one rollback is one toast."""

from bcd.core.records import Confirmed, PendingRecord, Reading, UpdateRecord
from bcd.core.text import Foreign
from bcd.tui.news import NewsDesk
from bcd.tui.snapshot import Snapshot
from tests.tui import states


def told(*snapshots: Snapshot) -> list[str]:
    """What is told of them in their order, each seen twice."""
    desk, said = NewsDesk(), []
    before: Snapshot | None = None
    for snapshot in snapshots:
        for _ in range(2):
            said += [news.text for news in desk.between(before, snapshot)]
            before = snapshot
    return said


def with_update(snapshot: Snapshot, update: UpdateRecord) -> Snapshot:
    """The same with another update record."""
    assert snapshot.status is not None
    return states.changed(snapshot, status=snapshot.status._replace(update=Reading("good", update, "")))


def settled() -> Snapshot:
    """1.4.2 was swapped back and is noted as failed, beside 1.4.1 from yesterday."""
    failed = (states.failed_entry(), states.failed_entry("1.4.2", "not welcomed", at=int(states.NOW), sequence=16))
    return states.with_failed(*failed)


def test_an_update_from_its_beginning_to_its_welcome() -> None:
    staging = states.changed(states.at_rest(), agent=states.agent(phase="staging", target=Foreign("1.4.2")))
    waits = states.changed(states.pending(), agent=states.agent())
    waits = with_update(waits, UpdateRecord(14, None, ()))
    done = with_update(waits, UpdateRecord(16, Confirmed(Foreign("1.4.2"), 16, 1, "6b" * 16), ()))
    assert done.status is not None
    ended = done.status._replace(pending=Reading[PendingRecord]("absent", None, ""), left=None)
    done = states.changed(done, status=ended)
    assert told(states.at_rest(), states.downloading(1), states.downloading(2), staging, waits, done) == [
        "an update to 1.4.2 began",
        "1.4.2 is downloaded and is being staged",
        "1.4.2 is swapped in and waits for its welcome: 87 s left",
        "1.4.2 was welcomed and is confirmed",
    ]


def test_a_rollback_and_its_failure_at_once_are_one_toast() -> None:
    assert told(states.pending(), settled()) == ["1.4.2 was rolled back: 1.4.0 runs again (not welcomed)"]


def test_a_rollback_whose_failure_is_noted_later_is_one_toast() -> None:
    """The crash loop's script moves `current`; the next start of the agent writes down why."""
    assert told(states.pending(), states.swapped_back(), settled()) == ["1.4.2 was rolled back: 1.4.0 runs again"]


def test_a_second_failure_of_a_version_that_was_cleared_is_told_again() -> None:
    cleared = states.with_failed(states.failed_entry())
    again = states.with_failed(
        states.failed_entry(), states.failed_entry("1.4.2", "again", at=int(states.NOW) + 9, sequence=16)
    )
    said = told(states.pending(), states.swapped_back(), settled(), cleared, again)
    assert said == ["1.4.2 was rolled back: 1.4.0 runs again", "1.4.2 failed here: again"]


def test_an_agent_that_goes_and_comes_back() -> None:
    assert told(states.at_rest(), states.agent_down(), states.at_rest()) == [
        "no agent answers any more",
        "the agent answers again",
    ]


def test_a_record_that_breaks() -> None:
    said = told(states.at_rest(), states.record_broken())
    assert [text.partition(":")[0] for text in said] == [
        "/var/lib/bcd/update/update.json is corrupt",
        "a broken record was moved aside",
    ]


def test_a_configuration_that_breaks() -> None:
    assert len(told(states.at_rest(), states.config_broken(), states.at_rest())) == 1
