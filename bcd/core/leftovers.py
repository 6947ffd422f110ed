"""What earlier cuts left behind: removed when nothing is pending, under the lock, so that nobody is writing it."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

from bcd.core.clock import Clock
from bcd.core.errors import BcdError
from bcd.core.layout import Layout
from bcd.core.safeopen import remove_leftover
from bcd.core.staging import Staging

_STAGED_SECONDS = 7 * 24 * 3600
"""How long a download that was cut off may still be resumed."""

_log = logging.getLogger(__name__)


def stale_files(layout: Layout, clock: Clock) -> list[str]:
    """What `remove_stale` and `remove_stale_downloads` would remove. Only what nobody is writing: no swap is under way."""
    return _stale_writes(layout) + _stale_downloads(layout, clock)


def remove_stale(layout: Layout) -> None:
    """Remove temporary files of ours among slots, records and beside the entrypoint. What can't be removed is logged."""
    for path in _stale_writes(layout):
        _tell(path, remove_leftover)


def remove_stale_downloads(layout: Layout, clock: Clock) -> None:
    """Remove staged files older than 7 days. The node's own work, in its own place: never root's under the helper."""
    for path in _stale_downloads(layout, clock):
        _tell(path, _remove_staged)


def _stale_writes(layout: Layout) -> list[str]:
    found = []
    for directory in sorted({layout.slots_dir, layout.records_dir}):
        found += [
            os.path.join(directory, name)
            for name in _names(directory)
            if name.endswith(".tmp") and name.startswith((".", "bcd-"))
        ]
    # Beside the entrypoint lie other people's files: only a link that adoption made and a cut left is surely ours.
    directory, name = os.path.split(layout.entrypoint)
    found += [
        os.path.join(directory, other)
        for other in _names(directory)
        if other.startswith(f".{name}.") and other.endswith(".tmp") and _leads_to_current(layout, directory, other)
    ]
    return found


def _stale_downloads(layout: Layout, clock: Clock) -> list[str]:
    names = [] if os.path.islink(layout.staging) else _names(layout.staging)
    paths = [os.path.join(layout.staging, name) for name in names if name.startswith("bcd-")]
    return [path for path in paths if clock.wall() - _modified(path, clock) > _STAGED_SECONDS]


def _leads_to_current(layout: Layout, directory: str, name: str) -> bool:
    try:
        return os.readlink(os.path.join(directory, name)) == layout.current
    except OSError:
        return False


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _modified(path: str, clock: Clock) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return clock.wall()


def _remove_staged(path: str) -> None:
    directory, name = os.path.split(path)
    # The attack: somebody puts a link to another directory in the place of the one that was listed.
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with Staging(Path(directory), handle) as place:
        place.remove(name)


def _tell(path: str, remove: Callable[[str], None]) -> None:
    try:
        remove(path)
    except BcdError as error:
        _log.warning("%s", error.message)
    except OSError as error:
        _log.warning("a stale file could not be removed: %s", error)
