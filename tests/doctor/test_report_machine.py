"""JSON, JUnit and Prometheus: each parses by its own rules, and all tell the same findings."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bcd.doctor.finding import CATEGORIES, Finding, Level, Report
from bcd.doctor.report.machine import FindingJson, ReportJson, json_text, junit_text, prometheus_text
from bcd.doctor.report.plain import plain_lines
from tests.doctor.reports import FINDINGS, of_a_sick_node, report

REPORTS = [
    pytest.param(report, id="one of each level"),
    pytest.param(of_a_sick_node, id="a sick node"),
    pytest.param(lambda: report(FINDINGS[0]), id="all is well"),
    pytest.param(lambda: report(complete=False, attempts=3, waited_seconds=2.5), id="cut short"),
]
SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "schemas" / "doctor.schema.json"


@pytest.fixture
def shown(request: pytest.FixtureRequest) -> Report:
    """The report to be shown."""
    made = request.param()
    assert isinstance(made, Report)
    return made


def _levels(shown: Report) -> Counter[str]:
    return Counter(finding.level.value for finding in shown.findings)


@pytest.mark.parametrize("shown", REPORTS, indirect=True)
def test_json_is_one_document_of_the_published_type(shown: Report) -> None:
    """Nothing beside it, no field more than the type has, and every value is the report's."""
    text = json_text(shown)
    assert msgspec.json.decode(text, type=ReportJson, strict=True) == json.loads(text)
    document = json.loads(text)
    assert set(document) == set(ReportJson.__annotations__)
    assert all(set(finding) == set(FindingJson.__annotations__) for finding in document["findings"])
    assert document["format"] == 1
    assert (document["complete"], document["verdict"]) == (shown.complete, shown.verdict)
    assert [(f["id"], f["level"], f["message"], tuple(f["evidence"]), f["hint"]) for f in document["findings"]] == [
        (f.id, f.level.value, f.message, f.evidence, f.hint) for f in shown.findings
    ]
    assert {f["category"] for f in document["findings"]} <= set(CATEGORIES)


def test_the_published_schema_is_that_type() -> None:
    """What is under docs/ was made of it."""
    published = json.loads(SCHEMA.read_text())
    made = json.loads(json.dumps(msgspec.json.schema(ReportJson)))
    assert {key: published[key] for key in made} == made


@pytest.mark.parametrize("shown", REPORTS, indirect=True)
@pytest.mark.parametrize("strict", [False, True])
def test_junit_parses_and_its_counts_agree(shown: Report, strict: bool) -> None:
    """A suite a category, a case a finding; each suite's numbers are what is in it."""
    root = ET.fromstring(junit_text(shown, strict=strict))
    assert root.tag == "testsuites"
    cases: Counter[str] = Counter()
    for suite in root:
        kinds = Counter(kind.tag for case in suite for kind in case)
        assert suite.get("name") in CATEGORIES
        assert int(suite.attrib["tests"]) == len(suite)
        assert int(suite.attrib["failures"]) == kinds["failure"]
        assert int(suite.attrib["errors"]) == kinds["error"]
        assert int(suite.attrib["skipped"]) == kinds["skipped"]
        cases += kinds
        assert all(case.get("name", "").partition(".")[0] == suite.get("name") for case in suite)
    levels = _levels(shown)
    failing = ("fail", "warn") if strict else ("fail",)
    assert sum(len(suite) for suite in root) == len(shown.findings)
    assert cases["failure"] == sum(levels[level] for level in failing)
    assert (cases["error"], cases["skipped"]) == (levels["unknown"], levels["skipped"])


def test_junit_carries_the_remedy() -> None:
    """Who reads the failure in CI needs nothing else."""
    root = ET.fromstring(junit_text(report(), strict=False))
    (failure,) = root.iter("failure")
    assert failure.get("message") == FINDINGS[1].message
    assert failure.text is not None
    assert FINDINGS[1].hint in failure.text
    assert "[bold]is no markup[/bold]" in failure.text


