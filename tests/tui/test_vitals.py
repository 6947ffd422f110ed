"""The agent as a process, on the overview: looked at for real, and what can't be seen is not there."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bcd.core.clock import ManualClock
from bcd.tui import vitals
from bcd.tui.source import Source
from bcd.tui.vitals import Vitals, VitalSigns
from tests.core.public import as_nobody, public_directory
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


def seen(look: VitalSigns, pid: object) -> Vitals:
    """What it sees when it has looked."""
    look(pid)
    if look._looker is not None:
        look._looker.join(10)
    return look(pid)


def test_a_process_is_seen_as_it_is_and_its_cpu_from_the_second_look_on(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    look = VitalSigns(None)
    assert look(child.pid) == Vitals()  # not before the first frame
    assert look._looker is None
    first = seen(look, child.pid)
    assert (first.pid, first.cpu_percent, first.unit) == (child.pid, None, "")
    assert 1 <= first.memory_mib < 200
    assert 0 <= time.clock_gettime(time.CLOCK_BOOTTIME) - first.started < 60
    time.sleep(0.3)
    assert seen(look, child.pid) is first  # not looked at again so soon
    monkeypatch.setattr(vitals, "_EVERY_SECONDS", 0.2)
    second = seen(look, child.pid)
    assert second.cpu_percent is not None
    assert 5 <= second.cpu_percent <= 110


def test_an_agent_that_was_started_anew_is_looked_at_at_once(child: subprocess.Popen[bytes]) -> None:
    """And nothing of the one before is shown for it."""
    look = VitalSigns(None)
    look(None)
    assert seen(look, os.getpid()).pid == os.getpid()
    assert look(child.pid).pid is None
    assert seen(look, child.pid).pid == child.pid
    assert look(None).pid is None


@pytest.mark.parametrize("pid", [None, "1", -1, 0, True, 2**31, 2**80, 1.5, 4_194_305, [1], {}])
def test_what_is_no_process_here_is_not_there(pid: object) -> None:
    """The id is the agent's word. It is not asked about again and again either."""
    asked: list[Sequence[str]] = []
    look = VitalSigns("bcd.service", lambda command: (asked.append(command), LOADED)[1])  # type: ignore[func-returns-value]
    look(pid)
    for _ in range(5):
        assert seen(look, pid) == Vitals(unit="bcd.service", unit_state="active (running)")
    assert len(asked) == 1


def test_a_process_that_ended_is_not_there_any_more(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vitals, "_EVERY_SECONDS", 0.0)
    look = VitalSigns(None)
    look(child.pid)
    assert seen(look, child.pid).pid == child.pid
    child.kill()
    child.wait()
    assert seen(look, child.pid) == Vitals()


def test_a_systemd_that_hangs_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """C10. And it is asked once, not once a look."""
    monkeypatch.setattr(vitals, "_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(vitals, "_UNIT_SECONDS", 0.0)
    go_on, asked = threading.Event(), []

    def hang(command: Sequence[str]) -> str:
        asked.append(command)
        go_on.wait(20)
        return LOADED

    look = VitalSigns("bcd.service", hang)
    begun = time.monotonic()
    assert [look(None) for _ in range(9)] == [Vitals()] * 9
    assert (time.monotonic() - begun < 5, len(asked)) == (True, 1)
    go_on.set()
    assert seen(look, None).unit_state == "active (running)"


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
    found = seen(look, None)
    assert (found.pid, found.unit, found.unit_state) == (None, unit, state)


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
    entrypoint.unlink()
    entrypoint.mkdir()
    said.append(source.read().entrypoint_leads)
    assert said == ["(missing)", "(a file)", "→ current", "→ /opt/current", "(neither a file nor a link)"]


def test_an_entrypoint_that_this_user_may_not_see_is_not_said_to_be_missing() -> None:
    with public_directory() as home:
        config, closed = home / "config.toml", home / "closed"
        config.write_text(f'[update]\nslots_dir = "{home}/lib"\nentrypoint = "{closed}/bcd"\n')
        config.chmod(0o644)
        closed.mkdir(mode=0o700)
        (closed / "bcd").symlink_to(f"{home}/lib/current")
        closed.chmod(0o700 if os.geteuid() == 0 else 0)
        with as_nobody():
            read = Source(str(config), states.BUILD, ManualClock(), lambda _: None).read()
        closed.chmod(0o700)
    assert read.entrypoint_leads == ""
