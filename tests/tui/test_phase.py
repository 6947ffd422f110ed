"""Where an update is, decided from the disk first and the agent second."""

import pytest

from bcd.core.records import Confirmed
from bcd.core.text import Foreign
from bcd.tui.phase import STATIONS, phase_of
from bcd.tui.snapshot import Snapshot
from tests.tui import states


@pytest.mark.parametrize(
    ("snapshot", "at", "passed", "tone", "part"),
    [
        (states.never_updated(), "", 0, "quiet", "no update has run here yet"),
        (states.at_rest(), "", len(STATIONS), "good", "1.4.0 was welcomed and is confirmed"),
        (states.downloading(), "downloading", 1, "working", "1.4.2 is being downloaded"),
        (states.pending(), "waiting", 4, "waiting", "1.4.2 runs from slot a and waits"),
        (states.pending(0.5), "waiting", 4, "waiting", "waits"),
        (states.pending(0.0), "overdue", 4, "bad", "overdue"),
        (states.overdue(), "overdue", 4, "bad", "1.4.2 is overdue and nobody has swapped back yet"),
        (states.swapped_back(), "swapped back", 3, "bad", "1.4.2 was swapped back and is settled at"),
        (states.rolled_back(), "", 0, "bad", f"the last update failed: {states.REASON}"),
        (states.config_broken(), "", 0, "bad", "the configuration can't be read"),
    ],
    ids=lambda value: None if isinstance(value, Snapshot) else str(value)[:20],
)
def test_each_state_has_its_station(snapshot: Snapshot, at: str, passed: int, tone: str, part: str) -> None:
    phase = phase_of(snapshot)
    assert (phase.at, phase.passed, phase.tone) == (at, passed, tone)
    assert part in phase.sentence


@pytest.mark.parametrize("said", ["checking", "downloading", "staging", "swapped", "waiting"])
def test_what_the_agent_does_is_said_with_its_target(said: str) -> None:
    phase = phase_of(states.changed(states.at_rest(), agent=states.agent(phase=said, target=Foreign("1.4.2"))))
    assert phase.at
    assert phase.tone == "working"
    assert "1.4.2" in phase.sentence


def test_a_pending_swap_on_disk_is_believed_before_the_agent() -> None:
    """C11: from swap to settle it is pending, whatever a process says of itself."""
    snapshot = states.changed(states.pending(), agent=states.agent(phase="idle"))
    assert phase_of(snapshot).at == "waiting"
    assert phase_of(states.changed(states.pending(), agent=None)).at == "waiting"


def test_swapped_back_is_said_only_where_current_says_so() -> None:
    """C11: a `current` that names no slot is broken, and nobody has gone back by that."""
    phase = phase_of(states.current_malformed())
    assert "swapped back" not in phase.at + phase.sentence
    assert phase.tone == "bad"
    assert "current" in phase.sentence


def test_a_phase_that_is_not_known_and_one_that_is_no_text_are_rest() -> None:
    for said in ("dreaming", None, 7, ["downloading"], {"x": 1}):
        assert phase_of(states.changed(states.at_rest(), agent=states.agent(phase=said))).tone == "good"


def test_a_failure_in_the_second_of_the_confirmation_is_not_hidden_by_it() -> None:
    at = int(states.NOW) - 10
    confirmed = Confirmed(Foreign("1.4.0"), 14, at, "5a" * 16)
    both = states.status(confirmed=confirmed, failed=(states.failed_entry(at=at),))
    assert phase_of(states.changed(states.at_rest(), status=both)).tone == "bad"
    before = states.status(confirmed=confirmed, failed=(states.failed_entry(at=at - 1),))
    assert phase_of(states.changed(states.at_rest(), status=before)).tone == "good"


def test_records_that_cannot_be_read_are_not_taken_for_no_update() -> None:
    """C13: unreadable is unknown, not none."""
    phase = phase_of(states.records_unreadable())
    assert "no update has run here" not in phase.sentence
    assert phase.tone == "bad"
