"""The three records as values: what each field is, and how a file's bytes become one.

Reading is strict about what decides and lenient about what does not: unknown fields are kept for the rewrite, so a
newer bcd loses nothing when an older one wrote in between. A record that does not parse is `corrupt`, one that may
not be read is `unreadable`; neither is ever taken for absent (field reports 01, 24, 38). NamedTuples and the
standard library's json, because `bcd update` loads this (ADR 0002). spec/self-update.md section 5.
"""

import errno
import json
import os
import stat
from collections.abc import Callable
from typing import Generic, Literal, NamedTuple, TypeVar

from bcd.core.links import SLOTS, Slot
from bcd.core.strict import MAX_INTEGER
from bcd.core.text import Foreign, raw

FORMAT = 1
FAILED_LIMIT = 32
RECORD_LIMIT_BYTES = 1_048_576
_NO_FILE = (errno.ELOOP, errno.ENXIO, errno.ENODEV)
Json = dict[str, object]

_NOTHING: Json = {}
"""No unknown fields; shared, and never changed."""


class SlotRecord(NamedTuple):
    """What a slot's file is."""

    version: str
    sequence: int
    """The manifest's; 0 unknown (the adopted install)."""
    sha256: str
    size: int
    """Bytes."""
    written_at: int
    """Unix seconds."""
    expires_at: int | None = None
    """When the manifest that it was staged by expires, Unix seconds; None unknown (adopted, or staged by an older bcd).

    Only shown: nothing that a node holds stops running by it."""
    extra: Json = _NOTHING


_SLOT_FIELDS_THAT_DECIDE = tuple(name for name in SlotRecord._fields if name != "expires_at")


class SlotsRecord(NamedTuple):
    """`slots.json`."""

    a: SlotRecord | None = None
    b: SlotRecord | None = None
    extra: Json = _NOTHING

    def of(self, slot: Slot) -> SlotRecord | None:
        """The record of a slot, None where there is none."""
        return self.a if slot == "a" else self.b

    def having(self, slot: Slot, record: SlotRecord | None) -> "SlotsRecord":
        """The same with another record for one slot."""
        return self._replace(a=record) if slot == "a" else self._replace(b=record)


class Confirmed(NamedTuple):
    """The last release that a gateway welcomed."""

    version: str
    sequence: int
    at: int
    """Unix seconds."""
    swap_id: str
    extra: Json = _NOTHING


class Failed(NamedTuple):
    """A version that failed here."""

    version: str
    sequence: int
    reason: str
    at: int
    """Unix seconds."""
    extra: Json = _NOTHING


class UpdateRecord(NamedTuple):
    """`update.json`."""

    sequence: int = 0
    """The floor."""
    confirmed: Confirmed | None = None
    failed: tuple[Failed, ...] = ()
    """Oldest first."""
    extra: Json = _NOTHING

    @property
    def confirmed_swap(self) -> str | None:
        """The swap that a gateway welcomed last."""
        return None if self.confirmed is None else self.confirmed.swap_id

    def with_failed(self, entry: Failed) -> "UpdateRecord":
        """The same with `entry` last, in place of an older one of its version; the oldest past 32 dropped."""
        kept = tuple(failed for failed in self.failed if raw(failed.version) != raw(entry.version))
        return self._replace(failed=(*kept, entry)[-FAILED_LIMIT:])


class PendingRecord(NamedTuple):
    """`upgrade.json`: a swap that is not settled."""

    swap_id: str
    from_version: str
    to_version: str
    from_slot: Slot
    to_slot: Slot
    sequence: int
    command_id: str | None
    launched: bool
    """Whether the new binary was ever seen to start."""
    swapped_at: int
    """Unix seconds."""
    deadline: int
    """Unix seconds."""
    boot_id: str
    swapped_boottime: float
    """CLOCK_BOOTTIME seconds."""
    refused: str | None = None
    """What the last gateway said that answered and refused; None where none answered."""
    way: str | None = None
    """How bcd itself went back: `deadline`, `late-start`, `exec` or `restored`. The crash loop's script writes nothing."""
    said: str | None = None
    """The error of a failed exec."""
    extra: Json = _NOTHING