def test_junit_survives_what_xml_gives_a_meaning_to() -> None:
    """Brackets, quotes and ampersands come back as they were."""
    evil = "a <b> & \"c\" 'd' ]]> <!-- -->"
    shown = report(Finding(id="slots.links", level=Level.FAIL, message=evil, evidence=(evil,), hint=evil))
    (failure,) = ET.fromstring(junit_text(shown, strict=False)).iter("failure")
    assert failure.get("message") == evil
    assert failure.text == f"{evil}\n{evil}\n{evil}"


@pytest.mark.parametrize("shown", REPORTS, indirect=True)
def test_prometheus_text_parses_and_tells_the_same_counts(shown: Report) -> None:
    """By prometheus_client's own parser; each check once, with its worst level."""
    text = prometheus_text(shown) + "\n"
    families = {family.name: family for family in text_string_to_metric_families(text)}
    counts = {sample.labels["level"]: sample.value for sample in families["bcd_doctor_findings"].samples}
    assert counts == {level.value: _levels(shown)[level.value] for level in Level}
    checks = {sample.labels["id"]: sample for sample in families["bcd_doctor_check"].samples}
    assert len(checks) == len(families["bcd_doctor_check"].samples)
    assert {id_: sample.labels["level"] for id_, sample in checks.items()} == {
        finding.id: shown.worst(finding.id).value for finding in shown.findings
    }
    assert {sample.value for sample in checks.values()} == {1}
    assert all(sample.labels["category"] == id_.partition(".")[0] for id_, sample in checks.items())
    assert families["bcd_doctor_complete"].samples[0].value == shown.complete
    assert families["bcd_doctor_start_time_seconds"].samples[0].value == shown.started_at
    assert all(family.documentation and family.type == "gauge" for family in families.values())


@pytest.mark.parametrize("shown", REPORTS, indirect=True)
def test_prometheus_text_is_what_node_exporter_takes(shown: Report) -> None:
    """Its textfile collector refuses a file with a timestamp, with a type told twice or with a line that ends early."""
    lines = prometheus_text(shown).splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert all(
        re.fullmatch(r"[a-z_]+(\{[a-z]+=\"[^\"\\\n]*\"(,[a-z]+=\"[^\"\\\n]*\")*\})? [0-9.]+", s) for s in samples
    )
    types = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert len(types) == len(set(types))
    assert len(samples) == len(set(samples))


@pytest.mark.parametrize("shown", REPORTS, indirect=True)
def test_every_format_tells_the_same_findings(shown: Report) -> None:
    """Ids and messages of JSON, JUnit and plain agree; so do the levels' counts in all."""
    said = Counter((f["id"], f["message"]) for f in json.loads(json_text(shown))["findings"])
    cases = ET.fromstring(junit_text(shown, strict=False)).iter("testcase")
    in_junit = Counter(
        (case.attrib["name"], kind.get("message") or str(kind.text).partition(": ")[2].splitlines()[0])
        for case in cases
        for kind in case
    )
    assert in_junit == said
    plain = "\n".join(plain_lines(shown, verbose=True))
    assert all(f"{id_}: {message}" in plain or message in plain for id_, message in said)
    for level, count in _levels(shown).items():
        assert f'bcd_doctor_findings{{level="{level}"}} {count}' in prometheus_text(shown)


@pytest.mark.parametrize(
    ("levels", "verdict"),
    [
        ((Level.OK, Level.NOTE, Level.SKIPPED), "ok"),
        ((Level.OK, Level.WARN), "warn"),
        ((Level.WARN, Level.UNKNOWN), "unknown"),
        ((Level.UNKNOWN, Level.FAIL, Level.WARN), "fail"),
        ((), "ok"),
    ],
)
def test_the_verdict_is_the_worst_there_is(levels: tuple[Level, ...], verdict: str) -> None:
    """What could not be told is worse than a warning, and better than a failure."""
    findings = tuple(Finding(id="slots.links", level=level, message="x") for level in levels)
    assert replace(report(), findings=findings).verdict == verdict
