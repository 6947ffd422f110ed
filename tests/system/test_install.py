"""The installer under a real systemd: what it makes, what it leaves alone, what it refuses, and how it takes it away."""

import json
import time
from pathlib import Path

import pytest

from tests.system.machine import Machine, why_not
from tests.system.station import EXITS, HELPER, NODE, Station

pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

_WORST_SCORE = 2.0


def words(here: Station, *more: str) -> list[str]:
    return [*more, *(["--split"] if here.split else [])]


def test_what_it_makes_and_that_a_second_run_changes_nothing(installed: Station) -> None:
    machine = installed.machine
    stat = machine.run(
        "stat", "-c", "%U:%G %a %n", "/usr/local/bin/bcd", "/usr/local/lib/bcd", "/var/lib/bcd", "/etc/bcd/config.toml"
    )
    owner = "bcd:bcd" if installed.split else "root:root"
    assert stat.stdout.splitlines() == [
        "root:root 755 /usr/local/bin/bcd",
        "root:root 755 /usr/local/lib/bcd",
        f"{owner} 755 /var/lib/bcd",
        "root:root 644 /etc/bcd/config.toml",
    ]
    text = installed.root.config.read_text()
    assert "# Ours, as we like it." in text
    assert 'node_id = "machine"  # by its certificate' in text
    assert machine.show(NODE, "User") == ("bcd" if installed.split else "")
    assert machine.systemctl("is-enabled", NODE) == "enabled"
    before = machine.show(NODE, "MainPID")
    again = installed.installer(*words(installed, "--binary", "/srv/bcd-1.4.0", "--threshold", "2"))
    assert (again.returncode, again.stdout) == (0, "/usr/local/bin/bcd is bcd 1.4.0 already\n"), again.stderr
    assert machine.show(NODE, "MainPID") == before
    assert {*installed.doctor("configuration.*", "service.*", "helper.*", "slots.*").values()} <= {
        "ok",
        "skipped",
        "note",
    }


def test_the_agent_says_that_it_is_ready_and_its_log_lines_have_levels(installed: Station) -> None:
    machine = installed.machine
    assert machine.show(NODE, "Type") == "notify"
    assert "bcd 1.4.0 runs as node" in machine.show(NODE, "StatusText")
    lines = [json.loads(line) for line in machine.run("journalctl", "-u", NODE, "-o", "json").stdout.splitlines()]
    said = {str(line["MESSAGE"]): line["PRIORITY"] for line in lines}
    assert said["bcd.node.main: bcd 1.4.0 (sequence 14) starts as node"] == "6"
    node = installed.node
    node.wait_section(node.push(installed.publish("1.4.1", 15, EXITS)), "FAILED", 60)
    node.wait_welcome("1.4.0")
    assert "did not run" in machine.run("journalctl", "-u", NODE, "-p", "err").stdout


def test_what_the_agent_started_lives_on_when_it_is_restarted_replaced_or_stopped(installed: Station) -> None:
    machine = installed.machine
    group = machine.show(NODE, "ControlGroup")
    find = f"for d in /sys/fs/cgroup /sys/fs/cgroup/systemd; do test -e $d{group}/cgroup.procs && echo $d; done"
    where = machine.run("sh", "-c", find).stdout.split()[-1]
    start = f"sleep 1000 >/dev/null 2>&1 & echo $! | tee {where}{group}/cgroup.procs"
    workload = machine.run("sh", "-c", start).stdout.strip()
    machine.systemctl("restart", NODE)
    node = installed.node
    node.wait_section(node.push(installed.publish("1.4.1", 15)), "READY")
    machine.systemctl("stop", NODE)
    assert machine.systemctl("is-active", NODE) == "inactive"
    assert machine.run("sh", "-c", f"kill -0 {workload}").returncode == 0


def test_a_node_that_updated_itself_keeps_its_program_unless_told(installed: Station) -> None:
    """Section 6, step 3: what an installer puts in the link's place is adopted by the next update."""
    node = installed.node
    node.wait_section(node.push(installed.publish("1.4.1", 15)), "READY")
    old = installed.installer(*words(installed, "--binary", "/srv/bcd-1.4.0"))
    assert old.returncode == 0
    assert "has updated itself to bcd 1.4.1" in old.stdout
    new = words(installed, "--binary", installed.bring("1.4.2", 16))
    refused = installed.installer(*new)
    assert refused.returncode == 2
    assert "--replace" in refused.stderr
    assert installed.root.link("current") == "bcd-b"
    replaced = installed.installer(*new, "--replace")
    assert replaced.returncode == 0, replaced.stderr
    node.wait_welcome("1.4.2")
    assert installed.doctor("slots.entrypoint-link") == {"slots.entrypoint-link": "fail"}
    node.wait_section(node.push(installed.publish("1.4.3", 17)), "READY")
    assert installed.settled() == ("1.4.3", 17, [])
    assert set(installed.doctor("slots.*", "service.*").values()) <= {"ok", "skipped", "note"}


