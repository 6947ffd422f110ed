"""A bundle of another machine as the console's world: what it says, at the time at which it was made, and nothing else.

The mistake to prevent: another machine's state taken for this one's, or mixed with it. So nothing here looks at this
machine's disk, clock or agent, and all time is the bundle's. Its texts are hostile: each becomes `Foreign`.
"""

import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeVar

from bcd.core.acceptance import Acceptance
from bcd.core.build import Build
from bcd.core.config import Config, HelperConfig, NodeConfig, UpdateConfig
from bcd.core.deadline import WELCOME_SECONDS, Left
from bcd.core.errors import NotPermitted, UsageError
from bcd.core.history import parse_events
from bcd.core.layout import Layout
from bcd.core.links import SLOTS, Link, slot_file
from bcd.core.records import (
    Failed,
    Json,
    Reading,
    parse_pending,
    parse_slots,
    parse_update,
)
from bcd.core.status import Problem, Status
from bcd.core.strict import MAX_INTEGER
from bcd.core.text import Foreign, clean
from bcd.core.units import ROLLBACK_UNIT
from bcd.doctor.finding import Report
from bcd.doctor.open_bundle import Opened
from bcd.node.client import made_safe
from bcd.tui.journal import NoJournal
from bcd.tui.snapshot import Snapshot

T = TypeVar("T")
_NOT_HERE = "this is a bundle of another machine, and not the machine"
_EVENTS = 500
_LINES = 2000


class Bundled:
    """What a console reads from a bundle."""

    def __init__(self, file: str, opened: Opened) -> None:
        self._files = opened.files
        self._report = opened.report
        self._listing = _listing(opened.files.get("files.txt", b""))
        self._events = tuple(parse_events(opened.files.get("records/history.jsonl", b"")))[:_EVENTS]
        self.journal = BundledJournal(opened.files.get("journal.txt"))
        self._snapshot = self._made(file)

    def read(self) -> Snapshot:
        """The one snapshot there is."""
        return self._snapshot

    def read_events(self) -> tuple[Json, ...]:
        """The history in it."""
        return self._events

    def examine(self) -> Report:
        """The report in it."""
        return self._report

    def clear(self, versions: tuple[str, ...]) -> tuple[Failed, ...]:  # noqa: ARG002  # none ever
        """Never."""
        raise NotPermitted("read-only", _NOT_HERE, "clear them there: bcd update --clear-failed")

    def look(self, path: str) -> tuple[str, str]:
        """What the bundle's listing says of a path."""
        return self._listing.get(clean(path), ("", "not in the bundle"))

    def _object(self, name: str) -> Json:
        try:
            found = json.loads(self._files.get(name, b""))
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def _made(self, file: str) -> Snapshot:
        at = float(self._report.started_at)
        told = self._object("status.json")
        environment = self._object("environment.json")
        uname = str(environment.get("uname", "")).split()
        host = clean(uname[1], 60) if len(uname) > 1 else "an unknown host"
        origin = f"BUNDLE of {host}, {_moment(at)} ({clean(os.path.basename(file), 40)})"
        if not told:
            trouble = UsageError("no-status", "the bundle holds no status of the node", "see Doctor for its report")
            return Snapshot(status=None, agent=None, trouble=trouble, taken_at=at, origin=origin)
        live = made_safe(told.get("agent"))
        return Snapshot(
            status=self._status(told, at),
            agent=live if isinstance(live, dict) else None,
            trouble=None,
            taken_at=at,
            crash_loop_rollback=f"units/{ROLLBACK_UNIT}" in self._files,
            clear_refused=_NOT_HERE,
            origin=origin,
        )

    def _status(self, told: Json, at: float) -> Status:
        paths = _table(told, "paths")
        layout = Layout(*(_text(paths, key) for key in ("slots_dir", "entrypoint", "records_dir", "data_dir")))
        problems = tuple(
            Problem(_text(entry, "path"), _text(entry, "state"), _text(entry, "why"))
            for entry in _list(told, "problems")
            if isinstance(entry, dict)
        )
        pending = self._record("upgrade.json", parse_pending, problems)
        links = _table(told, "links")
        return Status(
            build=_build(told),
            config=_config(self._object("config.json"), _text(paths, "config") or "config.toml"),
            layout=layout,
            current=_link(links.get("current")),
            previous=_link(links.get("previous")),
            slots=self._record("slots.json", parse_slots, problems),
            update=self._record("update.json", parse_update, problems),
            pending=pending,
            left=None if pending.value is None else _left(told, pending.value.deadline - at),
            problems=problems,
            aside=tuple(Foreign(str(path)) for path in _list(told, "corrupt_aside")),
        )

    def _record(self, name: str, parse: Callable[[Json], T], problems: tuple[Problem, ...]) -> Reading[T]:
        data = self._files.get(f"records/{name}")
        problem = next((p for p in problems if os.path.basename(p.what) == name), None)
        if problem is not None or data is None:
            state = "corrupt" if problem is not None and problem.state == "corrupt" else "unreadable"
            return Reading("absent", None, "") if problem is None else Reading(state, None, problem.why)  # type: ignore[arg-type]
        try:
            document = json.loads(data)
            if not isinstance(document, dict):
                raise ValueError("it is no JSON object")
            return Reading("good", parse(document), "")
        except (ValueError, RecursionError) as error:
            return Reading("corrupt", None, clean(f"in the bundle it does not parse: {error}", 200))


