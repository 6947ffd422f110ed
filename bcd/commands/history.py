"""`bcd update history`: what happened here, newest first."""

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from shlex import join

from bcd.commands.streams import note_defaults, print_lines
from bcd.core.config import load_config
from bcd.core.errors import HostError, NotPermitted
from bcd.core.exits import ExitStatus
from bcd.core.history import read_events
from bcd.core.layout import layout_of
from bcd.core.text import Foreign, raw


def show_history(config_path: str, count: int, *, as_json: bool) -> ExitStatus:
    """Print at most `count` events.

    Raises:
        NotPermitted: this user may not read them.
        HostError: `io-error`, they can't be read.
    """
    config = load_config(config_path)
    note_defaults(config)
    path = layout_of(config).history
    try:
        events = list(islice(read_events(path), min(count, sys.maxsize)))
    except PermissionError as error:
        command = join(["sudo", "bcd", "update", "history", "--config", config_path])
        raise NotPermitted("unreadable-history", f"{path}: this user may not read it", command) from error
    except OSError as error:
        raise HostError(
            "io-error", f"{path}: {error.strerror}", "move it aside; nothing that decides is lost with it"
        ) from error
    if as_json:
        plain = [{key: raw(value) if isinstance(value, str) else value for key, value in e.items()} for e in events]
        print_lines([json.dumps({"format": 1, "events": plain}, indent=2)])
    else:
        print_lines([_line(event) for event in events] or ["nothing happened here yet"])
    return ExitStatus.OK


def _line(event: Mapping[str, object]) -> str:
    more = []
    if isinstance(event.get("sequence"), int):
        more.append(f"sequence {_text(event['sequence'])}")
    more += [f"{key} {_text(event[key])}" for key in ("slot", "way", "code") if event.get(key) is not None]
    words = f"{_when(event.get('at'))}  {_text(event.get('event') or 'unknown'):<14}"
    version = f"  {_text(event.get('version') or event.get('versions') or '')}"
    details = f" ({', '.join(more)})" if more else ""
    reason = f": {_text(event['reason'])}" if event.get("reason") else ""
    return f"{words}{version}{details}{reason}".rstrip()


def _when(at: object) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")  # type: ignore[arg-type]  # told below
    except (TypeError, ValueError, OverflowError, OSError):
        return "at unknown time     "


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    return value if isinstance(value, Foreign) else Foreign(str(value))
