"""Ctrl-C and SIGTERM: the shell's own statuses, at once, and never a traceback."""

import os
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from bcd import cli
from tests.commands.node_dir import Node
from tests.commands.running import TIMEOUT_SECONDS, Done, Runner


def signalled(run: Runner, number: int, *args: str) -> Done:
    """Start a command that waits for its standard input, and send it a signal once it does."""
    process = subprocess.Popen(
        run.command(*args),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=run.environ(),
    )
    until = time.monotonic() + TIMEOUT_SECONDS
    while _wait_channel(process.pid) != "pipe_read" and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    return Done(process.returncode, stdout.decode(), stderr.decode())


def _wait_channel(pid: int) -> str:
    # Where the kernel does not tell, the stat says that it sleeps; by then all has been imported.
    with open(f"/proc/{pid}/wchan") as file:
        told = file.read()
    if told in ("", "0"):
        with open(f"/proc/{pid}/syscall") as file:
            return "pipe_read" if file.read().startswith("0 0x0 ") else ""
    return "pipe_read" if told in ("pipe_read", "anon_pipe_read") else ""


def test_ctrl_c_ends_a_command_with_130(run: Runner, node: Node) -> None:
    assert signalled(run, signal.SIGINT, "update", "check", "-", "--config", str(node.config)) == (130, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=str)
def test_another_signal_ends_it_as_it_ends_any_program(number: int, run: Runner, node: Node) -> None:
    """Death by the signal itself, which a shell reports as 143 and 129."""
    done = signalled(run, number, "update", "check", "-", "--config", str(node.config))
    assert done == (-number, "", "")


@pytest.mark.parametrize(
    "where", ["bcd.commands.streams.prepare_streams", "bcd.cli._run", "bcd.commands.show.read_status"]
)
def test_ctrl_c_at_any_moment_is_130(
    where: str, node: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also between two lines of the program's own."""

    def interrupted(*_args: object, **_keywords: object) -> None:
        raise KeyboardInterrupt

    ended: list[int] = []

    def end(status: int) -> None:
        ended.append(status)

    monkeypatch.setattr(where, interrupted)
    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr("sys.argv", ["bcd", "update", "--config", str(node.config)])
    cli.entry()
    assert (ended, capsys.readouterr()) == ([130], ("", ""))


def test_a_fault_of_bcds_own_is_70_and_a_sentence(
    node: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: Callable[..., Done]
) -> None:
    """Never 1, and no traceback but in a file, whose name is said."""

    def broken(*_args: object) -> None:
        raise ZeroDivisionError("\x1b[2Jnothing\rto see")

    monkeypatch.setattr("bcd.commands.show.read_status", broken)
    monkeypatch.setattr("tempfile.tempdir", str(node.home))
    done = call("update", "--config", str(node.config))
    assert (done.status, done.code, done.stdout) == (70, "internal-error", "")
    assert "\\x1b[2Jnothing\\x0dto see" in done.stderr
    assert "Traceback" not in done.stderr
    (report,) = node.home.glob("bcd-crash-*.txt")
    assert str(report) in done.hint
    assert "Traceback (most recent call last)" in report.read_text()
    assert report.stat().st_mode & 0o777 == 0o600


def test_who_asks_for_it_gets_the_traceback_and_nothing_that_acts_on_a_terminal(
    node: Node, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Done]
) -> None:
    def broken(*_args: object) -> None:
        raise ZeroDivisionError("\x1b[2J")

    monkeypatch.setattr("bcd.commands.show.read_status", broken)
    monkeypatch.setattr("tempfile.tempdir", str(node.home / "missing"))
    monkeypatch.setenv("BCD_DEBUG", "1")
    done = call("update", "--config", str(node.config))
    assert done.status == 70
    assert "Traceback (most recent call last)" in done.stderr
    assert "\x1b" not in done.stderr