class BundledJournal(NoJournal):
    """The journal's end as the bundle has it."""

    def __init__(self, data: bytes | None) -> None:
        super().__init__("the bundle holds no journal" if data is None else "the journal's end, from the bundle")
        self._data = data or b""

    def follow(self) -> Iterator[list[str]]:
        """All of it, once."""
        lines = [clean(line) for line in self._data.decode("utf-8", "replace").splitlines()[-_LINES:]]
        if lines:
            yield lines


def no_judging(given: str) -> Acceptance:  # noqa: ARG001  # whatever it is
    """A check would judge by this machine's records."""
    raise UsageError("read-only", f"{_NOT_HERE}: nothing can be checked against it", "bcd update check MANIFEST, there")


def _moment(at: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S %Z}"
    except (OverflowError, ValueError, OSError):
        return "at an unknown time"


def _listing(data: bytes) -> dict[str, tuple[str, str]]:
    """`files.txt`: mode, owner, size, time, path, and a link's target."""
    found = {}
    for line in data.decode("utf-8", "replace").splitlines():
        parts = line.split(" ", 4)
        if len(parts) == 5 and parts[2].isdecimal() and parts[3].isdecimal():
            path, _, target = parts[4].partition(" -> ")
            more = f"→ {target}" if target else f"{parts[2][:20]} bytes"
            found[clean(path)] = (_moment(float(parts[3][:12])), clean(more))
    return found


def _build(told: Json) -> Build:
    build = _table(told, "build")
    return Build(_text(build, "version"), _number(build, "sequence"), _number(build, "built_at"), fakehw=False)


def _config(tables: Json, path: str) -> Config:
    """The configuration as far as it reads. What was redacted is shown so; it is shown, and decides nothing here."""
    node, update = _table(tables, "node"), _table(tables, "update")
    pins = update.get("release_pins", "")
    listed = pins.split(",") if isinstance(pins, str) else [str(pin) for pin in pins] if isinstance(pins, list) else []
    return Config(
        path,
        bool(tables),
        _filled(NodeConfig(), node),
        _filled(UpdateConfig(), update)._replace(release_pins=tuple(Foreign(p.strip()) for p in listed if p.strip())),
        _filled(HelperConfig(), _table(tables, "helper")) if "helper" in tables else None,
    )


N = TypeVar("N", NodeConfig, UpdateConfig, HelperConfig)


def _filled(defaults: N, values: Json) -> N:
    known: dict[str, Any] = {}
    for key, default in defaults._asdict().items():
        value = values.get(key)
        if isinstance(default, bool):
            known[key] = value is True
        elif isinstance(default, int):
            known[key] = _number(values, key) if key in values else default
        elif isinstance(value, str):
            known[key] = Foreign(value)
    return defaults._replace(**known)


def _link(slot: object) -> Link:
    for name in SLOTS:
        if slot == name:
            return Link(name, slot_file(name), present=True)
    return Link(None, None, present=False)


def _left(told: Json, wall: float) -> Left:
    seconds = _table(told, "pending").get("seconds_left")
    known = isinstance(seconds, int | float) and abs(seconds) <= MAX_INTEGER  # NaN fails it too
    left = min(float(seconds), WELCOME_SECONDS) if known else wall  # type: ignore[arg-type]
    return Left(left, left, same_boot=True)


def _table(document: Json, key: str) -> Json:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _list(document: Json, key: str) -> list[object]:
    value = document.get(key)
    return value if isinstance(value, list) else []


def _text(document: Json, key: str) -> str:
    value = document.get(key)
    return Foreign(value) if isinstance(value, str) else ""


def _number(document: Json, key: str) -> int:
    value = document.get(key)
    return value if type(value) is int and 0 <= value <= MAX_INTEGER else 0
