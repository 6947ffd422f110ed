"""The one read-only state that `bcd update`, doctor and the console show (spec/product.md section 2).

Read whole at one instant: again when a record or a link changed in between. Reading never writes, never creates,
takes no lock, and works as any user on what that user may read; what may not be read is said as that, not as absent.
"""

import os
import time
from typing import NamedTuple

from bcd.core.build import Build
from bcd.core.clock import Clock
from bcd.core.config import Config
from bcd.core.deadline import Left, time_left
from bcd.core.floor import release_floor
from bcd.core.layout import Layout, layout_of
from bcd.core.links import CURRENT, PREVIOUS, SLOTS, Link, Slot, other_slot, read_link
from bcd.core.records import (
    PendingRecord,
    Reading,
    SlotRecord,
    SlotsRecord,
    UpdateRecord,
    read_pending,
    read_slots,
    read_update,
)

_TRIES = 5
_NO_LINK = Link(None, None, present=False)


class Problem(NamedTuple):
    """Something that could not be read as it should be."""

    what: str
    """The path."""
    state: str
    """`unreadable` or `corrupt`."""
    why: str


class Status(NamedTuple):
    """One node's update state at one instant."""

    build: Build
    config: Config
    layout: Layout
    current: Link
    previous: Link
    slots: Reading[SlotsRecord]
    update: Reading[UpdateRecord]
    pending: Reading[PendingRecord]
    left: Left | None
    """What is left for the pending release; None where none is pending."""
    problems: tuple[Problem, ...]
    aside: tuple[str, ...]
    """Broken records that were moved aside, by path."""

    @property
    def version(self) -> str:
        """The version that runs from the current slot; this build's where the slots are not in use."""
        record = self.record(self.current.slot)
        return self.build.version if record is None else record.version

    @property
    def floor(self) -> int:
        """The release floor. A release that waits for its welcome raises nothing yet, and what ran before it still counts."""
        configured = self.config.update.release_sequence
        return release_floor(self.update.value, self.slots.value, configured, max(self._built_in()))

    @property
    def floor_known(self) -> bool:
        """Whether `floor` is all of it.

        Without `update.json` the slots' records are evidence, where they can be read. While a first release waits, the
        binary that it took over from may be one whose sequence nothing tells.
        """
        if not any(self._built_in()) and self.pending.value is not None and not self.floor:
            return False
        never_updated = self.slots.state == "absent" and not self.current.present
        return self.update.state == "good" or (
            self.update.state == "absent" and (self.slots.state == "good" or never_updated)
        )

    @property
    def floor_words(self) -> str:
        """The floor as it is said: `14`, or `at least 14`."""
        return str(self.floor) if self.floor_known else f"at least {self.floor}"

    def _built_in(self) -> tuple[int, int]:
        """The sequences that are built into what runs, and what ran until a release that waits took over; 0 unknown."""
        own, pending = self.build.sequence, self.pending.value
        if pending is None:
            return own, 0
        before = self.record(pending.from_slot)
        # The build that looks may be the one that waits.
        return 0 if own == pending.sequence else own, 0 if before is None else before.sequence

    def record(self, slot: Slot | None) -> SlotRecord | None:
        """A slot's record; None where there is none or it could not be read."""
        return None if slot is None or self.slots.value is None else self.slots.value.of(slot)


def read_status(config: Config, build: Build, clock: Clock) -> Status:
    """Read a node's state."""
    layout = layout_of(config)
    tries = _TRIES
    while True:
        before = _identities(layout)
        status = _read(config, build, clock, layout)
        tries -= 1
        if tries == 0 or before == _identities(layout):
            return status
        time.sleep(0.005)


def _read(config: Config, build: Build, clock: Clock, layout: Layout) -> Status:
    problems: list[Problem] = []
    slots = read_slots(layout.slots_record)
    update = read_update(layout.update_record)
    pending = read_pending(layout.pending_record)
    for path, reading in (
        (layout.slots_record, slots),
        (layout.update_record, update),
        (layout.pending_record, pending),
    ):
        if reading.state in ("corrupt", "unreadable"):
            problems.append(Problem(path, reading.state, reading.why))
    links = []
    for name in (CURRENT, PREVIOUS):
        try:
            links.append(read_link(layout.slots_dir, name))
        except OSError as error:
            links.append(_NO_LINK)
            problems.append(Problem(os.path.join(layout.slots_dir, name), "unreadable", error.strerror or "unreadable"))
    left = None if pending.value is None else time_left(pending.value, clock)
    return Status(
        build, config, layout, links[0], links[1], slots, update, pending, left, tuple(problems), _aside(layout)
    )


