"""The one source of what the console shows: the disk and the agent, read into a snapshot, in whichever thread asks.

A look that finds nothing changed costs a handful of lstat and one recv: only what is there is compared (inode, size,
times, mode), and read whole when that changed. What a clock alone moves, the seconds left, is worked out each time.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from itertools import islice

from bcd.core.build import Build
from bcd.core.clock import Clock
from bcd.core.config import load_config
from bcd.core.deadline import time_left
from bcd.core.errors import BcdError
from bcd.core.history import read_events
from bcd.core.layout import Layout, layout_of
from bcd.core.links import CURRENT, PREVIOUS
from bcd.core.records import Json
from bcd.core.status import Status, read_status
from bcd.core.text import clean
from bcd.core.units import ROLLBACK_UNIT, UNIT_DIRECTORY
from bcd.tui.snapshot import Snapshot
from bcd.tui.vitals import ReadVitals, no_vitals

ReadLive = Callable[[str], dict[str, object] | None]
Print = tuple[tuple[int, ...] | None, ...]
_EVENTS = 500
_WHOLE_AFTER = 20
"""Looks after which everything is read in any case: no file system's times are trusted for ever."""


class Source:
    """Reads snapshots and events; used from one thread at a time."""

    def __init__(
        self,
        config_path: str,
        build: Build,
        clock: Clock,
        read_live: ReadLive,
        *,
        read_vitals: ReadVitals = no_vitals,
        unit_directory: str = UNIT_DIRECTORY,
        read_only: bool = False,
    ) -> None:
        self._read_only = read_only
        self._unit = os.path.join(unit_directory, ROLLBACK_UNIT)
        self.config_path = config_path
        self.clock = clock
        self.build = build
        self._read_live = read_live
        self._read_vitals = read_vitals
        self._at_start: str | None = None
        self._looked = False
        self._layout: Layout | None = None
        self._print: Print = ()
        self._settled = 0
        """Looks since the disk changed."""
        self._last: Snapshot | None = None
        self._events_print: Print = ()
        self._events: tuple[Json, ...] = ()

    def read(self) -> Snapshot:
        """What is, now: read anew where something changed."""
        found = self._fingerprint()
        self._settled = self._settled + 1 if found == self._print else 0
        last = self._last
        # Read once more on the look after a change: one within the same tick of the file system's clock shows no other time.
        if last is None or self._settled < 2 or self._settled % _WHOLE_AFTER == 0:
            last = self._read()
        self._print = found
        self._last = last = self._as_of_now(last)
        return last

    def read_events(self) -> tuple[Json, ...]:
        """The history's newest events, newest first; none where it can't be read."""
        if self._layout is None:
            return ()
        found = prints_of((self._layout.history, self._layout.history + ".1"))
        if found != self._events_print or self._settled < 2:
            try:
                self._events = tuple(islice(read_events(self._layout.history), _EVENTS))
            except OSError:
                self._events = ()
            self._events_print = found
        return self._events

    def _fingerprint(self) -> Print:
        layout = self._layout
        if layout is None:
            return prints_of((self.config_path,))
        return prints_of(
            (
                self.config_path,
                layout.slots_record,
                layout.update_record,
                layout.pending_record,
                layout.current,
                os.path.join(layout.slots_dir, PREVIOUS),
                layout.entrypoint,
                # A broken record that is moved aside changes its directory.
                layout.slots_dir,
                layout.records_dir,
                self._unit,
            )
        )

    def _read(self) -> Snapshot:
        now = self.clock.wall()
        try:
            config = load_config(self.config_path)
            self._layout = layout_of(config)
            status = read_status(config, self.build, self.clock)
        except BcdError as error:
            self._layout = None
            return Snapshot(status=None, agent=None, trouble=error, taken_at=now)
        return Snapshot(
            status=status,
            agent=None,
            trouble=None,
            taken_at=now,
            running_slot_moved=self._has_moved(status),
            clear_refused="this console is read-only" if self._read_only else _clear_refused(status),
            crash_loop_rollback=os.path.exists(self._unit),
            entrypoint_leads=_leads(status.layout),
        )

    def _as_of_now(self, snapshot: Snapshot) -> Snapshot:
        status = snapshot.status
        if status is None:
            return replace(snapshot, taken_at=self.clock.wall())
        pending = status.pending.value
        left = None if pending is None else time_left(pending, self.clock)
        agent = self._read_live(status.config.node.data_dir)
        return replace(
            snapshot,
            status=status._replace(left=left),
            agent=agent,
            taken_at=self.clock.wall(),
            boottime=self.clock.boottime(),
            vitals=self._read_vitals(None if agent is None else agent.get("pid")),
        )

    def _has_moved(self, status: Status) -> bool:
        target = status.current.target
        if not self._looked:
            self._looked, self._at_start = True, target
        # From nothing to a slot too: the first update took over the entrypoint that this console was started by.
        return target is not None and target != self._at_start


def prints_of(paths: tuple[str, ...]) -> Print:
    """What tells a changed file from the one that was there, for each path; None where nothing can be seen."""
    return tuple(_print(path) for path in paths)


def _print(path: str) -> tuple[int, ...] | None:
    try:
        found = os.lstat(path)
        # A configuration or a directory may stand behind a link.
        behind = os.stat(path) if stat.S_ISLNK(found.st_mode) else found
    except (OSError, ValueError):
        return None
    return tuple(
        value
        for f in (found, behind)
        for value in (f.st_ino, f.st_dev, f.st_size, f.st_mtime_ns, f.st_ctime_ns, f.st_mode)
    )


def _leads(layout: Layout) -> str:
    path = layout.entrypoint
    try:
        if not stat.S_ISLNK(os.lstat(path).st_mode):
            return "(a file)" if os.path.isfile(path) else "(neither a file nor a link)"
        target = os.readlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return "(missing)"
    except OSError:
        return ""
    directory, name = os.path.split(os.path.join(os.path.dirname(path), target))
    ours = name == CURRENT and os.path.realpath(directory) == os.path.realpath(layout.slots_dir)
    return f"→ {CURRENT if ours else clean(target)}"


def _clear_refused(status: Status) -> str | None:
    records = status.layout.records_dir
    if os.path.isdir(records) and not os.access(records, os.W_OK):
        return f"clearing needs root here: sudo bcd update --clear-failed --config {status.config.path}"
    return None
