"""`bcd update check`: every check of the rules over a manifest file, explained. Changes nothing."""

import json
import os
import shlex
import sys

from bcd.commands.streams import DIM, RED, note_defaults, paint, print_lines, wants_color
from bcd.core.acceptance import Acceptance, Check, judge
from bcd.core.build import this_build, this_platform
from bcd.core.clock import SystemClock
from bcd.core.config import load_config
from bcd.core.errors import NotPermitted, UsageError
from bcd.core.exits import ExitStatus
from bcd.core.facts import node_facts
from bcd.core.floor import release_floor
from bcd.core.manifest import ENVELOPE_LIMIT_BYTES, Manifest
from bcd.core.records import SlotsRecord, UpdateRecord
from bcd.core.section import DaemonSection
from bcd.core.status import read_status
from bcd.core.text import clean
from bcd.core.trust import verify_manifest

_NO_URL = "https://not-given.invalid/"
_NO_VERSION = "0.0.0"
_NO_DIGEST = "0" * 64
_MARKS = {"passed": "ok  ", "failed": "FAIL", "skipped": "skip", "not-reached": "-   "}


def check_release(
    path: str, *, url: str | None, sha256: str | None, config_path: str, as_json: bool, color: str
) -> ExitStatus:
    """Say what this node would answer to a section with this manifest.

    Raises:
        UsageError: the manifest or the configuration can't be read.
        NotPermitted: this user may not read what decides.
    """
    note_defaults(load_config(config_path))
    answer = judge_manifest(read_manifest(path), config_path, url=url, sha256=sha256, named=path)
    if as_json:
        print_lines([json.dumps(check_json(answer), indent=2)])
    else:
        accepted = "accepted: this node would take this release"
        print_lines(check_lines(answer, color=wants_color(color, sys.stdout), accepted=accepted))
    return ExitStatus.OK if answer.refusal is None else ExitStatus.PROBLEM


def judge_manifest(
    data: bytes, config_path: str, *, url: str | None = None, sha256: str | None = None, named: str = "FILE"
) -> Acceptance:
    """Every check over a manifest, as `bcd update check` and the console show them.

    Args:
        data: the signed manifest, or its base64; white space around it is free.
        config_path: the node's configuration.
        url: the section's, where one is to be judged.
        sha256: the section's, where one is to be judged.
        named: what the manifest is called in the command that a hint names.

    Raises:
        UsageError: the configuration can't be read.
        NotPermitted: this user may not read what decides.
    """
    config = load_config(config_path)
    text = data.strip(b" \t\r\n").decode("utf-8", "surrogateescape")
    build, clock = this_build(), SystemClock()
    status = read_status(config, build, clock)
    if any(problem.state == "unreadable" for problem in status.problems):
        raise NotPermitted(
            "unreadable-records",
            "the records that decide may not be read by this user",
            shlex.join(["sudo", "bcd", "update", "check", named, "--config", config_path]),
        )
    slots = status.slots.value or SlotsRecord()
    update = status.update.value or UpdateRecord(sequence=release_floor(None, slots, 0, 0))
    manifest = DaemonSection(version=_NO_VERSION, url=_NO_URL, sha256=_NO_DIGEST, signature=text).manifest
    stated = verify_manifest(manifest, config.update.release_pins, config.update.release_threshold).parsed
    spec = {
        "version": _NO_VERSION if stated is None else stated.version,
        "url": _NO_URL if url is None else url,
        "sha256": _stated_digest(stated) if sha256 is None else sha256,
        "signature": text,
    }
    facts = node_facts(
        config=config,
        build=build,
        layout=status.layout,
        update=update,
        slots=slots,
        spec=spec,
        now=int(clock.wall()),
        platform=this_platform(),
    )
    answer = judge(spec, facts, skip=_skipped(url, stated))
    answer.checks = [_as_asked(check, url, sha256, stated) for check in answer.checks]
    return answer


def check_json(answer: Acceptance) -> dict[str, object]:
    """The answer as JSON's values (spec/product.md section 1)."""
    refusal = answer.refusal
    return {
        "format": 1,
        "accepted": refusal is None,
        "refusal": None if refusal is None else {"code": refusal.code, "message": refusal.message},
        "checks": [{"code": c.code, "state": c.state, "message": c.message} for c in answer.checks],
    }


def _skipped(url: str | None, stated: Manifest | None) -> dict[str, str]:
    skip = {"version-mismatch": "no section was given to compare with"}
    if url is None:
        skip["bad-url"] = "no --url was given"
    if stated is None:
        skip["failed-version"] = "the manifest names no version"
    return skip


def _as_asked(check: Check, url: str | None, sha256: str | None, stated: Manifest | None) -> Check:
    """A check that passed only what stood in for a section's missing parts was skipped."""
    why = None
    if check.code == "bad-section" and (stated is None or (url is None and sha256 is None)):
        why = "no section was given"
    elif check.code == "digest-mismatch" and sha256 is None:
        why = "no --sha256 was given"
    return check if why is None or check.state != "passed" else Check(code=check.code, state="skipped", message=why)


def _stated_digest(stated: Manifest | None) -> str:
    platform = this_platform()
    mine = [] if stated is None else [artifact for artifact in stated.artifacts if artifact.platform == platform]
    return mine[0].sha256 if mine else _NO_DIGEST


def read_manifest(path: str) -> bytes:
    """A manifest's bytes from a file, or from standard input for `-`.

    Raises:
        UsageError: `unreadable-manifest`.
        NotPermitted: `unreadable-manifest`, this user may not.
    """
    try:
        if path == "-":
            return sys.stdin.buffer.read(ENVELOPE_LIMIT_BYTES + 1)
        # O_NONBLOCK opens a FIFO that nobody writes to; what somebody does write to it is waited for, as on stdin.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(handle, True)
        with open(handle, "rb") as file:
            return file.read(ENVELOPE_LIMIT_BYTES + 1)
    except PermissionError as error:
        raise NotPermitted(
            "unreadable-manifest",
            f"{path}: this user may not read it",
            "name a file that it may, or - for standard input",
        ) from error
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or "no name of a file"
        raise UsageError("unreadable-manifest", f"{path}: {said}", "name a file, or - for standard input") from error


def check_lines(answer: Acceptance, *, color: bool, accepted: str) -> list[str]:
    """The answer in lines, check by check; `accepted` ends them where nothing refused."""
    lines = []
    for check in answer.checks:
        style = RED if check.state == "failed" else DIM if check.state != "passed" else ""
        line = f"{_MARKS[check.state]}  {check.code:<20}  {clean(check.message)}"
        lines.append(paint(line, style, color=color) if style else line)
        if check.code == "manifest-signatures" and answer.verification is not None:
            lines += [f"      {v.kid or '(unread)'}: {v.why}" for v in answer.verification.signatures]
    if answer.refusal is None:
        return [*lines, accepted]
    lines.append(f"refused: {clean(answer.refusal.message)} ({answer.refusal.code})")
    return [*lines, f"  try: {clean(answer.refusal.hint)}"] if answer.refusal.hint else lines
