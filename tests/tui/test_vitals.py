"""The agent as a process, on the overview: looked at for real, and what can't be seen is not there."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bcd.core.clock import ManualClock
from bcd.tui import vitals
from bcd.tui.source import Source
from bcd.tui.vitals import Vitals, VitalSigns
from tests.tui import states
from tests.tui.consoles import World, flat, opened

LOADED = "LoadState=loaded\nActiveState=active\nSubState=running\n"


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that works."""
    made = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
    assert made.stdout is not None
    made.stdout.readline()
    yield made
    made.kill()
    made.wait()
    made.stdout.close()


def says(answer: str | Exception) -> Callable[[Sequence[str]], str]:
    """A systemd that says so."""

    def ask(command: Sequence[str]) -> str:
        assert command[-1] == "bcd.service"
        if isinstance(answer, Exception):
            raise answer
        return answer

    return ask


def test_a_process_is_seen_as_it_is_and_its_cpu_from_the_second_look_on(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vitals, "_EVERY_SECONDS", 0.2)
    look = VitalSigns(None)
    assert look(child.pid) == Vitals()  # not before the first frame
    first = look(child.pid)
    assert (first.pid, first.cpu_percent, first.unit) == (child.pid, None, "")
    assert 1 <= first.memory_mib < 200
    assert abs(time.time() - first.started_at) < 60
    time.sleep(0.3)
    second = look(child.pid)
    assert second.cpu_percent is not None
    assert 5 <= second.cpu_percent <= 110
    assert look(child.pid) is second  # not looked at again so soon


def test_an_agent_that_was_started_anew_is_looked_at_at_once(child: subprocess.Popen[bytes]) -> None:
    look = VitalSigns(None)
    look(os.getpid())
    assert look(os.getpid()).pid == os.getpid()
    assert look(child.pid).pid == child.pid


@pytest.mark.parametrize("pid", [None, "1", -1, 0, True, 2**31, 2**80, 1.5, 4_194_305])
def test_what_is_no_process_here_is_not_there(pid: object) -> None:
    """The id is the agent's word."""
    look = VitalSigns(None)
    look(pid)
    assert look(pid) == Vitals()


def test_a_process_that_ended_is_not_there_any_more(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vitals, "_EVERY_SECONDS", 0.0)
    look = VitalSigns(None)
    look(child.pid)
    assert look(child.pid).pid == child.pid
    child.kill()
    child.wait()
    assert look(child.pid) == Vitals()


@pytest.mark.parametrize(
    ("answer", "unit", "state"),
    [
        (LOADED, "bcd.service", "active (running)"),
        ("LoadState=loaded\nActiveState=failed\nSubState=failed\n", "bcd.service", "failed"),
        ("LoadState=not-found\nActiveState=inactive\nSubState=dead\n", "", ""),
        ("", "", ""),
        (FileNotFoundError("systemctl"), "bcd.service", "unknown: systemd does not answer"),
        (subprocess.TimeoutExpired("systemctl", 10), "bcd.service", "unknown: systemd does not answer"),
    ],
    ids=["active", "failed", "no unit", "nothing", "no systemctl", "hangs"],
)
def test_the_unit_is_as_systemd_says(answer: str | Exception, unit: str, state: str) -> None:
    look = VitalSigns("bcd.service", says(answer))
    look(None)
    seen = look(None)
    assert (seen.pid, seen.unit, seen.unit_state) == (None, unit, state)


async def test_the_overview_says_what_the_agent_costs() -> None:
    async with opened(World(states.at_rest())) as (app, _):
        assert "agent 2217 of bcd.service, up 3 days, <1 % of a core, 43 MiB" in flat(app)
        assert "bcd.service is" not in flat(app)


async def test_a_unit_that_does_not_run_is_said_loudly() -> None:
    async with opened(World(states.agent_down())) as (app, _):
        assert "bcd.service is failed" in flat(app)


async def test_an_entrypoint_that_leads_elsewhere_shows_where() -> None:
    async with opened(World(states.changed(states.at_rest(), entrypoint_leads="→ /opt/other/\x1b[2Jbcd"))) as (app, _):
        assert "entrypoint /usr/local/bin/bcd → /opt/other/\\x1b[2Jbcd" in flat(app)
    async with opened(World(states.at_rest())) as (app, _):
        assert "entrypoint /usr/local/bin/bcd → current" in flat(app)


def test_what_the_entrypoint_is_is_read_from_the_disk(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[update]\nslots_dir = "{tmp_path}/lib"\nentrypoint = "{tmp_path}/bcd"\n')
    source = Source(str(config), states.BUILD, ManualClock(), lambda _: None)
    (tmp_path / "lib").mkdir()
    entrypoint, said = tmp_path / "bcd", [source.read().entrypoint_leads]
    entrypoint.write_text("a program")
    said.append(source.read().entrypoint_leads)
    for target in ("lib/current", "/opt/current"):
        entrypoint.unlink()
        entrypoint.symlink_to(target)
        said.append(source.read().entrypoint_leads)
    assert said == ["(missing)", "(a file)", "→ current", "→ /opt/current"]
