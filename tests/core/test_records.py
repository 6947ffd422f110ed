"""The three records: bytes to values and back with nothing lost, and whatever lies in a record's place read as what it is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bcd.core.records import (
    Confirmed,
    Failed,
    PendingRecord,
    Reading,
    SlotRecord,
    SlotsRecord,
    UpdateRecord,
    dump,
    dump_pending,
    dump_slots,
    dump_update,
    parse_pending,
    parse_slots,
    parse_update,
    read_pending,
    read_slots,
    read_update,
)
from bcd.core.text import raw
from tests.core.disk import unchanged

Json = dict[str, Any]

SLOT: Json = {"version": "1.4.0", "sequence": 14, "sha256": "ab" * 32, "size": 1000, "written_at": 1_800_000_000}
SLOTS: Json = {"format": 1, "a": SLOT, "b": {**SLOT, "version": "1.3.2", "sequence": 0}}
FAILED: Json = {
    "version": "1.4.1",
    "sequence": 15,
    "reason": "bcd 1.4.1 did not run before its deadline",
    "at": 1_800_000_000,
}
CONFIRMED: Json = {"version": "1.4.0", "sequence": 14, "at": 1_800_000_000, "swap_id": "0f" * 16}
UPDATE: Json = {"format": 1, "sequence": 14, "confirmed": CONFIRMED, "failed": [FAILED]}
PENDING: Json = {
    "format": 1,
    "state": "swapped",
    "swap_id": "0f" * 16,
    "from_version": "1.4.0",
    "to_version": "1.4.1",
    "from_slot": "a",
    "to_slot": "b",
    "sequence": 15,
    "command_id": None,
    "launched": False,
    "swapped_at": 1_800_000_000,
    "deadline": 1_800_000_120,
    "boot_id": "boot-1",
    "swapped_boottime": 5000.25,
}

KINDS: dict[str, tuple[Json, Callable[[str], Reading[Any]], Callable[[Any], bytes]]] = {
    "slots.json": (SLOTS, read_slots, dump_slots),
    "update.json": (UPDATE, read_update, dump_update),
    "upgrade.json": (PENDING, read_pending, dump_pending),
}


def read(kind: str, data: bytes, directory: Path) -> Reading[Any]:
    """Read a record of these bytes; reading changes nothing."""
    path = directory / kind
    path.write_bytes(data)
    with unchanged(directory):
        return KINDS[kind][1](str(path))


def good(kind: str, document: Json, directory: Path) -> Any:
    """Its value."""
    reading = read(kind, dump(document), directory)
    assert (reading.state, reading.why) == ("good", "")
    return reading.value


def corrupt(kind: str, data: bytes, directory: Path) -> str:
    """It is broken, which is not absent; says why."""
    reading = read(kind, data, directory)
    assert (reading.state, reading.value) == ("corrupt", None)
    assert reading.why
    return reading.why


# Both ways ------------------------------------------------------------------------------------------------------------


def test_values_are_what_the_documents_say(tmp_path: Path) -> None:
    """Field by field, for all three."""
    slots = good("slots.json", SLOTS, tmp_path)
    assert slots == SlotsRecord(
        SlotRecord("1.4.0", 14, "ab" * 32, 1000, 1_800_000_000), SlotRecord("1.3.2", 0, "ab" * 32, 1000, 1_800_000_000)
    )
    assert (slots.of("a"), slots.of("b")) == (slots.a, slots.b)
    assert good("update.json", UPDATE, tmp_path) == UpdateRecord(
        14, Confirmed("1.4.0", 14, 1_800_000_000, "0f" * 16), (Failed(*FAILED.values()),)
    )
    assert good("upgrade.json", PENDING, tmp_path) == PendingRecord(
        swap_id="0f" * 16,
        from_version="1.4.0",
        to_version="1.4.1",
        from_slot="a",
        to_slot="b",
        sequence=15,
        command_id=None,
        launched=False,
        swapped_at=1_800_000_000,
        deadline=1_800_000_120,
        boot_id="boot-1",
        swapped_boottime=5000.25,
    )


OPTIONAL = {"refused": None, "way": None, "said": None}
"""What the pending record may have beside the rules' fields."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_read_and_written_is_the_same_record(kind: str, tmp_path: Path) -> None:
    """Document to value to document."""
    document, _, write = KINDS[kind]
    again = json.loads(write(good(kind, document, tmp_path)))
    assert {**again, **OPTIONAL} == {**document, **OPTIONAL}


