"""The record of what the slots hold: changed for one slot alone, and when a release expires."""

import json
from pathlib import Path

import pytest

from bcd.core.records import (
    SlotRecord,
    SlotsRecord,
    dump_slots,
)
from tests.core.test_records import SLOTS, good


def test_a_slots_record_is_changed_for_one_slot_alone() -> None:
    """The other's stays."""
    one, two = SlotRecord("1", 1, "", 0, 0), SlotRecord("2", 2, "", 0, 0)
    record = SlotsRecord(one, two)
    assert record.having("a", None) == SlotsRecord(None, two)
    assert record.having("b", one) == SlotsRecord(one, one)
    assert record == SlotsRecord(one, two)


@pytest.mark.parametrize("told", [None, True, -1, 1.5, "soon", 2**53, [1]], ids=repr)
def test_an_expiry_that_makes_no_sense_breaks_no_record(tmp_path: Path, told: object) -> None:
    """It decides nothing: the slot can still go back, and what another bcd meant by it is kept."""
    document = {**SLOTS, "a": {**SLOTS["a"], "expires_at": told}}
    record = good("slots.json", document, tmp_path)
    assert record.a is not None
    assert (record.a.version, record.a.expires_at) == ("1.4.0", None)
    assert json.loads(dump_slots(record))["a"]["expires_at"] == told


def test_an_unknown_expiry_is_absent_as_an_older_bcd_writes_it(tmp_path: Path) -> None:
    """And one that is known is kept by an older bcd, which takes it for an unknown field."""
    record = good("slots.json", SLOTS, tmp_path)
    assert json.loads(dump_slots(record)) == SLOTS
    known = SlotsRecord(a=SlotRecord("1.4.0", 14, "ab" * 32, 1000, 1_800_000_000, expires_at=1_900_000_000))
    assert json.loads(dump_slots(known))["a"]["expires_at"] == 1_900_000_000
    assert good("slots.json", json.loads(dump_slots(known)), tmp_path) == known
