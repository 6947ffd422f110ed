"""The three futures of what is pending."""

from datetime import datetime

import pytest

from bcd.tui.forecast import futures
from bcd.tui.snapshot import Snapshot
from tests.tui import states


@pytest.mark.parametrize(
    "snapshot", [states.never_updated(), states.at_rest(), states.downloading(), states.config_broken()]
)
def test_nothing_pending_has_no_futures(snapshot: Snapshot) -> None:
    assert futures(snapshot, crash_loop_rollback=True) == ()


def test_a_pending_release_has_three_none_of_them_struck_out() -> None:
    welcomed, deadline, crashes = futures(states.pending(), crash_loop_rollback=True)
    due = datetime.fromtimestamp(states.NOW + 87.5).astimezone()
    assert "1.4.2 stays for good" in welcomed.what
    assert "floor 14 → 16" in welcomed.what
    assert deadline.when == f"at {due:%H:%M:%S}"
    assert "1.4.0" in deadline.what
    assert "systemd" in crashes.what
    assert [future.struck for future in (welcomed, deadline, crashes)] == ["", "", ""]


def test_without_a_unit_nobody_brings_a_crash_loop_back() -> None:
    assert "systemd" in futures(states.pending(), crash_loop_rollback=False)[2].struck


def test_without_an_agent_the_deadline_passes_and_nobody_acts() -> None:
    gone = states.changed(states.pending(), agent=None)
    assert "no agent" in futures(gone, crash_loop_rollback=True)[1].struck


def test_an_overdue_release_is_due_in_the_past() -> None:
    due = datetime.fromtimestamp(states.NOW - 14).astimezone()
    assert futures(states.overdue(), crash_loop_rollback=True)[1].when == f"at {due:%H:%M:%S}"
