"""What happened here, one line an event, for people. Losing it loses nothing that decides.

Bounded to 1 MiB: at half of that the file becomes `history.jsonl.1`, in place of the one before.
"""

import errno
import json
import logging
import math
import os
import stat
from collections.abc import Iterator

from bcd.core.records import Json
from bcd.core.text import LIMIT, Foreign

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


class Ration:
    """How many events an hour may come of mere asking.

    The attack: a node taken over asks for one release after the other, or two in turn, until the refusals have rotated
    all that happened here away.
    """

    def __init__(self, limit: int = 60) -> None:
        self._limit = limit
        self._at: list[float] = []

    def take(self, now: float) -> bool:
        """Whether one more may be written; `now` in seconds of a clock that is never set."""
        self._at = [at for at in self._at if now - at < 3600]
        if len(self._at) >= self._limit:
            return False
        self._at.append(now)
        return True


def append_event(path: str, event: str, at: int, **fields: object) -> None:
    """Add one of `EVENTS`; `at` in Unix seconds. A failure to is logged and is no failure of the update."""
    fields = {name: _cut(value) for name, value in fields.items()}
    line = json.dumps({"at": at, "event": event, **fields}, separators=(",", ":")).encode() + b"\n"
    try:
        if os.path.exists(path) and os.path.getsize(path) + len(line) > _HALF_BYTES:
            os.replace(path, path + ".1")
        # O_NONBLOCK: a FIFO in its place must not hang a swap.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(path, flags, 0o644)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(errno.EINVAL, "it is no regular file", path)
            os.fchmod(handle, 0o644)
            # Power failed inside the last line: this one must not be lost with it.
            if found.st_size and os.pread(handle, 1, found.st_size - 1) != b"\n":
                line = b"\n" + line
            os.write(handle, line)
        finally:
            os.close(handle)
    except OSError as error:
        _log.warning("the history could not be written: %s", error)


def _cut(value: object) -> object:
    # The attack: a section whose version is a megabyte long, whose refusal would break the bound.
    if isinstance(value, list):
        return [_cut(item) for item in value]
    return value[:LIMIT] if isinstance(value, str) else value


def read_events(path: str) -> Iterator[Json]:
    """Yield the events, newest first; torn lines are passed over.

    Raises:
        PermissionError: this user may not read it.
        OSError: it is no regular file, or could not be read.
    """
    for part in (path, path + ".1"):
        try:
            handle = os.open(part, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            continue
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file", part)
            data = os.read(handle, 2 * _HALF_BYTES)
        finally:
            os.close(handle)
        yield from parse_events(data)


def parse_events(data: bytes) -> Iterator[Json]:
    """Yield the events of a history's bytes, newest first; torn lines are passed over."""
    for line in reversed(data.splitlines()):
        try:
            event = json.loads(line, parse_float=_finite, parse_constant=_finite)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield {key: Foreign(item) if isinstance(item, str) else item for key, item in event.items()}


def _finite(text: str) -> float:
    # NaN and infinity are no JSON: whoever printed the event again would print what nobody can read.
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
