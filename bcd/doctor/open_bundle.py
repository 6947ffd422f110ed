"""`bcd doctor open`: somebody else's bundle, on another machine, read-only. Nothing is unpacked, nothing is believed.

The attack: an archive made to write outside of where it is opened, to be huge, or to write the terminal. So members are
read by name into memory, bounded, and every text in them passes the sanitiser.
"""

import json
import tarfile
from dataclasses import dataclass

from bcd.core.errors import UsageError
from bcd.core.text import clean
from bcd.doctor.bundle import CONTENTS, REPORT
from bcd.doctor.finding import Finding, Level, Report

_LIMIT_BYTES = 8 * 1024 * 1024
_MEMBERS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """A bundle's report, and what it says of itself."""

    report: Report
    members: tuple[str, ...]
    """What is in it, a line each."""
    left_out: tuple[str, ...]
    """What is not, and why."""


def open_bundle(path: str) -> Opened:
    """Read a bundle.

    Raises:
        UsageError: `unreadable-bundle`, it is none, or can't be read.
    """
    try:
        with tarfile.open(path, "r:gz") as archive:
            contents = _object(_member(archive, CONTENTS))
            report = _report(_object(_member(archive, REPORT)))
    except (OSError, tarfile.TarError, ValueError, KeyError, TypeError, EOFError, RecursionError) as error:
        what = getattr(error, "strerror", None) or f"it is no bundle of bcd doctor ({clean(str(error), 100)})"
        raise UsageError(
            "unreadable-bundle", f"{clean(path)}: {what}", "make one with `bcd doctor bundle FILE`"
        ) from error
    return Opened(
        report=report,
        members=tuple(_row(entry, "source") for entry in _list(contents, "members")),
        left_out=tuple(_row(entry, "why") for entry in _list(contents, "left_out")),
    )


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    wanted = f"bcd-doctor/{name}"
    for _ in range(_MEMBERS):
        info = archive.next()
        if info is None:
            break
        # Also of what is only passed over: a terabyte of zeros packs into a small file.
        if info.size > _LIMIT_BYTES:
            raise ValueError(f"{name} is behind something too large")
        if info.name == wanted and info.isreg():
            file = archive.extractfile(info)
            if file is not None:
                return file.read(_LIMIT_BYTES)
    raise KeyError(f"there is no {name} in it")


def _object(data: bytes) -> dict[str, object]:
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("no object")
    return document


def _list(document: dict[str, object], key: str) -> list[dict[str, object]]:
    value = document[key]
    if not isinstance(value, list):
        raise ValueError(f"{key} is no list")
    return [entry for entry in value if isinstance(entry, dict)]


def _row(entry: dict[str, object], more: str) -> str:
    return f"{clean(str(entry.get('name')), 120)}: {clean(str(entry.get(more)), 300)}"


def _report(document: dict[str, object]) -> Report:
    return Report(
        findings=tuple(_finding(entry) for entry in _list(document, "findings")),
        complete=document["complete"] is True,
        started_at=int(str(document["started_at"])),
        seconds=float(str(document["seconds"])),
        looked_as=clean(str(document["looked_as"]), 120),
        about=clean(str(document["about"]), 300),
    )


def _finding(entry: dict[str, object]) -> Finding:
    evidence = entry["evidence"]
    if not isinstance(evidence, list):
        raise ValueError("evidence is no list")
    return Finding(
        id=clean(str(entry["id"]), 120),
        level=Level(entry["level"]),
        message=clean(str(entry["message"])),
        evidence=tuple(clean(str(line)) for line in evidence),
        hint=clean(str(entry["hint"])),
    )
