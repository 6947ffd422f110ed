"""What every format says in words: the verdict's line, the marks, a category's tally."""

from collections.abc import Sequence

from bcd.doctor.finding import CATEGORIES, Finding, Level, Report

PROBLEMS = (Level.FAIL, Level.WARN, Level.UNKNOWN)
"""The levels that are shown whole, worst first."""

MARKS = {
    Level.FAIL: "FAIL",
    Level.WARN: "WARN",
    Level.UNKNOWN: "????",
    Level.NOTE: "note",
    Level.OK: "ok",
    Level.SKIPPED: "skip",
}
"""Words, since a sign may be missing from a font and a colour from a terminal."""

_NOUNS = {
    Level.FAIL: ("failure", "failures"),
    Level.WARN: ("warning", "warnings"),
    Level.UNKNOWN: ("could not be told", "could not be told"),
    Level.NOTE: ("note", "notes"),
    Level.OK: ("ok", "ok"),
    Level.SKIPPED: ("skipped", "skipped"),
}


def tally(findings: Sequence[Finding], levels: Sequence[Level] = tuple(Level)) -> str:
    """`1 failure, 2 warnings, 31 ok`."""
    parts = []
    for level in levels:
        count = sum(1 for finding in findings if finding.level is level)
        if count:
            parts.append(f"{count} {_NOUNS[level][count != 1]}")
    return ", ".join(parts)


def verdict_line(report: Report) -> str:
    """The one line that says it all."""
    heads = {
        "fail": "this node needs someone now",
        "unknown": "not everything could be looked at",
        "warn": "this node works, and someone should look",
        "ok": "all is well",
    }
    cut = "" if report.complete else " (cut short)"
    return f"{heads[report.verdict]}{cut}: {tally(report.findings)}"


def problems(report: Report) -> list[tuple[str, Finding]]:
    """What has to be shown whole, each with its name: worst first, then in the order of the checks.

    What could not be told for one and the same reason is one problem of many names: a configuration that does not read
    must not be told thirty times.
    """
    shown: list[tuple[list[str], Finding]] = []
    for level in PROBLEMS:
        for finding in (f for f in report.findings if f.level is level):
            same = next((s for s in shown if level is Level.UNKNOWN and _is_same(s[1], finding)), None)
            if same is None:
                shown.append(([finding.id], finding))
            elif finding.id not in same[0]:
                same[0].append(finding.id)
    return [(", ".join(names), finding) for names, finding in shown]


def _is_same(one: Finding, other: Finding) -> bool:
    return (one.level, one.message, one.evidence, one.hint) == (other.level, other.message, other.evidence, other.hint)


def by_category(report: Report) -> list[tuple[str, list[Finding]]]:
    """The findings of each category that has some, in the order of `CATEGORIES`."""
    groups = [(name, [f for f in report.findings if f.category == name]) for name in CATEGORIES]
    return [(name, group) for name, group in groups if group]


def footer(report: Report) -> str:
    """Who looked at what, and for how long."""
    waited = f", after {report.attempts} tries in {report.waited_seconds:.0f} s" if report.attempts > 1 else ""
    return f"{report.about}; looked as {report.looked_as} for {report.seconds:.2f} s{waited}"