TEXT = st.text(st.characters(exclude_categories=[]), max_size=12) | st.text(
    '"\\{}state:swpd,\x00\x1b\u202e\ud800', max_size=16
)
NUMBER = st.integers(0, 2**53 - 1)
UNKNOWN = st.dictionaries(
    st.text(max_size=6).map(lambda name: f"x{name}"),
    st.recursive(
        st.none() | st.booleans() | st.integers() | TEXT,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
        max_leaves=5,
    ),
    max_size=2,
)
SLOT_RECORDS = st.none() | st.builds(
    SlotRecord,
    version=TEXT,
    sequence=NUMBER,
    sha256=TEXT,
    size=NUMBER,
    written_at=NUMBER,
    expires_at=st.none() | NUMBER,
    extra=UNKNOWN,
)
FAILED_RECORDS = st.builds(Failed, version=TEXT, sequence=NUMBER, reason=TEXT, at=NUMBER, extra=UNKNOWN)
UPDATE_RECORDS = st.builds(
    UpdateRecord,
    sequence=NUMBER,
    confirmed=st.none() | st.builds(Confirmed, version=TEXT, sequence=NUMBER, at=NUMBER, swap_id=TEXT, extra=UNKNOWN),
    failed=st.lists(FAILED_RECORDS, max_size=3).map(tuple),
    extra=UNKNOWN,
)
PENDING_RECORDS = st.builds(
    PendingRecord,
    swap_id=TEXT,
    from_version=TEXT,
    to_version=TEXT,
    from_slot=st.just("a"),
    to_slot=st.just("b"),
    sequence=NUMBER,
    command_id=st.none() | TEXT,
    launched=st.booleans(),
    swapped_at=NUMBER,
    deadline=NUMBER,
    boot_id=TEXT,
    swapped_boottime=st.floats(0, 2**53 - 1),
    refused=st.none() | TEXT,
    way=st.none() | TEXT,
    said=st.none() | TEXT,
    extra=UNKNOWN,
)


def plain(value: Any) -> Any:
    """The same with every text as it was read, not as it is shown."""
    if isinstance(value, str):
        return raw(value)
    if hasattr(value, "_fields"):
        return type(value)(*map(plain, value))
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value))
    return {plain(key): plain(item) for key, item in value.items()} if isinstance(value, dict) else value


@given(st.builds(SlotsRecord, a=SLOT_RECORDS, b=SLOT_RECORDS, extra=UNKNOWN))
@settings(max_examples=50)
def test_slots_survive_their_bytes(record: SlotsRecord) -> None:
    """Whatever their texts hold, and with their unknown fields."""
    assert plain(parse_slots(json.loads(dump_slots(record)))) == record


@given(UPDATE_RECORDS)
@settings(max_examples=50)
def test_an_update_record_survives_its_bytes(record: UpdateRecord) -> None:
    """The same, down to each failed version's own unknown fields."""
    assert plain(parse_update(json.loads(dump_update(record)))) == record


@given(PENDING_RECORDS)
@settings(max_examples=100)
def test_a_pending_record_survives_its_bytes(record: PendingRecord) -> None:
    """The same."""
    assert plain(parse_pending(json.loads(dump_pending(record)))) == record


