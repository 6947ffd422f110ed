"""The release floor: the greatest of what is known, and what is known where its record is lost."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.core.floor import release_floor
from bcd.core.records import Confirmed, Failed, SlotRecord, SlotsRecord, UpdateRecord

SEQUENCE = st.integers(0, 2**53 - 1)


def slot(sequence: int) -> SlotRecord:
    """What a slot's record says."""
    return SlotRecord("1.4.0", sequence, "ab" * 32, 1000, 0)


@pytest.mark.parametrize(("recorded", "configured", "built_in"), list(permutations([12, 13, 14])))
def test_the_floor_is_the_greatest_of_three(recorded: int, configured: int, built_in: int) -> None:
    """Whichever of record, configuration and build it is."""
    assert release_floor(UpdateRecord(sequence=recorded), None, configured, built_in) == 14


def test_a_node_that_knows_nothing_has_no_floor() -> None:
    """The first release is welcome."""
    assert release_floor(None, None, 0, 0) == 0
    assert release_floor(UpdateRecord(), SlotsRecord(), 0, 0) == 0


@pytest.mark.parametrize(
    ("slots", "floor"),
    [
        (SlotsRecord(), 0),
        (SlotsRecord(a=slot(0)), 0),
        (SlotsRecord(a=slot(14)), 14),
        (SlotsRecord(b=slot(14)), 14),
        (SlotsRecord(slot(13), slot(14)), 14),
        (SlotsRecord(slot(14), slot(13)), 14),
    ],
)
def test_without_its_record_the_slots_are_evidence(slots: SlotsRecord, floor: int) -> None:
    """A record that was deleted or broken lets no older release in (field report 24)."""
    assert release_floor(None, slots, 0, 0) == floor
    assert release_floor(None, slots, 20, 0) == 20
    assert release_floor(None, slots, 0, 20) == 20


def test_with_its_record_the_slots_have_no_say() -> None:
    """A slot may hold a release that was never confirmed; it must not bar the way back."""
    slots = SlotsRecord(slot(99), slot(98))
    assert release_floor(UpdateRecord(sequence=14), slots, 0, 0) == 14


def test_what_failed_or_was_confirmed_does_not_count_beside_the_sequence() -> None:
    """Only the record's own floor does."""
    record = UpdateRecord(14, Confirmed("1.4.1", 99, 0, "00" * 16), (Failed("1.5.0", 100, "x", 0),))
    assert release_floor(record, None, 0, 0) == 14


@given(st.none() | SEQUENCE.map(UpdateRecord), SEQUENCE, SEQUENCE, SEQUENCE, SEQUENCE)
def test_the_floor_is_never_below_anything_that_is_known(
    update: UpdateRecord | None, one: int, two: int, configured: int, built_in: int
) -> None:
    """And is always one of them."""
    known = [configured, built_in, *([one, two] if update is None else [update.sequence])]
    assert release_floor(update, SlotsRecord(slot(one), slot(two)), configured, built_in) == max(known)
