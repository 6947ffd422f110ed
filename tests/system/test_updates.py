"""Updates under a real systemd, by the installer's units, as root alone and with the helper; of two systemds each."""

import time
from collections.abc import Callable

import pytest

from bcd.lab.behaviour import CUT, SILENT, WELCOME
from tests.system.machine import LAB, why_not
from tests.system.memory import limited
from tests.system.station import (
    CRASHES_ONCE,
    EATS_MEMORY,
    ENDS_WELL,
    EXITS,
    GARBAGE,
    HANGS,
    NODE,
    TEXT,
    Station,
)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

Told = Callable[[str, float], None]

root_alone = pytest.mark.parametrize("installed", ["root"], indirect=True)
split = pytest.mark.parametrize("installed", ["split"], indirect=True)


def test_a_good_release_is_confirmed_and_so_is_the_next(installed: Station, took: Told) -> None:
    """Twice in a row, in one process: each exec is the same pid, and no start for systemd."""
    node, pid = installed.node, installed.machine.show(NODE, "MainPID")
    for number, slot in ((1, "b"), (2, "a")):
        generation = node.push(installed.publish(f"1.4.{number}", 14 + number))
        began = installed.swapped_at(slot)
        node.wait_section(generation, "READY")
        took(f"good release {number}", time.monotonic() - began)
    assert installed.settled() == ("1.4.2", 16, [])
    assert installed.machine.show(NODE, "MainPID") == pid
    assert installed.machine.show(NODE, "NRestarts") == "0"
    assert "1.4.2 runs" in installed.machine.show(NODE, "StatusText")
    assert set(installed.doctor("service.*", "helper.*", "slots.*", "update.*").values()) <= {"ok", "skipped", "note"}


@pytest.mark.parametrize(
    ("name", "file", "why"),
    [
        ("exits at once", EXITS, "did not run"),
        ("ends well at once", ENDS_WELL, "did not run"),
        ("text that is no program", TEXT, "could not be started"),
        ("garbage bytes", GARBAGE, "could not be started"),
    ],
    ids=["exits", "ends-well", "text", "garbage"],
)
def test_a_release_that_does_not_run_is_brought_back(
    installed: Station, took: Told, name: str, file: bytes, why: str
) -> None:
    """By the unit, or by the old binary itself where not even the exec works; the floor is kept, the version failed."""
    generation = installed.node.push(installed.publish("1.4.1", 15, file))
    seconds, status = installed.went_back(generation, "1.4.0", slot="b")
    took(name, seconds)
    assert (status["code"], why in status["message"]) == ("failed-version", True), status
    assert installed.settled() == ("1.4.0", 14, ["1.4.1"])
    assert installed.machine.show(NODE, "ActiveState") == "active"


def test_a_release_that_is_killed_for_its_memory_is_brought_back(installed: Station, took: Told) -> None:
    """By the kernel's OOM killer, again and again."""
    with limited(installed.machine, 400 * 2**20) as limit:
        before = limit.kills()
        generation = installed.node.push(installed.publish("1.4.1", 15, EATS_MEMORY))
        seconds, _ = installed.went_back(generation, "1.4.0", slot="b")
        assert limit.kills() - before >= 3
    took("killed for memory", seconds)
    assert installed.settled() == ("1.4.0", 14, ["1.4.1"])


@root_alone
def test_a_release_that_hangs_before_its_first_line_is_brought_back(installed: Station, took: Told) -> None:
    """It has no timer yet: the exec's time limit ends it, and then each start's (5 s here; the unit gives 60)."""
    installed.machine.drop_in(NODE, "20-impatient", "[Service]\nTimeoutStartSec=5\n")
    installed.machine.systemctl("restart", NODE)
    generation = installed.node.push(installed.publish("1.4.1", 15, HANGS))
    seconds, _ = installed.went_back(generation, "1.4.0", slot="b", seconds=150)
    took("hangs before its first line", seconds)
    assert installed.settled() == ("1.4.0", 14, ["1.4.1"])
    assert "watchdog" in installed.machine.journal("-u", NODE).lower()


@split
def test_the_helper_brings_back_a_release_that_hangs(installed: Station, took: Told) -> None:
    """Root's own deadline; the units' is disarmed here, so that nothing else can."""
    installed.machine.drop_in(NODE, "20-patient", "[Service]\nTimeoutStartSec=600\n")
    generation = installed.node.push(installed.publish("1.4.1", 15, HANGS))
    seconds, _ = installed.went_back(generation, "1.4.0", slot="b", seconds=200)
    took("hangs, helper's deadline", seconds)
    assert installed.settled() == ("1.4.0", 14, ["1.4.1"])