T = TypeVar("T")

State = Literal["absent", "good", "corrupt", "unreadable"]


class Reading(NamedTuple, Generic[T]):
    """What a record's file gave."""

    state: State
    value: T | None
    """Only where the state is `good`."""
    why: str
    """A few words where it is `corrupt` or `unreadable`."""


def read_slots(path: str) -> Reading[SlotsRecord]:
    """Read `slots.json`."""
    return _read(path, parse_slots)


def read_update(path: str) -> Reading[UpdateRecord]:
    """Read `update.json`."""
    return _read(path, parse_update)


def read_pending(path: str) -> Reading[PendingRecord]:
    """Read `upgrade.json`."""
    return _read(path, parse_pending)


def _read(path: str, parse: Callable[[Json], T]) -> Reading[T]:
    try:
        # O_NONBLOCK: a FIFO in a record's place must not hang who looks.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return Reading("absent", None, "")
    except PermissionError:
        return Reading("unreadable", None, "this user may not read it")
    except OSError as error:
        # Only a link, a socket or a device is broken. A good record is not, for want of descriptors or memory.
        state: State = "corrupt" if error.errno in _NO_FILE else "unreadable"
        return Reading(state, None, error.strerror or "it could not be opened")
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return Reading("corrupt", None, "it is no regular file")
        data = os.read(handle, RECORD_LIMIT_BYTES + 1)
    except OSError as error:
        return Reading("unreadable", None, error.strerror or "it could not be read")
    finally:
        os.close(handle)
    if len(data) > RECORD_LIMIT_BYTES:
        return Reading("corrupt", None, "it is larger than any record")
    if not data.strip(b"\0 \n"):
        return Reading("corrupt", None, "it is empty" if not data else "it holds nothing but NUL bytes")
    try:
        document = json.loads(data)
        if not isinstance(document, dict):
            return Reading("corrupt", None, "it is no JSON object")
        return Reading("good", parse(document), "")
    except (ValueError, RecursionError) as error:
        return Reading("corrupt", None, f"it does not parse: {error}")


def parse_slots(document: Json) -> SlotsRecord:
    """Read `slots.json`'s object. Raises ValueError."""
    slots: dict[str, SlotRecord | None] = {}
    for slot in SLOTS:
        value = document.get(slot)
        slots[slot] = None if value is None else _slot(_mapping(value, slot))
    return SlotsRecord(slots["a"], slots["b"], _others(document, ("format", *SLOTS)))


def _slot(value: Json) -> SlotRecord:
    # It decides nothing, so one that makes no sense breaks no record: it is kept as an unknown field is.
    told = value.get("expires_at")
    expires = told if type(told) is int and 0 <= told <= MAX_INTEGER else None
    return SlotRecord(
        _text(value, "version"),
        _integer(value, "sequence"),
        _text(value, "sha256"),
        _integer(value, "size"),
        _integer(value, "written_at"),
        expires,
        _others(value, SlotRecord._fields if expires is not None else _SLOT_FIELDS_THAT_DECIDE),
    )


def parse_update(document: Json) -> UpdateRecord:
    """Read `update.json`'s object. Raises ValueError."""
    confirmed = document.get("confirmed")
    failed = document.get("failed", [])
    if not isinstance(failed, list):
        raise ValueError("failed is no list")
    entries = [_mapping(entry, "failed") for entry in failed]
    return UpdateRecord(
        _integer(document, "sequence"),
        None if confirmed is None else _confirmed(_mapping(confirmed, "confirmed")),
        tuple(
            Failed(
                _text(entry, "version"),
                _integer(entry, "sequence"),
                _text(entry, "reason"),
                _integer(entry, "at"),
                _others(entry, Failed._fields),
            )
            for entry in entries
        ),
        _others(document, ("format", *UpdateRecord._fields)),
    )


