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
    "update": StatusJson,
    "update-check": AcceptanceJson,
    "update-clear-failed": ClearedJson,
    "update-history": HistoryJson,
    "version": VersionJson,
}
