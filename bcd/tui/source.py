"""The one source of what the console shows: the disk and the agent, read into a snapshot, in whichever thread asks."""

import os
from collections.abc import Callable

from bcd.core.build import Build
from bcd.core.clock import Clock
from bcd.core.config import load_config
from bcd.core.errors import BcdError
from bcd.core.status import Status, read_status
from bcd.core.units import ROLLBACK_UNIT, UNIT_DIRECTORY
from bcd.tui.snapshot import Snapshot

ReadLive = Callable[[str, float], dict[str, object] | None]
_LIVE_SECONDS = 0.4


class Source:
    """Reads snapshots; used from one thread at a time."""

    def __init__(
        self,
        config_path: str,
        build: Build,
        clock: Clock,
        read_live: ReadLive,
        *,
        unit_directory: str = UNIT_DIRECTORY,
        read_only: bool = False,
    ) -> None:
        self._read_only = read_only
        self._unit_directory = unit_directory
        self.config_path = config_path
        self.clock = clock
        self.build = build
        self._read_live = read_live
        self._at_start: str | None = None

    def read(self) -> Snapshot:
        """Read everything anew."""
        now = self.clock.wall()
        try:
            status = read_status(load_config(self.config_path), self.build, self.clock)
        except BcdError as error:
            return Snapshot(status=None, agent=None, trouble=error, taken_at=now)
        agent = self._read_live(status.config.node.data_dir, _LIVE_SECONDS)
        return Snapshot(
            status=status,
            agent=agent,
            trouble=None,
            taken_at=now,
            running_slot_moved=self._has_moved(status),
            clear_refused="this console is read-only" if self._read_only else _clear_refused(status),
            crash_loop_rollback=os.path.exists(os.path.join(self._unit_directory, ROLLBACK_UNIT)),
        )

    def _has_moved(self, status: Status) -> bool:
        target = status.current.target
        if self._at_start is None:
            self._at_start = target or ""
        return bool(self._at_start) and target is not None and target != self._at_start


def _clear_refused(status: Status) -> str | None:
    records = status.layout.records_dir
    if os.path.isdir(records) and not os.access(records, os.W_OK):
        return f"clearing needs root here: sudo bcd update --clear-failed --config {status.config.path}"
    return None