@given(PENDING_RECORDS)
@settings(max_examples=100)
def test_a_pending_record_says_that_it_is_swapped_whatever_else_it_says(record: PendingRecord) -> None:
    """The rollback script looks for this very text, and no text from outside can forge or hide it, nor the slot's name."""
    data = dump_pending(record._replace(extra={}))
    assert data.isascii()
    assert data.count(b"\n") == 1
    assert data.count(b'"state":"swapped"') == 1
    assert data.count(b'"from_slot":"a"') == 1
    assert b'"from_slot":"b"' not in data


@given(PENDING_RECORDS, UPDATE_RECORDS)
@settings(max_examples=40)
def test_what_is_read_and_written_again_is_the_same_bytes(pending: PendingRecord, update: UpdateRecord) -> None:
    """A text that is shown cleaned is kept as it was."""
    data = dump_pending(pending)
    assert dump_pending(parse_pending(json.loads(data))) == data
    data = dump_update(update)
    assert dump_update(parse_update(json.loads(data))) == data


# What an older or a newer bcd wrote -----------------------------------------------------------------------------------

NESTED = {"new": [1, {"deep": [None, True, "\x1b", 1.5]}]}


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_fields_are_kept_at_every_depth(kind: str, tmp_path: Path) -> None:
    """A newer bcd loses nothing when an older one wrote in between (field report 12)."""
    document = json.loads(json.dumps(KINDS[kind][0]))
    document["x"] = NESTED
    for inside in ("a", "b"):
        if inside in document:
            document[inside]["x"] = NESTED
    for entry in document.get("failed", []):
        entry["x"] = NESTED
    again = json.loads(KINDS[kind][2](good(kind, document, tmp_path)))
    assert {**again, **OPTIONAL} == {**document, **OPTIONAL}


def test_unknown_fields_of_what_was_confirmed_are_kept(tmp_path: Path) -> None:
    """Of that, too: it is read by the next settle, and rewritten with each failure."""
    document = {**UPDATE, "confirmed": {**CONFIRMED, "gateway": NESTED}}
    assert json.loads(dump_update(good("update.json", document, tmp_path)))["confirmed"] == document["confirmed"]


def test_unknown_fields_survive_what_this_bcd_changes(tmp_path: Path) -> None:
    """A slot that is rewritten, a failure that is added, a swap that is launched."""
    slots = good("slots.json", {**SLOTS, "x": NESTED}, tmp_path).having("b", None)
    update = good("update.json", {**UPDATE, "x": NESTED}, tmp_path).with_failed(Failed("1.5.0", 16, "x", 1))
    pending = good("upgrade.json", {**PENDING, "x": NESTED}, tmp_path)._replace(launched=True)
    for data in (dump_slots(slots), dump_update(update), dump_pending(pending)):
        assert json.loads(data)["x"] == NESTED


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [2, 99, "2.0", None, [1]])
def test_a_newer_format_is_read_for_what_is_known(kind: str, number: object, tmp_path: Path) -> None:
    """By its fields; the number alone stops nobody."""
    document = KINDS[kind][0]
    assert good(kind, {**document, "format": number}, tmp_path) == good(kind, document, tmp_path)
    without = {name: value for name, value in document.items() if name != "format"}
    assert good(kind, without, tmp_path) == good(kind, document, tmp_path)


def test_what_an_older_bcd_left_out_is_absent(tmp_path: Path) -> None:
    """A slot without a record, nothing confirmed, nothing failed, nothing launched."""
    assert good("slots.json", {}, tmp_path) == SlotsRecord()
    assert good("slots.json", {"a": None, "b": SLOT}, tmp_path).a is None
    assert good("update.json", {"sequence": 3}, tmp_path) == UpdateRecord(3)
    document = {name: value for name, value in PENDING.items() if name not in {"launched", "command_id"}}
    assert good("upgrade.json", document, tmp_path) == good("upgrade.json", PENDING, tmp_path)


