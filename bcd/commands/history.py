"""`bcd update history`: what happened here, newest first."""

import json
from datetime import UTC, datetime
from itertools import islice

from bcd.commands.streams import print_lines
from bcd.core.config import load_config
from bcd.core.errors import NotPermitted
from bcd.core.exits import ExitStatus
from bcd.core.history import read_events
from bcd.core.layout import layout_of
from bcd.core.records import Json
from bcd.core.text import Foreign, raw


def show_history(config_path: str, count: int, *, as_json: bool) -> ExitStatus:
    """Print at most `count` events.

    Raises:
        NotPermitted: this user may not read them.
    """
    layout = layout_of(load_config(config_path))
    try:
        events = list(islice(read_events(layout.history), count))
    except PermissionError as error:
        raise NotPermitted(
            "unreadable-history", f"{layout.history}: this user may not read it", f"sudo bcd update history --config {config_path}"
        ) from error
    if as_json:
        plain = [{key: raw(value) if isinstance(value, str) else value for key, value in e.items()} for e in events]
        print_lines([json.dumps({"format": 1, "events": plain}, indent=2)])
    else:
        print_lines([_line(event) for event in events] or ["nothing happened here yet"])
    return ExitStatus.OK


def _line(event: Json) -> str:
    at = event.get("at")
    when = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ") if isinstance(at, int) else "unknown time"
    more = []
    if isinstance(event.get("sequence"), int):
        more.append(f"sequence {event['sequence']}")
    more += [f"{key} {_text(event[key])}" for key in ("slot", "way", "code") if event.get(key) is not None]
    words = f"{when}  {_text(event.get('event')):<14}  {_text(event.get('version') or event.get('versions') or '')}"
    details = f" ({', '.join(more)})" if more else ""
    reason = f": {_text(event['reason'])}" if event.get("reason") else ""
    return f"{words}{details}{reason}".rstrip()


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    return value if isinstance(value, Foreign) else Foreign(str(value))
