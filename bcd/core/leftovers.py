"""What earlier cuts left behind: removed when nothing is pending, under the lock, so that nobody is writing it."""

import logging
import os
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
    """Temporary files of ours, and staged ones older than 7 days. Only what nobody is writing: no swap is under way."""
    found = []
    for directory in sorted({layout.slots_dir, layout.records_dir}):
        found += [
            os.path.join(directory, name)
            for name in _names(directory)
            if name.endswith(".tmp") and name.startswith((".", "bcd-"))
        ]
    for name in [] if os.path.islink(layout.staging) else _names(layout.staging):
        path = os.path.join(layout.staging, name)
        if name.startswith("bcd-") and clock.wall() - _modified(path, clock) > _STAGED_SECONDS:
            found.append(path)
    # Beside the entrypoint lie other people's files: only a link that adoption made and a cut left is surely ours.
    directory, name = os.path.split(layout.entrypoint)
    found += [
        os.path.join(directory, other)
        for other in _names(directory)
        if other.startswith(f".{name}.") and other.endswith(".tmp") and _leads_to_current(layout, directory, other)
    ]
    return found


def remove_stale(layout: Layout, clock: Clock) -> None:
    """Remove what `stale_files` finds. What can't be removed is logged and left."""
    for path in stale_files(layout, clock):
        _remove(layout, path)


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


def _remove(layout: Layout, path: str) -> None:
    directory, name = os.path.split(path)
    try:
        if directory == layout.staging:
            # The attack: under the helper the directory is the node's, who puts a link to root's slots in its place.
            handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with Staging(Path(directory), handle) as place:
                place.remove(name)
        else:
            remove_leftover(path)
    except BcdError as error:
        _log.warning("%s", error.message)
    except OSError as error:
        _log.warning("a stale file could not be removed: %s", error)