def test_what_it_refuses_it_leaves_as_it_was(installed: Station) -> None:
    machine = installed.machine
    node = installed.node
    older = words(installed, "--binary", installed.bring("1.3.0", 9))
    newer = words(installed, "--binary", installed.bring("1.4.5", 19))
    units = machine.path("/etc/systemd/system")
    before = sorted(machine.path("/usr/local/bin").iterdir())

    def refused(line: list[str], said: str) -> None:
        ran = installed.installer(*line)
        assert (ran.returncode, said in ran.stderr) == (2, True), ran.stdout + ran.stderr
        assert "\n  " in ran.stderr  # what to do
        assert sorted(machine.path("/usr/local/bin").iterdir()) == before

    refused(older, "older than what is installed")
    refused([*newer, "--sha256", "0" * 64], "not to what --sha256 says")
    refused(words(installed, "--binary", "/etc/hostname"), "does not run here")
    other_way = [word for word in newer if word != "--split"] if installed.split else [*newer, "--split"]
    node.wait_section(node.push(installed.publish("1.4.1", 15)), "READY")
    refused(other_way, "[helper]" if installed.split else "records are in")
    ours = (units / NODE).read_text()
    (units / NODE).write_text("[Service]\nExecStart=/usr/local/bin/bcd node\n")
    refused([*newer, "--replace"], "is not bcd's")
    (units / NODE).write_text(ours)
    (installed.root.records / "upgrade.json").write_text("{}")
    refused([*newer, "--replace"], "an update is pending")
    (installed.root.records / "upgrade.json").unlink()
    (installed.root.config).write_text(installed.root.config.read_text() + "\n[nodes]\n")
    refused([*newer, "--replace", "--threshold", "3", "--pins", "sha256/x"], "is no pin")


def test_it_takes_away_what_it_made_and_keeps_what_a_node_knows(installed: Station) -> None:
    machine = installed.machine
    node = installed.node
    node.wait_section(node.push(installed.publish("1.4.1", 15)), "READY")
    mine = machine.drop_in(NODE, "10-theirs", "[Service]\nEnvironment=THEIRS=1\n")
    gone = installed.installer("--uninstall")
    assert gone.returncode == 0, gone.stderr
    assert not machine.path("/usr/local/bin/bcd").is_symlink()
    assert machine.systemctl("show", "--value", "--property=LoadState", "bcd-rollback.service") == "not-found"
    assert mine.exists()
    assert (installed.root.records / "update.json").exists()
    assert installed.root.config.exists()
    again = installed.installer(*words(installed, "--binary", "/srv/bcd-1.4.0"))
    assert again.returncode == 2, "below the floor, which was kept"
    assert "release floor" in again.stderr
    back = installed.installer(*words(installed, "--binary", installed.bring("1.4.1", 15)))
    assert back.returncode == 0, back.stderr
    node.wait_welcome("1.4.1")
    purged = installed.installer("--uninstall", "--purge")
    assert purged.returncode == 0, purged.stderr
    for path in ("/etc/bcd/config.toml", "/usr/local/lib/bcd", "/var/lib/bcd", "/usr/local/bin/bcd"):
        assert not machine.path(path).exists()
    assert not [path.name for path in machine.path("/etc/systemd/system").glob("bcd*") if path.is_file()]
    assert machine.run("id", "bcd").returncode != 0


def test_the_units_are_tight(machine: Machine, tmp_path: Path) -> None:
    """systemd's own score: 0 is none of its concerns, 10 all of them."""
    import shutil

    from tests.system.machine import TREE

    shutil.copytree(TREE / "packaging", machine.path("/srv/packaging"))
    for name in ("root/bcd.service", "split/bcd.service", f"split/{HELPER}"):
        said = machine.run("systemd-analyze", "security", "--offline=true", f"/srv/packaging/systemd/{name}").stdout
        score = float(said.split("Overall exposure level for")[1].split(":")[1].split()[0])
        print(name, score)
        assert score <= _WORST_SCORE
        verified = machine.run("systemd-analyze", "verify", "--man=no", f"/srv/packaging/systemd/{name}")
        assert [line for line in verified.stderr.splitlines() if "bcd" in line and "not executable" not in line] == []


def test_a_machine_that_starts_anew_starts_the_node(installed: Station) -> None:
    installed.machine.cut_power()
    opened = len(installed.node.page().sessions)
    installed.machine.boot()
    deadline = time.monotonic() + 30
    while len(installed.node.page().sessions) == opened:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    installed.node.wait_welcome("1.4.0")
    assert installed.machine.systemctl("is-active", NODE) == "active"
