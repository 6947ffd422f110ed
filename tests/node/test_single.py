"""One agent a data directory: a second one refuses, and an update's exec neither lets go of the lock nor trips over it."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bcd.core.errors import HostError
from bcd.node.single import LOCK_NAME, AgentLock

_HOLD = (
    "import sys, time; from bcd.node.single import AgentLock; lock = AgentLock(sys.argv[1]); print('held', flush=True)"
)
_EXEC = """
import os, sys
from bcd.node.single import AgentLock
data_dir, times = sys.argv[1], int(sys.argv[2])
lock = AgentLock(data_dir, wait_seconds=0)
print("held", times, os.getpid(), sum(os.get_inheritable(int(fd)) for fd in os.listdir("/proc/self/fd") if int(fd) > 2
                                      and os.path.exists(f"/proc/self/fd/{fd}")), flush=True)
sys.stdin.readline()
if times:
    with lock.handed_over():
        os.execve(sys.executable, [sys.executable, "-c", os.environ["SCRIPT"], data_dir, str(times - 1)], os.environ)
"""


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SCRIPT": code},
    )


def said(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def is_free(data_dir: Path) -> bool:
    """Whether a second agent could start now."""
    try:
        AgentLock(str(data_dir), wait_seconds=0).close()
    except HostError:
        return False
    return True


def test_a_second_agent_refuses_and_names_the_first(tmp_path: Path) -> None:
    """Clearly, with what to do about it."""
    first = AgentLock(str(tmp_path))
    with pytest.raises(HostError) as caught:
        AgentLock(str(tmp_path), wait_seconds=0)
    assert caught.value.code == "agent-running"
    assert f"process {os.getpid()}" in caught.value.message
    assert str(tmp_path) in caught.value.message
    first.close()
    assert is_free(tmp_path)


def test_bcd_node_beside_a_running_agent_ends_with_a_sentence(tmp_path: Path) -> None:
    """The command as it is typed, by somebody who forgot the service."""
    config = tmp_path / "config.toml"
    config.write_text(f'[node]\ndata_dir = "{tmp_path}"\n')
    lock = AgentLock(str(tmp_path))
    before = {path.name for path in tmp_path.iterdir()}
    ran = subprocess.run(
        [sys.executable, "-c", "from bcd.cli import entry; entry()", "node", "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=30,
    )
    lock.close()
    assert ran.returncode == 1
    assert "(agent-running)" in ran.stderr
    assert "systemctl stop bcd.service" in ran.stderr
    assert {path.name for path in tmp_path.iterdir()} == before


def test_another_data_directory_is_another_agents(tmp_path: Path) -> None:
    """As in the lab, and in simulations."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = AgentLock(str(tmp_path / "one")), AgentLock(str(tmp_path / "two"), wait_seconds=0)
    one.close()
    two.close()


def test_the_kernel_frees_the_lock_of_one_that_was_killed(tmp_path: Path) -> None:
    """No stale lock, whatever its file says."""
    with python(f"{_HOLD}; time.sleep(60)", str(tmp_path)) as holder:
        assert said(holder) == ["held"]
        assert not is_free(tmp_path)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert is_free(tmp_path)
    assert (tmp_path / LOCK_NAME).stat().st_mode & 0o777 == 0o600


def test_an_update_keeps_the_lock_through_each_exec(tmp_path: Path) -> None:
    """Three binaries in one process: never free, never in its own way, and no descriptor is gathered on the way."""
    with python(_EXEC, str(tmp_path), "3") as agent:
        for left in ("3", "2", "1", "0"):
            assert said(agent) == ["held", left, str(agent.pid), "0"]
            assert not is_free(tmp_path)
            go_on(agent)
        assert agent.wait() == 0
    assert is_free(tmp_path)


def test_a_binary_that_knows_nothing_of_the_lock_holds_it_on(tmp_path: Path) -> None:
    """A rollback to an older bcd; the one after it, which knows, finds the descriptor and takes it."""
    old = "import os, sys; print('old', flush=True); sys.stdin.readline(); "
    old += "os.execve(sys.executable, [sys.executable, '-c', os.environ['SCRIPT'], sys.argv[1], '0'], os.environ)"
    start = _EXEC.replace('os.environ["SCRIPT"]', 'os.environ["OLD"]')
    with subprocess.Popen(
        [sys.executable, "-c", start, str(tmp_path), "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SCRIPT": _EXEC, "OLD": old},
    ) as agent:
        assert said(agent)[:2] == ["held", "1"]
        go_on(agent)
        assert said(agent) == ["old"]
        assert not is_free(tmp_path)
        go_on(agent)
        assert said(agent)[:2] == ["held", "0"]
        assert not is_free(tmp_path)
        go_on(agent)
        assert agent.wait() == 0
    assert is_free(tmp_path)


def test_an_exec_that_fails_leaves_the_lock_held_and_closed_on_exec(tmp_path: Path) -> None:
    """The old process goes on; what it starts afterwards does not hold the lock on."""
    lock = AgentLock(str(tmp_path))
    with pytest.raises(FileNotFoundError), lock.handed_over():
        os.execve(str(tmp_path / "missing"), ["missing"], {})
    assert not is_free(tmp_path)
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
        lock.close()
        assert is_free(tmp_path)
        child.kill()


def test_a_directory_that_cannot_be_written_is_no_reason_not_to_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Field report 35; here the lock's name is taken by a link, which is not followed."""
    (tmp_path / LOCK_NAME).symlink_to(tmp_path / "victim")
    AgentLock(str(tmp_path)).close()
    assert not (tmp_path / "victim").exists()
    assert "whether another agent runs" in caplog.text


def test_the_lock_is_not_the_update_lock(tmp_path: Path) -> None:
    """Commands that change records run beside the agent."""
    lock = AgentLock(str(tmp_path))
    with open(tmp_path / "update.lock", "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lock.close()
