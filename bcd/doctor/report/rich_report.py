"""The report on a terminal: what is wrong at the top, wrapped to its width, colour saying again what words said."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bcd.doctor.finding import Finding, Level, Report
from bcd.doctor.report.words import MARKS, by_category, footer, problems, tally, verdict_line

STYLES = {
    Level.FAIL: "bold red",
    Level.WARN: "bold yellow",
    Level.UNKNOWN: "bold magenta",
    Level.NOTE: "cyan",
    Level.OK: "green",
    Level.SKIPPED: "dim",
}
_VERDICT_LEVELS = {"fail": Level.FAIL, "unknown": Level.UNKNOWN, "warn": Level.WARN, "ok": Level.OK}


def rich_report(report: Report, *, verbose: bool) -> RenderableType:
    """The whole report as one renderable."""
    head = Text(verdict_line(report), style=STYLES[_VERDICT_LEVELS[report.verdict]])
    parts: list[RenderableType] = [head]
    for name, finding in problems(report):
        parts += [Text(), _whole(name, finding)]
    parts += [Text(), _rest(report, verbose=verbose), Text(), Text(footer(report), style="dim")]
    return Group(*parts)


def _whole(name: str, finding: Finding) -> RenderableType:
    title = Text.assemble((f"{MARKS[finding.level]:<6}", STYLES[finding.level]), (name, "bold"))
    more = Table.grid(padding=(0, 1))
    more.add_column(style="dim", no_wrap=True, width=3)
    more.add_column(overflow="fold")
    for line in finding.evidence:
        more.add_row("saw", Text(line))
    if finding.hint:
        more.add_row("do", Text(finding.hint, style="bold"))
    more.add_row("see", Text(finding.link, style="dim"))
    return Group(title, Padding(Text(finding.message), (0, 0, 0, 2)), Padding(more, (0, 0, 0, 2)))


def _rest(report: Report, *, verbose: bool) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for category, findings in by_category(report):
        table.add_row(Text(category, style="bold"), _tally(findings))
        for finding in findings:
            if verbose or finding.level is Level.NOTE:
                mark = Text(f"  {MARKS[finding.level]}", style=STYLES[finding.level])
                name = finding.id.partition(".")[2]
                table.add_row(mark, Text.assemble((f"{name}: ", "dim"), finding.message))
                for line in finding.evidence if verbose else ():
                    table.add_row(Text("   saw", style="dim"), Text(line, style="dim"))
    return table


def _tally(findings: list[Finding]) -> Text:
    text = Text()
    for level in Level:
        part = tally(findings, (level,))
        if part:
            text.append(", " if text else "").append(part, STYLES[level])
    return text
