"""The records' keeper for whoever may write: loads them, moves a broken one aside, saves them durably.

A broken record never stops the agent, a command or a rollback (field reports 01, 02, 24): it is kept as
`<name>.corrupt-<unix time>` for people, and what it said is never guessed at.
"""

import logging
import os

from bcd.core.clock import Clock
from bcd.core.durable import host_error, remove_durably, sync_directory, write_durably
from bcd.core.errors import HostError
from bcd.core.floor import release_floor
from bcd.core.layout import Layout
from bcd.core.records import (
    PendingRecord,
    Reading,
    SlotsRecord,
    T,
    UpdateRecord,
    dump_pending,
    dump_slots,
    dump_update,
    read_pending,
    read_slots,
    read_update,
)

_log = logging.getLogger(__name__)


class Store:
    """The records of one node. Every method re-reads the disk; nothing is cached."""

    def __init__(self, layout: Layout, clock: Clock) -> None:
        self._layout = layout
        self._clock = clock

    def slots(self) -> SlotsRecord:
        """`slots.json`; a broken or absent one knows nothing of either slot."""
        path = self._layout.slots_record
        reading = read_slots(path)
        self._keep_aside(path, reading)
        return reading.value or SlotsRecord()

    def update(self) -> UpdateRecord:
        """`update.json`; without it, the floor that the slots' records are evidence of.

        A broken one is replaced at once by what is known, since that evidence goes with the next staged release.
        """
        path = self._layout.update_record
        reading = read_update(path)
        lost = self._keep_aside(path, reading)
        if reading.value is not None:
            return reading.value
        known = UpdateRecord(sequence=release_floor(None, self.slots(), 0, 0))
        if lost:
            try:
                self.save_update(known)
            except OSError as error:
                _log.warning("update.json could not be written anew: %s", error)
        return known

    def pending(self) -> PendingRecord | None:
        """`upgrade.json`, None where no swap is pending."""
        path = self._layout.pending_record
        reading = read_pending(path)
        self._keep_aside(path, reading)
        return reading.value

    def save_slots(self, record: SlotsRecord) -> None:
        """Write `slots.json`. Raises OSError."""
        write_durably(self._layout.slots_record, dump_slots(record))

    def save_update(self, record: UpdateRecord) -> None:
        """Write `update.json`. Raises OSError."""
        write_durably(self._layout.update_record, dump_update(record))

    def save_pending(self, record: PendingRecord) -> None:
        """Write `upgrade.json`. Raises OSError."""
        write_durably(self._layout.pending_record, dump_pending(record))

    def remove_pending(self) -> None:
        """Remove `upgrade.json`, then the marker beside it.

        In this order: a marker without its record is nothing, a record without its marker would look as if the new
        binary had never run. Raises OSError.
        """
        remove_durably(self._layout.pending_record)
        remove_durably(self._layout.rollback_marker)

    @property
    def marker(self) -> bool:
        """Whether `rolled-back` stands beside the record."""
        return os.path.lexists(self._layout.rollback_marker)

    def leave_marker(self) -> None:
        """Leave `rolled-back`. Raises OSError."""
        path = self._layout.rollback_marker
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
        sync_directory(os.path.dirname(path))

    def _keep_aside(self, path: str, reading: Reading[T]) -> bool:
        if reading.state == "unreadable":
            raise HostError("io-error", f"{path}: {reading.why}", "run `bcd doctor` as the user that owns it")
        if reading.state != "corrupt":
            return False
        aside = f"{path}.corrupt-{int(self._clock.wall())}"
        number = 1
        while os.path.lexists(aside):
            number += 1
            aside = f"{path}.corrupt-{int(self._clock.wall())}-{number}"
        try:
            os.rename(path, aside)
            sync_directory(os.path.dirname(path))
        except OSError as error:
            raise host_error(error, f"move the broken {path} aside") from error
        _log.warning("%s is broken (%s); kept as %s", path, reading.why, aside)
        return True
