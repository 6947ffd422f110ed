"""The report for programs: JSON (of a published schema), JUnit for CI, Prometheus for node_exporter's textfiles."""

import json
from typing import Literal, TypedDict

from bcd.doctor.finding import Level, Report
from bcd.doctor.report.words import by_category

FORMAT = 1


class FindingJson(TypedDict):
    """One finding."""

    id: str
    category: str
    level: Literal["fail", "warn", "unknown", "note", "ok", "skipped"]
    message: str
    evidence: list[str]
    hint: str
    link: str


class ReportJson(TypedDict):
    """`bcd doctor --json`."""

    format: int
    complete: bool
    verdict: Literal["fail", "unknown", "warn", "ok"]
    findings: list[FindingJson]
    about: str
    looked_as: str
    started_at: int
    seconds: float
    attempts: int
    waited_seconds: float


def report_json(report: Report) -> dict[str, object]:
    """The report as JSON's values, a `ReportJson`."""
    return {
        "format": FORMAT,
        "complete": report.complete,
        "verdict": report.verdict,
        "findings": [
            {
                "id": finding.id,
                "category": finding.category,
                "level": finding.level.value,
                "message": finding.message,
                "evidence": list(finding.evidence),
                "hint": finding.hint,
                "link": finding.link,
            }
            for finding in report.findings
        ],
        "about": report.about,
        "looked_as": report.looked_as,
        "started_at": report.started_at,
        "seconds": round(report.seconds, 3),
        "attempts": report.attempts,
        "waited_seconds": round(report.waited_seconds, 3),
    }


def json_text(report: Report) -> str:
    """One JSON document."""
    return json.dumps(report_json(report), indent=2)


def junit_text(report: Report, *, strict: bool) -> str:
    """JUnit XML: a suite a category, a case a finding. What could not be told is an error, not a failure."""
    from xml.etree import ElementTree as ET  # noqa: PLC0415  # for one format

    root = ET.Element("testsuites", name="bcd doctor", time=f"{report.seconds:.3f}")
    failing = {Level.FAIL, Level.WARN} if strict else {Level.FAIL}
    for category, findings in by_category(report):
        suite = ET.SubElement(
            root,
            "testsuite",
            name=category,
            tests=str(len(findings)),
            failures=str(sum(1 for f in findings if f.level in failing)),
            errors=str(sum(1 for f in findings if f.level is Level.UNKNOWN)),
            skipped=str(sum(1 for f in findings if f.level is Level.SKIPPED)),
        )
        for finding in findings:
            case = ET.SubElement(suite, "testcase", classname=category, name=finding.id)
            text = "\n".join([finding.message, *finding.evidence, finding.hint]).strip()
            if finding.level in failing:
                ET.SubElement(case, "failure", message=finding.message, type=finding.level.value).text = text
            elif finding.level is Level.UNKNOWN:
                ET.SubElement(case, "error", message=finding.message, type="unknown").text = text
            elif finding.level is Level.SKIPPED:
                ET.SubElement(case, "skipped", message=finding.message)
            else:
                ET.SubElement(case, "system-out").text = f"{finding.level.value}: {text}"
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False)


def prometheus_text(report: Report) -> str:
    """The text exposition format, each check once with the worst of its findings."""
    lines = [
        "# HELP bcd_doctor_findings Findings of the last run, by level.",
        "# TYPE bcd_doctor_findings gauge",
        *(f'bcd_doctor_findings{{level="{level.value}"}} {report.count(level)}' for level in Level),
        "# HELP bcd_doctor_check The worst level of each check, as a label; always 1.",
        "# TYPE bcd_doctor_check gauge",
    ]
    for check_id in dict.fromkeys(finding.id for finding in report.findings):
        labels = f'id="{check_id}",category="{check_id.partition(".")[0]}",level="{report.worst(check_id).value}"'
        lines.append(f"bcd_doctor_check{{{labels}}} 1")
    lines += [
        "# HELP bcd_doctor_complete Whether every check had its say.",
        "# TYPE bcd_doctor_complete gauge",
        f"bcd_doctor_complete {int(report.complete)}",
        "# HELP bcd_doctor_start_time_seconds When the run started, in Unix seconds.",
        "# TYPE bcd_doctor_start_time_seconds gauge",
        f"bcd_doctor_start_time_seconds {report.started_at}",
        "# HELP bcd_doctor_duration_seconds How long the run took.",
        "# TYPE bcd_doctor_duration_seconds gauge",
        f"bcd_doctor_duration_seconds {report.seconds:.3f}",
    ]
    return "\n".join(lines)