def _identities(layout: Layout) -> tuple[tuple[int, int] | None, ...]:
    found: list[tuple[int, int] | None] = []
    previous = os.path.join(layout.slots_dir, PREVIOUS)
    for path in (layout.slots_record, layout.update_record, layout.pending_record, layout.current, previous):
        try:
            stat = os.lstat(path)
            found.append((stat.st_ino, stat.st_mtime_ns))
        except OSError:
            found.append(None)
    return tuple(found)


def _aside(layout: Layout) -> tuple[str, ...]:
    found = []
    for directory in sorted({layout.slots_dir, layout.records_dir}):
        try:
            names = os.listdir(directory)
        except OSError:
            continue
        found += [os.path.join(directory, name) for name in sorted(names) if ".json.corrupt-" in name]
    return tuple(found)


def status_lines(status: Status, agent: dict[str, object] | None = None) -> list[str]:
    """The state as `bcd update` says it on a plain stream, one line each."""
    return (
        [_version_line(status), _slots_line(status), *_pending_lines(status, agent), *_failed_lines(status)]
        + [f"{problem.state}: {problem.what} ({problem.why})" for problem in status.problems]
        + [f"corrupt: a broken record was moved aside to {path}; look at it (bcd doctor)" for path in status.aside]
    )


def _version_line(status: Status) -> str:
    pins = status.config.update.release_pins
    floor = status.floor_words
    if not pins:
        return f"version {status.version}, release floor {floor}, no release pins (updates are off)"
    noun = "release pin" if len(pins) == 1 else "release pins"
    threshold = status.config.update.release_threshold
    return f"version {status.version}, release floor {floor}, {len(pins)} {noun} (threshold {threshold})"


def _slots_line(status: Status) -> str:
    current = status.current
    if current.slot is not None:
        other = other_slot(current.slot)
        held = {slot: _held(status, slot) for slot in SLOTS}
        return f"slots: current {current.slot} ({held[current.slot]}), other {other} ({held[other]})"
    unreadable = any(p.state == "unreadable" and p.what.startswith(status.layout.slots_dir) for p in status.problems)
    if unreadable:
        return "slots: could not be read"
    if current.present:
        return f"slots: {status.layout.current} names no slot"
    if status.slots.state != "absent":
        return f"slots: {status.layout.current} is missing"
    return "slots: not in use yet (the first update adopts the entrypoint)"


def _held(status: Status, slot: Slot) -> str:
    record = status.record(slot)
    if record is not None:
        return record.version
    return "unknown" if status.slots.value is None or slot == status.current.slot else "empty"


def _pending_lines(status: Status, agent: dict[str, object] | None) -> list[str]:
    lines = []
    pending, left = status.pending.value, status.left
    if pending is not None and left is not None:
        where = f"pending: {pending.to_version} in slot {pending.to_slot}"
        if status.current.slot != pending.to_slot:
            lines.append(f"{where}, but current is {status.current.slot or 'lost'}: settled at the next start of bcd")
        elif left.seconds > 0:
            lines.append(f"{where}, {int(left.seconds)} s left to be welcomed")
        else:
            lines.append(f"{where}, overdue by {int(-left.seconds)} s, not yet rolled back")
    if agent is not None and agent.get("phase") == "downloading":
        done, total, rate = (agent.get(key) for key in ("bytes_done", "bytes_total", "rate"))
        if isinstance(done, int) and isinstance(total, int) and isinstance(rate, int | float) and total > 0:
            lines.append(
                f"downloading: {agent.get('target')}, {_mib(done)} of {_mib(total)} MiB ({100 * done // total} %), "
                f"{_mib(rate)} MiB/s"
            )
    return lines


def _mib(count: float) -> str:
    return f"{count / (1024 * 1024):.1f}"


def _failed_lines(status: Status) -> list[str]:
    update = status.update.value
    return [] if update is None else [f"failed: {failed.version} ({failed.reason})" for failed in update.failed]
