"""`bcd doctor open`: somebody else's bundle, on another machine, read-only. Nothing is unpacked, nothing is believed.

The attack: an archive made to write outside of where it is opened, to be huge, or to write the terminal. So members are
read by name into memory, bounded, and every text in them passes the sanitiser.
"""

import gzip
import json
import os
import stat
import tarfile
import zlib
from dataclasses import dataclass
from typing import IO

from bcd.core.errors import UsageError
from bcd.core.text import clean
from bcd.doctor.bundle import CONTENTS, REPORT
from bcd.doctor.finding import Finding, Level, Report

_LIMIT_BYTES = 8 * 1024 * 1024
_MEMBERS = 100
_WHOLE_LIMIT_BYTES = 96 * 1024 * 1024
"""Of all that is unpacked: a header may claim a name of a gigabyte, and tarfile would make room for it."""
_PREFIX = "bcd-doctor/"


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """A bundle's report, and what it says of itself."""

    report: Report
    members: tuple[str, ...]
    """What is in it, a line each."""
    left_out: tuple[str, ...]
    """What is not, and why."""
    files: dict[str, bytes]
    """Its members by name, as they are: nothing in them has been looked at."""


def open_bundle(path: str) -> Opened:
    """Read a bundle.

    Raises:
        UsageError: `unreadable-bundle`, it is none, or can't be read.
    """
    try:
        with _opened(path) as file:
            files = _files(file)
        contents = _object(_member(files, CONTENTS))
        report = _report(_object(_member(files, REPORT)))
    except (
        OSError,
        tarfile.TarError,
        zlib.error,
        ValueError,
        KeyError,
        TypeError,
        EOFError,
        OverflowError,
        RecursionError,
    ) as error:
        what = getattr(error, "strerror", None) or f"it is no bundle of bcd doctor ({clean(str(error), 100)})"
        raise UsageError(
            "unreadable-bundle", f"{clean(path)}: {what}", "make one with `bcd doctor bundle FILE`"
        ) from error
    return Opened(
        report=report,
        members=tuple(_row(entry, "source") for entry in _list(contents, "members")),
        left_out=tuple(_row(entry, "why") for entry in _list(contents, "left_out")),
        files=files,
    )


def _opened(path: str) -> IO[bytes]:
    # O_NONBLOCK: a FIFO must hang nobody.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ValueError("it is no regular file")
    return os.fdopen(handle, "rb")


class _Bounded:
    """The unpacked bytes, up to a limit."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = gzip.GzipFile(fileobj=file)
        self._left = _WHOLE_LIMIT_BYTES

    def read(self, size: int) -> bytes:
        data = self._file.read(min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise ValueError("it unpacks to more than any bundle")
        return data


def _files(file: IO[bytes]) -> dict[str, bytes]:
    """The plain files under our prefix; links, devices and every other name are passed over, and nothing is followed."""
    found: dict[str, bytes] = {}
    # As a stream, which never goes back: what is passed over is read too, and counts.
    with tarfile.open(fileobj=_Bounded(file), mode="r|") as archive:  # type: ignore[call-overload]  # a reader is enough
        for _ in range(_MEMBERS):
            info = archive.next()
            if info is None:
                return found
            # Also of what is only passed over: a terabyte of zeros packs into a small file.
            if info.size > _LIMIT_BYTES:
                raise ValueError(f"{clean(info.name, 60)} is too large")
            name = info.name.removeprefix(_PREFIX)
            if info.name.startswith(_PREFIX) and info.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and name not in found:
                member = archive.extractfile(info)
                if member is not None:
                    found[name] = member.read(_LIMIT_BYTES)
    raise ValueError("it has more in it than any bundle")


def _member(files: dict[str, bytes], name: str) -> bytes:
    if name not in files:
        raise KeyError(f"there is no {name} in it")
    return files[name]


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
