"""`bcd update --json`: the whole Status as JSON's values. The TypedDicts give its published schema (docs/reference).

Text from outside stands here as it was read; JSON escapes it.
"""

from typing import Any, TypedDict

from bcd.core.deadline import Left
from bcd.core.links import SLOTS
from bcd.core.records import PendingRecord, SlotRecord
from bcd.core.status import Status
from bcd.core.text import raw

FORMAT = 1


class SlotJson(TypedDict):
    """One slot in `bcd update --json`."""

    version: str
    sequence: int
    sha256: str
    size: int
    written_at: int
    expires_at: int | None
    """Of the manifest that it was staged by; null where that is unknown."""


class FailedJson(TypedDict):
    """One failed version."""

    version: str
    sequence: int
    reason: str
    at: int


class PendingJson(TypedDict):
    """The pending update."""

    version: str
    sequence: int
    slot: str
    from_version: str
    from_slot: str
    swap_id: str
    command_id: str | None
    launched: bool
    swapped_at: int
    deadline: int
    seconds_left: float
    refused: str | None


class ConfirmedJson(TypedDict):
    """The last confirmed release."""

    version: str
    sequence: int
    at: int


class PinsJson(TypedDict):
    """The release pins."""

    count: int
    threshold: int


class LinksJson(TypedDict):
    """Where the links point: a slot, or null."""

    current: str | None
    previous: str | None


class ProblemJson(TypedDict):
    """Something that could not be read."""

    path: str
    state: str
    why: str


class StatusJson(TypedDict):
    """`bcd update --json`."""

    format: int
    version: str
    build: dict[str, Any]
    floor: int
    floor_known: bool
    pins: PinsJson
    links: LinksJson
    slots: dict[str, SlotJson | None]
    confirmed: ConfirmedJson | None
    pending: PendingJson | None
    failed: list[FailedJson]
    problems: list[ProblemJson]
    corrupt_aside: list[str]
    paths: dict[str, str]
    agent: dict[str, Any] | None
    """The agent's live state, as its socket told it; null where no agent answered."""


def status_json(status: Status, agent: dict[str, object] | None = None) -> StatusJson:
    """The whole status as JSON's values; text from outside as it was read."""
    update = status.update.value
    confirmed = None if update is None else update.confirmed
    return {
        "format": FORMAT,
        "version": raw(status.version),
        "build": dict(status.build._asdict()),
        "floor": status.floor,
        "floor_known": status.floor_known,
        "pins": {
            "count": len(status.config.update.release_pins),
            "threshold": status.config.update.release_threshold,
        },
        "links": {"current": status.current.slot, "previous": status.previous.slot},
        "slots": {slot: _slot_json(status.record(slot)) for slot in SLOTS},
        "confirmed": None
        if confirmed is None
        else {"version": raw(confirmed.version), "sequence": confirmed.sequence, "at": confirmed.at},
        "pending": _pending_json(status.pending.value, status.left),
        "failed": []
        if update is None
        else [
            {"version": raw(f.version), "sequence": f.sequence, "reason": raw(f.reason), "at": f.at}
            for f in update.failed
        ],
        "problems": [{"path": p.what, "state": p.state, "why": p.why} for p in status.problems],
        "corrupt_aside": list(status.aside),
        "paths": {
            "config": status.config.path,
            "slots_dir": status.layout.slots_dir,
            "entrypoint": status.layout.entrypoint,
            "records_dir": status.layout.records_dir,
            "data_dir": status.layout.data_dir,
        },
        "agent": agent,
    }


def _slot_json(record: SlotRecord | None) -> SlotJson | None:
    if record is None:
        return None
    return {
        "version": raw(record.version),
        "sequence": record.sequence,
        "sha256": raw(record.sha256),
        "size": record.size,
        "written_at": record.written_at,
        "expires_at": record.expires_at,
    }


def _pending_json(pending: PendingRecord | None, left: Left | None) -> PendingJson | None:
    if pending is None or left is None:
        return None
    return {
        "version": raw(pending.to_version),
        "sequence": pending.sequence,
        "slot": pending.to_slot,
        "from_version": raw(pending.from_version),
        "from_slot": pending.from_slot,
        "swap_id": raw(pending.swap_id),
        "command_id": None if pending.command_id is None else raw(pending.command_id),
        "launched": pending.launched,
        "swapped_at": pending.swapped_at,
        "deadline": pending.deadline,
        "seconds_left": round(left.seconds, 1),
        "refused": None if pending.refused is None else raw(pending.refused),
    }