@root_alone
def test_a_release_that_nobody_welcomes_goes_back_at_its_deadline(installed: Station, took: Told) -> None:
    """The real 120 s; an operator restarts the service in between, which gives it no more time."""
    bad = installed.publish("1.4.1", 15)
    installed.node.behave(SILENT, to=bad)
    generation = installed.node.push(bad)
    began = installed.swapped_at("b")
    for _ in range(3):
        time.sleep(8)
        installed.machine.systemctl("restart", NODE)
    status = installed.node.wait_section(generation, "FAILED", 150)
    installed.node.wait_welcome("1.4.0")
    seconds = time.monotonic() - began
    took("never welcomed, three restarts by hand", seconds)
    assert "not welcomed" in status["message"]
    assert 115 < seconds < 140
    assert installed.settled() == ("1.4.0", 14, ["1.4.1"])


def test_a_release_that_crashes_once_is_not_rolled_back(installed: Station, took: Told) -> None:
    healthy = installed.machine.path(LAB / "healthy")
    healthy.write_bytes(installed.binaries.make("1.4.1", 15))
    healthy.chmod(0o755)
    generation = installed.node.push(installed.publish("1.4.1", 15, CRASHES_ONCE))
    began = installed.swapped_at("b")
    installed.node.wait_section(generation, "READY")
    took("one crash, then healthy (confirmed)", time.monotonic() - began)
    assert (installed.root.data / "crashed").exists()
    assert installed.settled() == ("1.4.1", 15, [])


def test_a_gateway_without_power_for_a_while_is_no_verdict(installed: Station, took: Told) -> None:
    good = installed.publish("1.4.1", 15)
    generation = installed.node.push(good)
    began = installed.swapped_at("b")
    installed.node.behave(CUT)
    installed.node.drop_session()
    time.sleep(10)
    installed.node.behave(WELCOME)
    installed.node.wait_section(generation, "READY", 60)
    took("gateway gone for 10 s (confirmed)", time.monotonic() - began)
    assert installed.settled() == ("1.4.1", 15, [])


@pytest.mark.parametrize("step", ["staged", "recorded", "current-linked", "launched", "floor-raised"])
def test_power_that_fails_in_the_middle_ends_well(breakable: Station, took: Told, step: str) -> None:
    """The machine boots again and ends with the release confirmed: none of these is the release's fault."""
    breakable.arm(step)
    breakable.node.wait_welcome("1.4.0")
    generation = breakable.node.push(breakable.publish("1.4.1", 15))
    breakable.node.wait_cut()
    breakable.machine.cut_power()
    began = time.monotonic()
    breakable.machine.boot()
    breakable.node.wait_section(generation, "READY", 90)
    took(f"power fails at {step} (boot to confirmed)", time.monotonic() - began)
    assert breakable.settled() == ("1.4.1", 15, [])


def test_power_that_fails_while_a_bad_release_crashes_brings_the_old_one_back(installed: Station, took: Told) -> None:
    installed.machine.drop_in(NODE, "20-slow", "[Service]\nRestartSec=3600\n")
    generation = installed.node.push(installed.publish("1.4.1", 15, EXITS))
    installed.swapped_at("b")
    installed.machine.drop_in(NODE, "20-slow", "[Service]\nRestartSec=1\n")
    installed.machine.cut_power()
    began = time.monotonic()
    installed.machine.boot()
    installed.node.wait_section(generation, "FAILED", 60)
    installed.node.wait_welcome("1.4.0")
    took("power fails under a bad release (boot to welcome)", time.monotonic() - began)
    assert installed.settled() == ("1.4.0", 14, ["1.4.1"])


def test_old_units_of_ours_are_written_anew_and_an_operators_drop_in_stays(installed: Station, took: Told) -> None:
    units = installed.machine.path("/etc/systemd/system")
    theirs = installed.machine.drop_in(NODE, "10-theirs", "[Service]\nEnvironment=THEIRS=1\n")
    node = installed.node
    node.wait_section(node.push(installed.publish("1.4.1", 15)), "READY")
    for name in ("bcd-rollback.service", "bcd.service.d/50-bcd-rollback.conf"):
        text = (units / name).read_text()
        (units / name).write_text(text.splitlines()[0] + "\n[Unit]\nDescription=of an older bcd\n")
    installed.machine.systemctl("daemon-reload")
    assert "warn" in installed.doctor("service.*").values()
    generation = node.push(installed.publish("1.4.2", 16, EXITS))
    seconds, _ = installed.went_back(generation, "1.4.1", slot="a")
    took("exits at once, over old unit files", seconds)
    assert theirs.read_text() == "[Service]\nEnvironment=THEIRS=1\n"
    assert "THEIRS=1" in installed.machine.show(NODE, "Environment")
    assert installed.doctor("service.units", "service.crash-loop-rollback") == {
        "service.units": "ok",
        "service.crash-loop-rollback": "ok",
    }
