"""What happened here, one line an event, for people. Losing it loses nothing that decides.

Bounded to 1 MiB: at half of that the file becomes `history.jsonl.1`, in place of the one before.
"""

import json
import logging
import os
from collections.abc import Iterator

from bcd.core.records import Json
from bcd.core.text import Foreign

_HALF_BYTES = 512 * 1024

_log = logging.getLogger(__name__)

EVENTS = (
    "prepared",
    "refused",
    "downloaded",
    "swapped",
    "confirmed",
    "rolled-back",
    "settled-failed",
    "cleared",
    "adopted",
)


def append_event(path: str, event: str, at: int, **fields: object) -> None:
    """Add one of `EVENTS`; `at` in Unix seconds. A failure to is logged and is no failure of the update."""
    line = json.dumps({"at": at, "event": event, **fields}, separators=(",", ":")).encode() + b"\n"
    try:
        if os.path.exists(path) and os.path.getsize(path) + len(line) > _HALF_BYTES:
            os.replace(path, path + ".1")
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            os.fchmod(handle, 0o644)
            os.write(handle, line)
        finally:
            os.close(handle)
    except OSError as error:
        _log.warning("the history could not be written: %s", error)


def read_events(path: str) -> Iterator[Json]:
    """Yield the events, newest first; torn lines are passed over.

    Raises:
        PermissionError: this user may not read it.
    """
    for part in (path, path + ".1"):
        try:
            with open(part, "rb") as file:
                lines = file.read(2 * _HALF_BYTES).splitlines()
        except FileNotFoundError:
            continue
        for line in reversed(lines):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                yield {key: Foreign(item) if isinstance(item, str) else item for key, item in event.items()}
