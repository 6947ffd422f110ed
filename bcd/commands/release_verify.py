"""`bcd release verify`: the node's own checks over a manifest, with given pins, on any machine. Changes nothing.

What only a node can know (its failed versions, its entrypoint, its slots) is skipped and said to be; what a publisher
may not know of the nodes (floor, platform, URL) is checked where it is given.
"""

import json
import time
from dataclasses import dataclass
from typing import NamedTuple

from bcd.commands.check import check_json, check_lines, read_manifest
from bcd.commands.moments import parse_moment
from bcd.commands.streams import note_defaults, print_lines
from bcd.core.acceptance import Acceptance, Check, NodeFacts, judge
from bcd.core.clock import utc_text
from bcd.core.config import UpdateConfig, is_pin, load_config
from bcd.core.errors import UsageError
from bcd.core.exits import ExitStatus
from bcd.core.manifest import Artifact, Manifest
from bcd.core.section import DaemonSection
from bcd.core.text import clean
from bcd.core.trust import verify_manifest

_NO_URL = "https://not-given.invalid/"
_NO_VERSION = "0.0.0"
_NO_DIGEST = "0" * 64


class Asked(NamedTuple):
    """What the options gave; None and empty where they gave nothing."""

    pins: tuple[str, ...]
    threshold: int | None
    config_path: str | None
    floor: int | None
    at: str | None
    platform: str | None
    url: str | None
    sha256: str | None


@dataclass(frozen=True, kw_only=True)
class Against:
    """What the manifest is judged by."""

    source: str
    """Where the pins come from, in words."""
    pins: tuple[str, ...]
    threshold: int
    now: int
    """Unix seconds."""
    now_given: bool
    """Else it is this machine's clock."""
    floor: int | None


def verify_release(path: str, asked: Asked, *, as_json: bool, color: bool) -> ExitStatus:
    """Say whether nodes with these pins would take the release, check by check.

    Raises:
        UsageError: the manifest or the configuration can't be read, or no pins were named.
        NotPermitted: this user may not read them.
    """
    against = _against(asked)
    answer = judge_against(read_manifest(path), against, asked)
    if as_json:
        print_lines([json.dumps(verify_json(answer, against, asked), indent=2)])
    else:
        accepted = "accepted: every check that was reached passes; what was skipped is the node's to say"
        print_lines([*_premises(against, asked), *check_lines(answer, color=color, accepted=accepted)])
    return ExitStatus.OK if answer.refusal is None else ExitStatus.PROBLEM


def judge_against(data: bytes, against: Against, asked: Asked) -> Acceptance:
    """Every check of the rules over a manifest. Raises nothing."""
    text = data.strip(b" \t\r\n").decode("utf-8", "surrogateescape")
    manifest = DaemonSection(version=_NO_VERSION, url=_NO_URL, sha256=_NO_DIGEST, signature=text).manifest
    stated = verify_manifest(manifest, against.pins, against.threshold).parsed
    file = _file(stated, asked)
    spec = {
        "version": _NO_VERSION if stated is None else stated.version,
        "url": asked.url or _NO_URL,
        "sha256": asked.sha256 or (_NO_DIGEST if file is None else file.sha256),
        "signature": text,
    }
    facts = NodeFacts(
        pins=against.pins,
        threshold=against.threshold,
        failed={},
        floor=against.floor or 0,
        now=against.now,
        platform=asked.platform or ("" if file is None else file.platform),
        clear_text=False,
        entrypoint=None,
    )
    answer = judge(spec, facts, skip=_skipped(against, asked))
    answer.checks = [_as_asked(check, asked) for check in answer.checks]
    return answer


def verify_json(answer: Acceptance, against: Against, asked: Asked) -> dict[str, object]:
    """The answer as JSON's values: that of `bcd update check`, what it was judged by, and each signature."""
    verdicts = () if answer.verification is None else answer.verification.signatures
    return {
        **check_json(answer),
        "signatures": [{"kid": verdict.kid, "pin": verdict.pin, "why": verdict.why} for verdict in verdicts],
        "against": {
            "pins": list(against.pins),
            "threshold": against.threshold,
            "now": against.now,
            "now_given": against.now_given,
            "floor": against.floor,
            "platform": asked.platform,
        },
    }


def _against(asked: Asked) -> Against:
    now = int(time.time()) if asked.at is None else parse_moment(asked.at)
    if asked.config_path is not None and not asked.pins:
        config = load_config(asked.config_path)
        note_defaults(config)
        update, source = config.update, asked.config_path
    elif asked.pins and asked.config_path is None:
        update, source = UpdateConfig(release_pins=_pins(asked.pins)), "--pins"
    else:
        what = "both --pins and --config" if asked.pins else "neither --pins nor --config"
        hint = "--pins sha256/…,sha256/… --threshold 2, or --config with a node's file"
        raise UsageError("bad-usage", f"whom do the nodes trust? {what} were given", hint)
    return Against(
        source=source,
        pins=update.release_pins,
        threshold=update.release_threshold if asked.threshold is None else asked.threshold,
        now=now,
        now_given=asked.at is not None,
        floor=asked.floor if asked.floor is not None else update.release_sequence or None,
    )


def _pins(given: tuple[str, ...]) -> tuple[str, ...]:
    pins = [pin.strip() for text in given for pin in text.split(",") if pin.strip()]
    for pin in pins:
        if not is_pin(pin):
            hint = "a pin is sha256/ and base64, as `bcd release keygen` and `inspect` print it"
            raise UsageError("bad-usage", f"--pins: {clean(pin, 80)!r} is no pin", hint)
    if not pins:
        raise UsageError("bad-usage", "--pins names no pin", "--pins sha256/…,sha256/…")
    return tuple(dict.fromkeys(pins))


def _file(stated: Manifest | None, asked: Asked) -> Artifact | None:
    """The file that is judged: the one that --sha256 names, else the largest, as when it is small enough all are."""
    files = () if stated is None else stated.artifacts
    mine = [file for file in files if asked.platform in (None, file.platform)]
    named = [file for file in mine if asked.sha256 is not None and file.sha256 == asked.sha256.lower()]
    return max(named or mine, key=lambda file: file.size, default=None)


def _skipped(against: Against, asked: Asked) -> dict[str, str]:
    skip = {
        "failed-version": "no node's records were looked at",
        "version-mismatch": "no section was given to compare with",
        "unsafe-entrypoint": "no node's entrypoint was looked at",
    }
    if asked.url is None:
        skip["bad-url"] = "no --url was given"
    if against.floor is None:
        skip["below-floor"] = "no --floor was given"
    if asked.platform is None:
        skip["no-artifact"] = "no --platform was given"
    return skip


def _as_asked(check: Check, asked: Asked) -> Check:
    """A check that passed only what stood in for a section's missing parts was skipped."""
    why = None
    if check.code == "bad-section" and asked.url is None and asked.sha256 is None:
        why = "no section was given"
    elif check.code == "digest-mismatch" and asked.sha256 is None:
        why = "no --sha256 was given"
    return check if why is None or check.state != "passed" else Check(code=check.code, state="skipped", message=why)


def _premises(against: Against, asked: Asked) -> list[str]:
    clock = "as --at says" if against.now_given else "this machine's clock"
    floor = "not given" if against.floor is None else f"{against.floor}"
    return [
        f"pins from {clean(against.source)}: {len(against.pins)}, threshold {against.threshold}",
        f"now {utc_text(against.now)} ({clock}); floor {floor}; platform {clean(asked.platform or 'not given')}",
    ]
