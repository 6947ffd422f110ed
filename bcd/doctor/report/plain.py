"""The report as plain text: no width, no colour, one thing a line; for pipes, serial lines and screen readers."""

from bcd.doctor.finding import Finding, Level, Report
from bcd.doctor.report.words import MARKS, by_category, footer, problems, tally, verdict_line


def plain_lines(report: Report, *, verbose: bool) -> list[str]:
    """The report's lines: the verdict, the problems with their remedy, then the quiet rest folded."""
    lines = [verdict_line(report)]
    for name, finding in problems(report):
        lines += ["", *_whole(name, finding)]
    lines.append("")
    for category, findings in by_category(report):
        lines.append(f"{category:<14} {tally(findings)}")
        for finding in findings:
            if verbose or finding.level is Level.NOTE:
                lines.append(f"  {MARKS[finding.level]:<5} {finding.id}: {finding.message}")
                lines += [f"        saw: {line}" for line in finding.evidence if verbose]
    return [*lines, "", footer(report)]


def _whole(name: str, finding: Finding) -> list[str]:
    lines = [f"{MARKS[finding.level]}  {name}: {finding.message}"]
    lines += [f"      saw: {line}" for line in finding.evidence]
    if finding.hint:
        lines.append(f"      do:  {finding.hint}")
    return [*lines, f"      see: {finding.link}"]
