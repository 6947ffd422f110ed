"""Under a real systemd, booted for it: the crash loop's rollback, and what is no crash loop."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.machine import Machine, booted, why_not

pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

INSIDE = Path(__file__).parent / "inside.py"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A freshly booted machine."""
    with booted(tmp_path) as running:
        yield running


def play(machine: Machine, story: str) -> Any:
    """Play a story inside, and return what was seen."""
    ran = machine.python(INSIDE, story)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout)


def test_a_release_that_exits_at_once_is_brought_back_by_systemd(machine: Machine) -> None:
    """The good one before it is confirmed; the bad one ends failed, and the good one runs again, its floor kept."""
    seen = play(machine, "good_then_crash_loop")
    assert seen["status"]["code"] == "failed-version"
    assert "did not run" in seen["status"]["message"]
    assert seen["update"]["version"] == "1.4.1"
    assert seen["update"]["floor"] == 15
    assert seen["update"]["pending"] is None
    assert [failed["version"] for failed in seen["update"]["failed"]] == ["1.4.2"]
    assert seen["active"] == "active"
    assert set(seen["service"].values()) == {"ok"}
    assert seen["seconds"] < 60


def test_a_release_that_ends_well_at_once_is_brought_back_too(machine: Machine) -> None:
    """Status 0 is no success for an agent; and a service that is stopped stays stopped."""
    seen = play(machine, "ends_at_once")
    assert "did not run" in seen["status"]["message"]
    assert (seen["update"]["version"], seen["update"]["floor"]) == ("1.4.1", 15)
    assert seen["state"] == "inactive"


def test_a_release_that_crashes_once_is_not_rolled_back(machine: Machine) -> None:
    """One crash is no crash loop: it is restarted, welcomed and confirmed."""
    seen = play(machine, "one_crash")
    assert seen["crashed"] is True
    assert int(seen["restarts"]) >= 1
    assert (seen["update"]["version"], seen["update"]["floor"], seen["update"]["failed"]) == ("1.4.1", 15, [])


def test_the_rollback_unit_run_for_nothing_changes_nothing(machine: Machine) -> None:
    """Neither without a pending update, nor with one whose service runs well."""
    seen = play(machine, "rollback_for_nothing")
    assert seen["before"] == seen["after"] == {"current": "b", "previous": "a"}
    assert seen["status"] == 0
    assert "no crash loop" in seen["said"]


def test_an_operators_unit_at_our_name_is_kept_and_the_update_waits(machine: Machine) -> None:
    """It is retryable: once the operator moved it away, the same section is taken."""
    seen = play(machine, "operators_unit_in_the_way")
    assert seen["kept"] is True
    assert seen["links"] == {"current": "a", "previous": None}
    assert seen["update"]["version"] == "1.4.1"


def test_a_service_that_starts_another_program_gets_no_update(machine: Machine) -> None:
    """Field report 20: refused as `unsafe-entrypoint`, nothing adopted, and doctor fails."""
    seen = play(machine, "another_program")
    assert seen["status"]["code"] == "unsafe-entrypoint"
    assert seen["links"] == {"current": None, "previous": None}
    assert seen["doctor"] == {"service.exec-start": "fail"}