def _confirmed(value: Json) -> Confirmed:
    return Confirmed(
        _text(value, "version"),
        _integer(value, "sequence"),
        _integer(value, "at"),
        _text(value, "swap_id"),
        _others(value, Confirmed._fields),
    )


def parse_pending(document: Json) -> PendingRecord:
    """Read `upgrade.json`'s object. Raises ValueError."""
    if document.get("state") != "swapped":
        raise ValueError("state is not swapped")
    from_slot, to_slot = _slot_name(document, "from_slot"), _slot_name(document, "to_slot")
    if from_slot == to_slot:
        raise ValueError("from_slot and to_slot are one")
    launched = document.get("launched", False)
    boottime = document.get("swapped_boottime")
    if not isinstance(launched, bool) or isinstance(boottime, bool) or not isinstance(boottime, int | float):
        raise ValueError("launched or swapped_boottime is mistyped")
    # NaN fails this too; and float() of an integer of 400 digits is an OverflowError.
    if not 0 <= boottime <= MAX_INTEGER:
        raise ValueError("swapped_boottime is no time since boot")
    return PendingRecord(
        swap_id=_text(document, "swap_id"),
        from_version=_text(document, "from_version"),
        to_version=_text(document, "to_version"),
        from_slot=from_slot,
        to_slot=to_slot,
        sequence=_integer(document, "sequence"),
        command_id=_optional_text(document, "command_id"),
        launched=launched,
        swapped_at=_integer(document, "swapped_at"),
        deadline=_integer(document, "deadline"),
        boot_id=_text(document, "boot_id"),
        swapped_boottime=float(boottime),
        refused=_optional_text(document, "refused"),
        way=_optional_text(document, "way"),
        said=_optional_text(document, "said"),
        extra=_others(document, ("format", "state", *PendingRecord._fields)),
    )


def dump_slots(record: SlotsRecord) -> bytes:
    """The bytes of `slots.json`."""
    document: Json = {**record.extra, "format": FORMAT}
    for slot in SLOTS:
        entry = record.of(slot)
        document[slot] = None if entry is None else _plain(entry)
    return dump(document)


def dump_update(record: UpdateRecord) -> bytes:
    """The bytes of `update.json`."""
    return dump(
        {
            **record.extra,
            "format": FORMAT,
            "sequence": record.sequence,
            "confirmed": None if record.confirmed is None else _plain(record.confirmed),
            "failed": [_plain(entry) for entry in record.failed],
        }
    )


def dump_pending(record: PendingRecord) -> bytes:
    """The bytes of `upgrade.json`."""
    return dump({"format": FORMAT, "state": "swapped", **_plain(record)})


def dump(document: object) -> bytes:
    """Compact ASCII JSON and a newline: the rollback script looks for `"state":"swapped"` with no space in it."""
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def _plain(value: SlotRecord | Confirmed | Failed | PendingRecord) -> Json:
    document: Json = dict(getattr(value, "extra", {}))
    for name, item in value._asdict().items():
        if name == "expires_at" and item is None:
            continue  # unknown: absent, as in what an older bcd writes
        if name != "extra":
            document[name] = raw(item) if isinstance(item, str) else item
    return document


def _others(document: Json, known: tuple[str, ...]) -> Json:
    return {key: value for key, value in document.items() if key not in known}


def _mapping(value: object, where: str) -> Json:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is no object")
    return value


def _text(document: Json, key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key} is no text")
    return Foreign(value)


def _optional_text(document: Json, key: str) -> str | None:
    return None if document.get(key) is None else _text(document, key)


def _integer(document: Json, key: str) -> int:
    value = document.get(key)
    if type(value) is not int or not 0 <= value <= MAX_INTEGER:
        raise ValueError(f"{key} is no integer from 0 to 2^53-1")
    return value


def _slot_name(document: Json, key: str) -> Slot:
    value = document.get(key)
    for slot in SLOTS:
        if value == slot:
            return slot
    raise ValueError(f"{key} names no slot")
