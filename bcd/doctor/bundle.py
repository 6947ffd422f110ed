"""`bcd doctor bundle`: what support needs, in one archive, secrets taken out, with a list of what is in it and what is not.

Every member is made whole in memory, redacted, and only then written; what can't be read or parsed is left out and
listed with the reason. The file is made anew with mode 0600 and never written over another.
"""

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from bcd.core.durable import as_host_error
from bcd.core.errors import UsageError
from bcd.core.statusjson import status_json
from bcd.core.text import clean
from bcd.core.units import NODE_UNIT, ROLLBACK_UNIT
from bcd.doctor.finding import Report
from bcd.doctor.probes import CannotTell, Probes, Ran
from bcd.doctor.redaction import redact_json, redact_json_lines, redact_text, redact_toml, redact_value
from bcd.doctor.report.machine import report_json
from bcd.doctor.report.plain import plain_lines

FORMAT = 1
CONTENTS = "contents.json"
REPORT = "report.json"
_MEMBER_LIMIT_BYTES = 4 * 1024 * 1024
_JOURNAL_LINES = 2000
_UNITS = (NODE_UNIT, "bcd-helper.service", ROLLBACK_UNIT)
_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "PATH", "LANG", "LC_ALL", "TERM", "NO_COLOR")


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One file of a bundle, or why it is not in it."""

    name: str
    source: str
    """Where it came from: a path or a command."""
    data: bytes | None
    """Redacted; None where it is left out."""
    left_out: str = ""
    """Why."""


Redact = Callable[[bytes], bytes]


def write_bundle(path: str, report: Report, probes: Probes) -> list[Member]:
    """Write a bundle to `path`, a .tar.gz, and return what is in it.

    Raises:
        UsageError: `file-exists`.
        HostError: it could not be written; nothing is left at `path`.
    """
    members = [*_reports(report), *_collected(probes)]
    contents = {
        "format": FORMAT,
        "about": clean(report.about),
        "looked_as": report.looked_as,
        "members": [
            {"name": m.name, "source": m.source, "size": len(m.data), "sha256": sha256(m.data).hexdigest()}
            for m in members
            if m.data is not None
        ],
        "left_out": [{"name": m.name, "source": m.source, "why": m.left_out} for m in members if m.data is None],
    }
    listed = Member(name=CONTENTS, source="bcd doctor bundle", data=_json(contents))
    with as_host_error("write the bundle"):
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileExistsError as error:
            raise UsageError("file-exists", f"{path} exists already", "name another file") from error
        try:
            with os.fdopen(handle, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
                for member in (listed, *members):
                    _add(archive, member, report.started_at)
        except OSError:
            os.unlink(path)
            raise
    return members


def _add(archive: tarfile.TarFile, member: Member, at: int) -> None:
    if member.data is None:
        return
    info = tarfile.TarInfo(f"bcd-doctor/{member.name}")
    info.size, info.mode, info.mtime = len(member.data), 0o600, at
    archive.addfile(info, io.BytesIO(member.data))


def _reports(report: Report) -> Iterator[Member]:
    yield Member(name=REPORT, source="bcd doctor --json", data=_json(redact_value(report_json(report))))
    text = "\n".join(plain_lines(report, verbose=True))
    yield Member(name="report.txt", source="bcd doctor --format plain -v", data=redact_text(text).encode() + b"\n")


def _collected(probes: Probes) -> Iterator[Member]:
    yield _told("environment.json", "the environment of this command", lambda: _json(_environment(probes)))
    yield _told("config.json", probes.config_path, lambda: redact_toml(_read(probes.config_path)))
    yield _told(
        "status.json", "bcd update --json", lambda: _json(redact_value(status_json(probes.status, probes.live)))
    )
    try:
        layout = probes.layout
    except CannotTell as error:
        yield Member(name="records", source="the configuration", data=None, left_out=str(error))
        return
    files: tuple[tuple[str, Redact], ...] = (
        (layout.slots_record, redact_json),
        (layout.update_record, redact_json),
        (layout.pending_record, redact_json),
        (os.path.join(layout.data_dir, "outbox.json"), redact_json),
        (layout.history, redact_json_lines),
        (layout.history + ".1", redact_json_lines),
    )
    for path, redact in files:
        yield _file(path, redact)
    yield _told("files.txt", "the slots, the records and the staging directory", lambda: _listing(probes))
    for unit in _UNITS:
        yield _ran(f"units/{unit}", ["systemctl", "cat", "--no-pager", unit], probes)
        yield _ran(f"units/{unit}.properties", ["systemctl", "show", "--no-pager", unit], probes)
    journal = ["journalctl", "--no-pager", "-o", "short-iso", "-n", str(_JOURNAL_LINES), "-u", NODE_UNIT]
    yield _ran("journal.txt", journal, probes)


def _file(path: str, redact: Redact) -> Member:
    return _told(f"records/{os.path.basename(path)}", path, lambda: redact(_read(path)))


def _told(name: str, source: str, make: Callable[[], bytes]) -> Member:
    try:
        return Member(name=name, source=source, data=make())
    except OSError as error:
        return Member(name=name, source=source, data=None, left_out=error.strerror or "it can't be read")
    except (ValueError, CannotTell) as error:
        # Closed: what does not parse can't be told free of secrets.
        return Member(name=name, source=source, data=None, left_out=clean(f"it does not parse: {error}", 200))


def _ran(name: str, command: list[str], probes: Probes) -> Member:
    source = " ".join(command)
    if not probes.has_systemd:
        return Member(name=name, source=source, data=None, left_out="this machine has no systemd")
    try:
        ran = probes.run(command, probes.timeout_seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Member(name=name, source=source, data=None, left_out=clean(str(error), 200))
    if ran.status != 0:
        return Member(name=name, source=source, data=None, left_out=f"status {ran.status}: {_first_line(ran)}")
    return Member(name=name, source=source, data=redact_text(ran.stdout).encode("utf-8", "backslashreplace"))


def _first_line(ran: Ran) -> str:
    return clean(next(iter(ran.stderr.splitlines()), "no word why"), 200)


def _read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        data = file.read(_MEMBER_LIMIT_BYTES + 1)
    if len(data) > _MEMBER_LIMIT_BYTES:
        raise ValueError(f"larger than {_MEMBER_LIMIT_BYTES} bytes")
    return data


def _environment(probes: Probes) -> object:
    names = [name for known in _VARIABLES for name in {known, known.upper()}]
    kept = {name: redact_text(probes.environ[name]) for name in sorted(names) if name in probes.environ}
    return {
        "build": probes.build._asdict(),
        "euid": probes.euid,
        "uname": " ".join(os.uname()),
        "variables": kept,
        "variables_left_out": len(set(probes.environ) - set(kept)),
    }


def _listing(probes: Probes) -> bytes:
    layout = probes.layout
    lines = []
    for directory in dict.fromkeys((layout.slots_dir, layout.records_dir, layout.data_dir, layout.staging)):
        try:
            names = sorted(os.listdir(directory))
        except OSError as error:
            lines.append(f"{directory}: {error.strerror}")
            continue
        lines += [_line(os.path.join(directory, name)) for name in names]
    lines.append(_line(layout.entrypoint))
    return ("\n".join(clean(line) for line in lines) + "\n").encode("utf-8", "backslashreplace")


def _line(path: str) -> str:
    try:
        found = os.lstat(path)
        target = f" -> {os.readlink(path)}" if os.path.islink(path) else ""
    except OSError as error:
        return f"{path}: {error.strerror}"
    return f"{found.st_mode:06o} {found.st_uid}:{found.st_gid} {found.st_size} {int(found.st_mtime)} {path}{target}"


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"
