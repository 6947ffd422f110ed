"""What is asked of the disk without changing it: by the manager, and by a node whose manager is the helper.

The node's user may read root's records and move none: so nothing here writes, takes the lock or keeps a broken record
aside. A broken record says nothing, one that can't be read is an error.
"""

import os

from bcd.core.clock import Clock
from bcd.core.deadline import Left, time_left
from bcd.core.durable import as_host_error
from bcd.core.errors import HostError
from bcd.core.layout import Layout
from bcd.core.links import CURRENT, Slot, read_link
from bcd.core.records import Failed, PendingRecord, Reading, T, read_pending, read_slots, read_update
from bcd.core.text import raw


class Look:
    """One node's pending release, its clock, and what failed."""

    def __init__(self, layout: Layout, clock: Clock) -> None:
        self._layout = layout
        self._clock = clock
        self._armed: tuple[str, float] | None = None
        """A swap, and the end of what it was given at the first look, CLOCK_BOOTTIME seconds."""

    def pending(self) -> PendingRecord | None:
        """The swap that is not settled; None where there is none, or its record is broken.

        Raises:
            HostError: `io-error`, it may not or can't be read.
        """
        return _value(self._layout.pending_record, read_pending(self._layout.pending_record))

    def current_version(self) -> str | None:
        """The version in the current slot, by its record; None where there is no such slot or record.

        Raises:
            HostError: `io-error`, it may not or can't be read.
        """
        current = self._current()
        slots = _value(self._layout.slots_record, read_slots(self._layout.slots_record))
        record = None if slots is None or current is None else slots.of(current)
        return None if record is None else raw(record.version)

    def failed(self) -> dict[str, Failed]:
        """What failed here, by version.

        Raises:
            HostError: `io-error`, it may not or can't be read.
        """
        update = _value(self._layout.update_record, read_update(self._layout.update_record))
        return {} if update is None else {raw(failed.version): failed for failed in update.failed}

    def time_left(self) -> Left | None:
        """What is left for the pending release to be welcomed; None where none is pending.

        Never more than there was at the first look of this process: across boots, a wall clock that stays in the past
        gives 120 s at each look, for ever.

        Raises:
            HostError: `io-error`, as `pending`.
        """
        pending = self.pending()
        if pending is None:
            return None
        left, now = time_left(pending, self._clock), self._clock.boottime()
        if self._armed is None or self._armed[0] != pending.swap_id:
            self._armed = (pending.swap_id, now + left.seconds)
        return left._replace(seconds=min(left.seconds, self._armed[1] - now))

    def is_swapped(self) -> bool:
        """Whether `current` is the pending slot: what the entrypoint starts is what waits for its welcome.

        Raises:
            HostError: it can't be looked at.
        """
        pending = self.pending()
        return pending is not None and self._current() == pending.to_slot

    def went_back(self) -> bool:
        """Whether `current` was pointed back under the pending release that runs: by a rollback that raced its welcome, or by hand.

        Raises:
            HostError: it can't be looked at.
        """
        pending = self.pending()
        return pending is not None and self._current() == pending.from_slot

    def _current(self) -> Slot | None:
        with as_host_error("look at the current slot"):
            return read_link(self._layout.slots_dir, CURRENT).slot

    def fingerprint(self) -> tuple[object, ...]:
        """Changes when something changed on the node that may change a refusal (section 4)."""
        layout = self._layout
        paths = (layout.update_record, layout.pending_record, layout.slots_record, layout.entrypoint, layout.current)
        return tuple(_identity(path) for path in paths)


def _value(path: str, reading: Reading[T]) -> T | None:
    if reading.state == "unreadable":
        raise HostError("io-error", f"{path}: {reading.why}", "run `bcd doctor` as the user that owns it")
    return reading.value


def _identity(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    # ctime, since the remedy for an entrypoint that is not root's alone (chown, chmod) changes nothing else.
    return (found.st_ino, found.st_ctime_ns, found.st_size)
