"""What every test runs under."""

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.system.times import print_times

# No deadline: fsync on a busy machine takes as long as it takes. In CI the same examples come every time, so that a
# red run is a red change; everywhere else hypothesis goes on looking.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Here, since with many workers the conftest of tests/system is read by them alone."""
    print_times(terminalreporter)
