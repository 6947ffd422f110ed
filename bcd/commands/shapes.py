"""The machine output's types, by command: what tools/make_reference.py publishes and the tests hold the output to."""

from typing import Any, Literal, TypedDict

from bcd.core.statusjson import StatusJson
from bcd.doctor.report.machine import ReportJson
from bcd.doctor.selftest.report import SelfTestJson


class RefusalJson(TypedDict):
    """Why a release is refused."""

    code: str
    message: str


class CheckJson(TypedDict):
    """One check's end."""

    code: str
    state: Literal["passed", "failed", "skipped", "not-reached"]
    message: str


class AcceptanceJson(TypedDict):
    """`bcd update check --json`: one check for each code of the rules, in their order."""

    format: int
    accepted: bool
    refusal: RefusalJson | None
    checks: list[CheckJson]


class VerdictJson(TypedDict):
    """What one signature was worth against the pins."""

    kid: str
    pin: str | None
    """The pin that it counted for."""
    why: str


class AgainstJson(TypedDict):
    """What a manifest was judged by; `now` is Unix seconds, null is what was not given."""

    pins: list[str]
    threshold: int
    now: int
    now_given: bool
    """Whether --at gave it; else it is the clock of the machine that verified."""
    floor: int | None
    platform: str | None


class VerificationJson(AcceptanceJson):
    """`bcd release verify --json`: as `bcd update check`, what it was judged by, and each signature."""

    signatures: list[VerdictJson]
    against: AgainstJson


class ArtifactJson(TypedDict):
    """One file of a release."""

    name: str
    platform: str
    sha256: str
    size: int
    """Bytes."""


class KeyJson(TypedDict):
    """A key that a manifest lists; being listed is no trust."""

    kid: str
    pin: str


class SignatureJson(TypedDict):
    """One signature, held against the key that the manifest itself lists for it."""

    kid: str
    pin: str | None
    """Of the listed key; null where there is none of that kid."""
    valid: bool
    why: str


class InspectionJson(TypedDict):
    """`bcd release inspect --json`: what a manifest says, believed or not; times are Unix seconds."""

    format: int
    pins_checked: Literal[False]
    """Nothing here was held against pins; `bcd release verify` does that."""
    product: str
    version: str
    sequence: int
    issued_at: int
    expires_at: int
    canonical: bool
    artifacts: list[ArtifactJson]
    keys: list[KeyJson]
    signatures: list[SignatureJson]


class ClearedJson(TypedDict):
    """`bcd update --clear-failed --json`."""

    format: int
    cleared: list[str]
    unknown: list[str]
    """Versions that were named and are not among the failed ones."""


class HistoryJson(TypedDict):
    """`bcd update history --json`: newest first; each event has at least `at` (Unix seconds) and `event`."""

    format: int
    events: list[dict[str, Any]]


class VersionJson(TypedDict):
    """`bcd version --json`."""

    format: int
    version: str
    sequence: int
    built_at: int
    fakehw: bool
    platform: str


SHAPES: dict[str, type] = {
    "doctor": ReportJson,
    "doctor-self-test": SelfTestJson,
    "release-inspect": InspectionJson,
    "release-verify": VerificationJson,
    "update": StatusJson,
    "update-check": AcceptanceJson,
    "update-clear-failed": ClearedJson,
    "update-history": HistoryJson,
    "version": VersionJson,
}
