"""The table of what the machines' scenarios took, at the end of a run of tests."""

from collections import defaultdict

import pytest


def print_times(reporter: pytest.TerminalReporter) -> None:
    """Scenario by systemd's version and way; nothing where no machine was booted."""
    times: dict[str, dict[str, float]] = defaultdict(dict)
    for report in reporter.getreports("passed"):
        for name, seconds in report.user_properties if report.when == "call" else ():
            scenario, _, column = name.partition("|")
            times[scenario][column] = float(str(seconds))
    columns = sorted({column for row in times.values() for column in row})
    if not columns:
        return
    reporter.section("seconds from the swap to the welcome, by systemd and way")
    reporter.write_line(f"{'':<52}" + "".join(f"{column:>12}" for column in columns))
    for scenario, row in sorted(times.items()):
        cells = "".join(f"{row[column]:>12.1f}" if column in row else f"{'':>12}" for column in columns)
        reporter.write_line(f"{scenario:<52}{cells}")