def test_texts_from_a_record_are_clean_and_keep_their_value(tmp_path: Path) -> None:
    """A reason that would act on a terminal does not, from the moment it is read (C06)."""
    attack = "\x1b]52;c;eA==\x07\u202e"
    update = good("update.json", {**UPDATE, "failed": [{**FAILED, "reason": attack, "version": attack}]}, tmp_path)
    pending = good("upgrade.json", {**PENDING, "refused": attack, "said": attack, "to_version": attack}, tmp_path)
    slots = good("slots.json", {"a": {**SLOT, "version": attack}}, tmp_path)
    texts = [
        update.failed[0].reason,
        update.failed[0].version,
        pending.refused,
        pending.said,
        pending.to_version,
        slots.a.version,
    ]
    assert all(text.isprintable() for text in texts)
    assert [raw(text) for text in texts] == [attack] * len(texts)


# What a crash or a hand left ------------------------------------------------------------------------------------------

BROKEN: dict[str, bytes] = {
    "empty": b"",
    "one NUL": b"\0",
    "NUL bytes": b"\0" * 4096,
    "NUL bytes and a newline": b"\0" * 100 + b"\n",
    "blank": b" \n",
    "asd": b"{asd",
    "null": b"null",
    "list": b"[]",
    "text": b'"swapped"',
    "number": b"1",
    "true": b"true",
    "no UTF-8": b'{"sequence": "\xff"}',
    "garbage": b"\x7fELF\x02\x01\x01",
    "deep": b"[" * 100_000,
    "deep in a field": b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "5000 digits": b'{"sequence":' + b"1" * 5000 + b"}",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_bytes_that_are_no_record_are_corrupt(kind: str, data: bytes, tmp_path: Path) -> None:
    """Never absent, never an error that stops the start (field report 01)."""
    corrupt(kind, data, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_that_is_cut_off_anywhere_is_corrupt(kind: str, tmp_path: Path) -> None:
    """After each of its bytes; and with its rest as NUL, as some file systems leave it."""
    data = dump(KINDS[kind][0]).rstrip()
    path = tmp_path / kind
    for length in range(len(data)):
        for left in (data[:length], data[:length] + b"\0" * (len(data) - length)):
            path.write_bytes(left)
            assert KINDS[kind][1](str(path)).state == "corrupt"


def test_a_record_of_nothing_but_nul_bytes_says_so(tmp_path: Path) -> None:
    """The words tell a crash from a hand."""
    assert corrupt("update.json", b"", tmp_path) == "it is empty"
    assert "NUL" in corrupt("update.json", b"\0" * 10, tmp_path)
    assert "no JSON object" in corrupt("update.json", b"[]", tmp_path)
    assert "does not parse" in corrupt("update.json", b"{asd", tmp_path)


def test_a_record_larger_than_any_is_corrupt(tmp_path: Path) -> None:
    """A mebibyte is read; more is not, however well formed."""
    data = dump(UPDATE)
    assert read("update.json", data + b" " * (1_048_576 - len(data)), tmp_path).state == "good"
    assert "larger" in corrupt("update.json", data + b" " * (1_048_577 - len(data)), tmp_path)


Where = tuple[str | int, ...]
INTEGERS: list[object] = [None, True, False, -1, 2**53, 1.0, 1.5, "1", [], {}]
TEXTS: list[object] = [None, True, 0, 1.5, [], {}, ["1.4.0"]]
SLOT_NAMES: list[object] = [None, True, "", "A", "c", "bcd-a", ["a"], 0]
WRONG: list[tuple[str, Where, list[object]]] = [
    ("slots.json", ("a",), [True, 0, "x", [], "1.4.0"]),
    *[("slots.json", ("b", name), INTEGERS) for name in ("sequence", "size", "written_at")],
    *[("slots.json", ("a", name), TEXTS) for name in ("version", "sha256")],
    ("update.json", ("sequence",), INTEGERS),
    ("update.json", ("confirmed",), [True, 0, "x", []]),
    *[("update.json", ("confirmed", name), INTEGERS) for name in ("sequence", "at")],
    *[("update.json", ("confirmed", name), TEXTS) for name in ("version", "swap_id")],
    ("update.json", ("failed",), [None, True, 0, "x", {}, [None], [[]], ["x"]]),
    *[("update.json", ("failed", 0, name), INTEGERS) for name in ("sequence", "at")],
    *[("update.json", ("failed", 0, name), TEXTS) for name in ("version", "reason")],
    ("upgrade.json", ("state",), [None, True, "", "Swapped", "swapped ", "confirmed", ["swapped"], {}]),
    *[("upgrade.json", (name,), INTEGERS) for name in ("sequence", "swapped_at", "deadline")],
    *[("upgrade.json", (name,), TEXTS) for name in ("swap_id", "from_version", "to_version", "boot_id")],
    *[("upgrade.json", (name,), TEXTS[1:]) for name in ("command_id", "refused", "way", "said")],
    *[("upgrade.json", (name,), SLOT_NAMES) for name in ("from_slot", "to_slot")],
    ("upgrade.json", ("launched",), [None, 0, 1, "false", []]),
    (
        "upgrade.json",
        ("swapped_boottime",),
        [None, True, "5000", [], -0.5, -1, float("nan"), float("inf"), float("-inf"), 1e300, 10**400],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "path", "values"),
    [pytest.param(kind, path, values, id=f"{kind}-{'.'.join(map(str, path))}") for kind, path, values in WRONG],
)
def test_a_field_of_another_type_makes_a_record_corrupt(
    kind: str, path: Where, values: list[object], tmp_path: Path
) -> None:
    """true is no 1, NaN is no time, and no value of any size ends in an error."""
    document = json.loads(json.dumps(KINDS[kind][0]))
    inside = document
    for step in path[:-1]:
        inside = inside[step]
    for value in values:
        inside[path[-1]] = value
        assert "does not parse" in corrupt(kind, dump(document), tmp_path)


REQUIRED: dict[str, list[Where]] = {
    "slots.json": [("a", name) for name in SLOT],
    "update.json": [
        ("sequence",),
        *(("confirmed", name) for name in CONFIRMED),
        *(("failed", 0, name) for name in FAILED),
    ],
    "upgrade.json": [(name,) for name in PENDING if name not in {"format", "command_id", "launched"}],
}


@pytest.mark.parametrize(
    ("kind", "path"), [(kind, path) for kind, found in REQUIRED.items() for path in found], ids=str
)
def test_a_field_that_is_missing_makes_a_record_corrupt(kind: str, path: Where, tmp_path: Path) -> None:
    """What decides is never guessed."""
    document = json.loads(json.dumps(KINDS[kind][0]))
    inside = document
    for step in path[:-1]:
        inside = inside[step]
    del inside[path[-1]]
    corrupt(kind, dump(document), tmp_path)


@pytest.mark.parametrize("slot", ["a", "b"])
def test_a_swap_from_a_slot_to_itself_is_corrupt(slot: str, tmp_path: Path) -> None:
    """Both sides of every row would fit it."""
    assert "are one" in corrupt("upgrade.json", dump({**PENDING, "from_slot": slot, "to_slot": slot}), tmp_path)


@pytest.mark.parametrize("whole", [0, 5000, 2**53 - 1])
def test_a_boot_time_may_be_whole(whole: int, tmp_path: Path) -> None:
    """Another writer may leave the point out."""
    assert good("upgrade.json", {**PENDING, "swapped_boottime": whole}, tmp_path).swapped_boottime == float(whole)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from([*UPDATE, *PENDING, *SLOT, "a", "b"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {}, optional={name: st.just(value) | JSON for name, value in {**SLOTS, **UPDATE, **PENDING}.items()}
    )
)
@settings(max_examples=150)
def test_no_document_ends_in_another_error(document: Json) -> None:
    """It is a record, which can be written again, or it is a ValueError."""
    text = json.loads(json.dumps(document))
    for parse, write in ((parse_slots, dump_slots), (parse_update, dump_update), (parse_pending, dump_pending)):
        try:
            value: Any = parse(text)
        except ValueError:
            continue
        assert parse(json.loads(write(value))) == value
