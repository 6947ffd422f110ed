"""The crash-loop units beside an operator's, and started for nothing."""

import json

import pytest

from tests.system.machine import why_not
from tests.system.station import NODE, Station

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.parametrize("installed", ["root"], indirect=True),
]

ROLLBACK = "bcd-rollback.service"


def test_the_rollback_unit_run_for_nothing_changes_nothing(installed: Station) -> None:
    """Neither without a pending update, nor with one whose service runs well."""
    node, machine = installed.node, installed.machine
    node.wait_section(node.push(installed.publish("1.4.1", 15)), "READY")
    for _ in range(2):
        machine.systemctl("start", ROLLBACK)
    assert installed.update()["links"] == {"current": "b", "previous": "a"}
    pending = json.dumps({"from_slot": "a", "to_slot": "b", "state": "swapped"}, separators=(",", ":"))
    (installed.root.records / "upgrade.json").write_text(pending)
    machine.run("systemctl", "start", ROLLBACK, check=True)
    (installed.root.records / "upgrade.json").unlink()
    assert "no crash loop" in machine.journal("-u", ROLLBACK)
    assert installed.update()["links"] == {"current": "b", "previous": "a"}


def test_a_service_that_is_stopped_stays_stopped(installed: Station) -> None:
    """`Restart=always`, which our drop-in sets, is about failures and not about an operator."""
    node, machine = installed.node, installed.machine
    node.wait_section(node.push(installed.publish("1.4.1", 15)), "READY")
    machine.systemctl("stop", NODE)
    installed.node.pause(3)
    assert machine.systemctl("is-active", NODE) == "inactive"


def test_an_operators_unit_at_our_name_is_kept_and_the_update_waits(installed: Station) -> None:
    """It is retryable: once the operator moved it away, the same section is taken."""
    path = installed.machine.path(f"/etc/systemd/system/{ROLLBACK}")
    path.write_text("[Service]\nExecStart=/bin/true\n")
    generation = installed.node.push(installed.publish("1.4.1", 15))
    installed.node.wait_trouble("io-error")
    assert path.read_text() == "[Service]\nExecStart=/bin/true\n"
    assert installed.update()["links"] == {"current": "a", "previous": None}
    path.unlink()
    installed.node.wait_section(generation, "READY")
    assert installed.settled() == ("1.4.1", 15, [])


def test_a_service_that_starts_another_program_gets_no_update(installed: Station) -> None:
    """Field report 20: refused as `unsafe-entrypoint`, nothing adopted, and doctor fails."""
    installed.machine.run("cp", "/usr/local/bin/bcd", "/usr/local/bin/bcd-elsewhere", check=True)
    installed.machine.drop_in(NODE, "10-mine", "[Service]\nExecStart=\nExecStart=/usr/local/bin/bcd-elsewhere node\n")
    installed.machine.systemctl("restart", NODE)
    status = installed.node.wait_section(installed.node.push(installed.publish("1.4.1", 15)), "FAILED")
    assert status["code"] == "unsafe-entrypoint"
    assert installed.update()["links"] == {"current": None, "previous": None}
    assert installed.doctor("service.exec-start") == {"service.exec-start": "fail"}
