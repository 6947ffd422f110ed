"""The supervisor does what systemd does with the units of the rules."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bcd.lab.supervisor import Supervisor, Unit
from tests.lab.processes import until


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def supervise(tmp_path: Path, script: str) -> Supervisor:
    unit = Unit(
        argv=[str(program(tmp_path / "program", script))],
        environment={"PATH": os.environ["PATH"], "HERE": str(tmp_path)},
        directory=tmp_path,
        slots=tmp_path / "slots",
        records=tmp_path / "records",
        log=tmp_path / "log",
    )
    return Supervisor(unit)


def pend(tmp_path: Path) -> Path:
    """Two slots, the second current and pending; returns the link `current`."""
    slots, records = tmp_path / "slots", tmp_path / "records"
    slots.mkdir()
    records.mkdir()
    for slot in "ab":
        program(slots / f"bcd-{slot}", "")
    (slots / "previous").symlink_to("bcd-a")
    (slots / "current").symlink_to("bcd-b")
    (records / "upgrade.json").write_text('{"state":"swapped","from_slot":"a","to_slot":"b"}')
    return slots / "current"


def test_five_failed_starts_and_it_stays_down_when_nothing_is_pending(tmp_path: Path) -> None:
    supervisor = supervise(tmp_path, "exit 1")
    supervisor.start()
    until(lambda: not supervisor.active)
    assert (supervisor.starts, supervisor.rollbacks) == (5, 0)
    assert "stays down" in (tmp_path / "log").read_text()


def test_five_failed_starts_of_a_pending_update_are_rolled_back_and_started_again(tmp_path: Path) -> None:
    current = pend(tmp_path)
    supervisor = supervise(tmp_path, '[ "$(readlink "$HERE/slots/current")" = bcd-b ] && exit 1; exec sleep 60')
    supervisor.start()
    until(lambda: supervisor.starts == 6)
    assert (current.readlink(), supervisor.rollbacks) == (Path("bcd-a"), 1)
    assert (tmp_path / "records" / "rolled-back").exists()
    supervisor.stop()


def test_a_helper_that_hits_the_limit_stays_down_and_nothing_is_rolled_back(tmp_path: Path) -> None:
    current = pend(tmp_path)
    unit = Unit(
        argv=[str(program(tmp_path / "program", "exit 1"))],
        environment={"PATH": os.environ["PATH"]},
        directory=tmp_path,
        slots=tmp_path / "slots",
        records=tmp_path / "records",
        log=tmp_path / "log",
        name="the helper",
        rolls_back=False,
    )
    supervisor = Supervisor(unit)
    supervisor.start()
    until(lambda: not supervisor.active)
    assert (supervisor.starts, supervisor.rollbacks, current.readlink()) == (5, 0, Path("bcd-b"))
    assert "start 5 of the helper" in (tmp_path / "log").read_text()


def test_one_crash_is_no_crash_loop(tmp_path: Path) -> None:
    current = pend(tmp_path)
    supervisor = supervise(tmp_path, '[ -e "$HERE/crashed" ] || { touch "$HERE/crashed"; kill -9 $$; }; exec sleep 60')
    supervisor.start()
    until(lambda: supervisor.starts == 2)
    assert (current.readlink(), supervisor.rollbacks) == (Path("bcd-b"), 0)
    supervisor.stop()


def test_a_program_that_cannot_be_executed_fails_as_well(tmp_path: Path) -> None:
    supervisor = supervise(tmp_path, "")
    (tmp_path / "program").write_bytes(b"no program")
    supervisor.start()
    until(lambda: not supervisor.active)
    assert supervisor.starts == 5
    assert "status 203" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("end", ["exit 0", "kill -TERM $$"])
def test_a_program_that_ends_well_at_once_hits_the_start_limit_too(tmp_path: Path, end: str) -> None:
    supervisor = supervise(tmp_path, end)
    supervisor.start()
    until(lambda: not supervisor.active)
    assert supervisor.starts == 5


def test_an_exec_in_place_is_no_start(tmp_path: Path) -> None:
    program(tmp_path / "next", 'touch "$HERE/ran"; exec sleep 60')
    supervisor = supervise(tmp_path, 'exec "$HERE/next"')
    supervisor.start()
    until((tmp_path / "ran").exists)
    assert supervisor.starts == 1
    supervisor.stop()


def test_stop_lets_it_end_in_order_and_leaves_it_stopped(tmp_path: Path) -> None:
    supervisor = supervise(
        tmp_path, 'trap "touch $HERE/ended; exit 0" TERM; touch "$HERE/up"; while :; do sleep 0.1; done'
    )
    supervisor.start()
    until((tmp_path / "up").exists)
    supervisor.stop()
    assert (tmp_path / "ended").exists()
    assert (supervisor.active, supervisor.pid) == (False, None)


def test_whatever_ends_the_lab_ends_what_it_started(tmp_path: Path) -> None:
    lab = f"""
import os, time
from pathlib import Path
from bcd.lab.supervisor import Supervisor, Unit
from tests.lab.processes import until
here = Path({str(tmp_path)!r})
Supervisor(Unit(argv=[{str(program(tmp_path / "program", "exec sleep 60"))!r}], environment=dict(os.environ),
    directory=here, slots=here, records=here, log=here / "log")).start()
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", lab], cwd=Path(__file__).parents[2]) as process:
        children = Path(f"/proc/{process.pid}/task")
        until(lambda: bool(sleeping(children)))
        child = sleeping(children)[0]
        process.send_signal(signal.SIGKILL)
    until(lambda: not Path(f"/proc/{child}").exists() or state(child) == "Z")


def sleeping(tasks: Path) -> list[str]:
    """The children, by any of the threads, that run `sleep` by now."""
    pids = " ".join((task / "children").read_text() for task in tasks.glob("*")).split()
    return [pid for pid in pids if "sleep" in Path(f"/proc/{pid}/comm").read_text()]


def state(pid: str) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
