"""`bcd doctor` as scripts, terminals and other users meet it: one document, the right status, whatever happens.

Each run is a process of its own on the self-test's healthy node; `--only` keeps to what does not depend on the machine
that the tests run on.
"""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec
import pytest

from bcd.cli import main
from bcd.commands import doctor as work
from bcd.core.exits import ExitStatus
from bcd.doctor.check import Check, ok
from bcd.doctor.checks import CHECKS
from bcd.doctor.report.machine import ReportJson
from bcd.doctor.selftest.report import SelfTestJson
from bcd.doctor.selftest.root import Root
from tests.commands.running import TIMEOUT_SECONDS, Done
from tests.doctor.running import Doctor, finish, node_on_disk

HERE = ("--only", "configuration.*", "--only", "slots.*", "--skip", "configuration.service-paths")
"""Checks that look at the node's own disk alone."""


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Root]:
    with node_on_disk(monkeypatch) as root:
        yield root


@pytest.fixture
def doctor(node: Root) -> Iterator[Doctor]:
    with tempfile.TemporaryDirectory(prefix="bcd-test-") as home:
        Path(home).chmod(0o755)
        made = Doctor(node, Path(home))
        yield made
        assert not made.runner.crashed(), "bcd reported a fault of its own"


@pytest.fixture
def silent_gateway(node: Root) -> Iterator[socket.socket]:
    """A socket that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(TIMEOUT_SECONDS)
        node.configure("node", gateway=f"wss://127.0.0.1:{server.getsockname()[1]}/v1/node")
        yield server


def document(done: Done) -> ReportJson:
    """The one document on stdout; anything before or after it would not parse."""
    return msgspec.json.decode(done.stdout.encode(), type=ReportJson, strict=True)


def levels(done: Done) -> dict[str, str]:
    return {finding["id"]: finding["level"] for finding in document(done)["findings"]}


# -- exit statuses ---------------------------------------------------------------------------------------------------


def test_a_healthy_node_is_0(doctor: Doctor) -> None:
    """And nothing is said on stderr."""
    done = doctor(*HERE)
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout.startswith("all is well: ")


def test_a_failure_is_1_with_its_remedy_on_stdout(doctor: Doctor, node: Root) -> None:
    """Field report C08 a: a broken `current`."""
    node.link("lib/current", f"{node.home}/lib/bcd-b")
    done = doctor(*HERE)
    assert (done.status, done.stderr) == (1, "")
    assert f"do:  ln -sfn bcd-b {node.home}/lib/current" in done.stdout


def test_warnings_are_0_and_under_strict_3(doctor: Doctor, node: Root) -> None:
    """Field report C08 b: no pins is the documented warning."""
    node.configure(release_pins=[])
    assert doctor(*HERE, "--json").status == 0
    done = doctor(*HERE, "--json", "--strict")
    assert (done.status, document(done)["verdict"]) == (3, "warn")


def test_what_is_not_in_use_never_fails(doctor: Doctor) -> None:
    """Field report C08 c, d: no helper is skipped with the reason, and present in JSON."""
    done = doctor("--only", "helper.*", "--json", "--strict")
    expected = dict.fromkeys(("helper.socket", "helper.answers", "helper.version"), "skipped")
    assert (done.status, levels(done)) == (0, expected)


@pytest.mark.parametrize(
    "args",
    [
        ("--only", "slot.*"),
        ("--skip", "nothing"),
        ("--only", "gateway.reachable", "--offline"),
        ("--timeout", "soon"),
        ("--wait", "-1s"),
        ("--format", "xml"),
        ("--watch",),
        ("--self-test", "--format", "junit"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2_and_no_data(args: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Said on stderr, with what to do; `--watch` is one where there is no terminal."""
    done = Done(main(["doctor", *args]), *capsys.readouterr())
    assert (done.status, done.stdout) == (2, "")
    assert done.code in {"unknown-check", "bad-span", "bad-usage", "no-terminal"}


# -- choosing ----------------------------------------------------------------------------------------------------------


def test_the_list_names_every_check_once(capsys: pytest.CaptureFixture[str]) -> None:
    """With what is true when it is well."""
    done = Done(main(["doctor", "--list"]), *capsys.readouterr())
    assert done.status == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == [check.id for check in CHECKS]
    assert all(line.endswith(check.summary) for line, check in zip(done.stdout.splitlines(), CHECKS, strict=True))


def test_globs_choose_and_leave_out(doctor: Doctor) -> None:
    """Leaving out beats choosing."""
    done = doctor("--only", "slots.*", "--only", "update.lock", "--skip", "*.r*", "--json")
    chosen = {check.id for check in CHECKS if check.id.startswith("slots.") and not check.id.startswith("slots.r")}
    assert set(levels(done)) == chosen | {"update.lock"}


def test_offline_leaves_out_what_needs_the_network(doctor: Doctor, silent_gateway: socket.socket) -> None:
    """And so does not wait for it."""
    done = doctor("--offline", "--only", "gateway.*", "--json")
    assert set(levels(done)) == {"gateway.configured", "gateway.trust-store", "gateway.proxies"}
    silent_gateway.settimeout(0.2)
    with pytest.raises(TimeoutError):
        silent_gateway.accept()


# -- one document, always ------------------------------------------------------------------------------------------------


def test_json_with_three_failures_is_one_document(doctor: Doctor, node: Root) -> None:
    """Field report C07."""
    node.remove("lib/bcd-b")
    done = doctor(*HERE, "--json")
    assert done.status == 1
    assert [f["level"] for f in document(done)["findings"]].count("fail") == 3
    assert document(done)["complete"] is True


def test_json_of_a_broken_configuration_is_one_document(doctor: Doctor, node: Root) -> None:
    """Doctor is for looking at such a node: it says what is wrong and what it could not tell."""
    node.write("etc/config.toml", "[update\n")
    done = doctor("--json", "--offline")
    found = levels(done)
    assert (done.status, done.stderr) == (1, "")
    assert found["configuration.parses"] == "fail"
    assert found["slots.links"] == "unknown"
    assert found["host.platform"] in ("ok", "note")


def test_json_as_nobody_is_one_document_and_every_other_check_is_heard(doctor: Doctor, node: Root) -> None:
    """Field reports 38 and C13: unreadable is unknown and 4, and neither absent nor a failure."""
    node.forbid("lib/slots.json")
    node.forbid("var/update/update.json")
    done = doctor.as_nobody("--json", *HERE, "--only", "update.*", "--skip", "update.agent")
    found = levels(done)
    unknown = {name for name, level in found.items() if level == "unknown"}
    assert (done.status, done.stderr) == (4, "")
    assert unknown == {
        *("slots.digests", "update.records", "update.failed-versions", "update.floor", "update.last-confirm"),
        "update.release-expiry",
    }
    assert set(found.values()) == {"ok", "skipped", "unknown"}
    (digests,) = [f for f in document(done)["findings"] if f["id"] == "slots.digests"]
    assert "this user may not read it" in digests["message"]
    assert digests["hint"].endswith(f"doctor --config {node.home}/etc/config.toml")
    assert digests["hint"].startswith("sudo ")


def test_a_user_who_may_not_look_into_the_slots_is_told_no_fresh_install(doctor: Doctor, node: Root) -> None:
    """Field report 38: "permission denied" read as "not in use yet"."""
    node.forbid("lib")
    done = doctor.as_nobody("--only", "slots.links")
    assert done.status == 4
    assert "the slots are not in use yet" not in done.stdout
    assert "????  slots.links: could not be told" in done.stdout


def test_ctrl_c_half_way_gives_one_document_of_what_was_found(doctor: Doctor, silent_gateway: socket.socket) -> None:
    """Incomplete, and 130; what had ended is as it was found."""
    args = ("--json", "--timeout", "60s", *HERE, "--only", "gateway.reachable")
    with doctor.running(*args) as process:
        connection, _ = silent_gateway.accept()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        done = finish(process)
        connection.close()
    found = levels(done)
    assert (done.status, done.stderr) == (130, "")
    assert document(done)["complete"] is False
    assert found["gateway.reachable"] == "unknown"
    assert found["slots.digests"] == "ok"


@pytest.mark.parametrize("redirect", ["2>&-", "2>&- <&-"])
def test_json_with_closed_streams_is_one_document(redirect: str, doctor: Doctor) -> None:
    """No warning finds its way into a file that took the number of stderr."""
    done = doctor.shell(f"$BCD {redirect}", *HERE, "--json")
    assert (done.status, document(done)["complete"]) == (0, True)


@pytest.mark.parametrize("form", ["plain", "rich", "json"])
def test_a_reader_that_goes_away_hides_no_status(form: str, doctor: Doctor, node: Root) -> None:
    """`| head` has what it wanted; the node is still broken, and nobody complains."""
    node.configure(release_threshold=9)
    script = "$BCD | (exec <&-; sleep 0.5); exit ${PIPESTATUS[0]}"
    done = doctor.shell(script, *HERE, "--format", form)
    assert (done.status, done.stderr) == (1, "")


# -- time ----------------------------------------------------------------------------------------------------------------


def test_a_gateway_that_never_answers_costs_one_timeout(doctor: Doctor, silent_gateway: socket.socket) -> None:
    """Three checks want it; it fails by name of the stage, and all others are heard."""
    done = doctor("--timeout", "1s", "--json", *HERE, "--only", "gateway.*")
    found = {f["id"]: f for f in document(done)["findings"]}
    assert done.status == 1
    assert found["gateway.reachable"]["message"].startswith("the gateway can't be reached: tls: ")
    assert "timed out" in found["gateway.reachable"]["message"]
    assert found["slots.digests"]["level"] == "ok"
    assert 0.7 <= document(done)["seconds"] < 1.6
    silent_gateway.accept()[0].close()
    silent_gateway.settimeout(0.2)
    with pytest.raises(TimeoutError):
        silent_gateway.accept()


def test_a_wait_that_ends_well_is_0_and_says_nothing_meanwhile(doctor: Doctor, node: Root) -> None:
    """Field report C09: no trace of what passed but the attempts and the time in JSON."""
    node.swap()
    with doctor.running("--wait", "20s", "--only", "update.pending", "--json") as process:
        time.sleep(1.2)
        node.remove("var/update/upgrade.json")
        done = finish(process)
    assert (done.status, done.stderr) == (0, "")
    assert levels(done) == {"update.pending": "ok"}
    assert document(done)["attempts"] >= 2
    assert document(done)["waited_seconds"] > 0.5


def test_a_wait_that_times_out_is_124_with_the_last_report(doctor: Doctor, node: Root) -> None:
    """A pending update is not well yet."""
    node.swap()
    done = doctor("--wait", "1s", "--only", "update.pending", "--json")
    assert (done.status, done.stderr) == (124, "")
    assert levels(done) == {"update.pending": "warn"}
    assert 1.0 <= document(done)["waited_seconds"] < 8


def _interrupted(doctor: Doctor, seconds: float) -> Done:
    with doctor.running("--wait", "60s", "--only", "update.pending", "--json") as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        return finish(process)


def test_ctrl_c_while_waiting_keeps_the_last_report(doctor: Doctor, node: Root) -> None:
    """Cut short, 130, and the pending update is there to be read."""
    node.swap()
    done = _interrupted(doctor, 1.5)
    if not done.stdout:
        done = _interrupted(doctor, 20.0)  # a busy machine had not come to the first look yet
    assert (done.status, document(done)["complete"]) == (130, False)
    assert levels(done) == {"update.pending": "warn"}


# -- terminals -----------------------------------------------------------------------------------------------------------


def test_a_pipe_gets_plain_words_and_a_terminal_colour(doctor: Doctor) -> None:
    """Unless NO_COLOR or --color say otherwise."""
    assert "\x1b" not in doctor(*HERE).stdout
    assert "\x1b[32m" in doctor.on_terminal(*HERE).stdout
    assert "\x1b" not in doctor.on_terminal(*HERE, env={"NO_COLOR": "1"}).stdout
    assert "\x1b[32m" in doctor(*HERE, "--format", "rich", "--color", "always", env={"NO_COLOR": "1"}).stdout


@pytest.mark.parametrize("form", ["plain", "rich"])
def test_an_ascii_locale_gets_ascii(form: str, doctor: Doctor, node: Root) -> None:
    """Field report C12: no traceback, no literal escapes, the right status."""
    node.configure("node", gateway=None)
    env = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = doctor(*HERE, "--only", "gateway.configured", "-v", "--format", form, env=env)
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "\\u" not in done.stdout
    assert "WARN" in done.stdout


class _Terminal:
    """A terminal with a process in it that has all three streams there."""

    def __init__(self, doctor: Doctor, *args: str) -> None:
        self.drawn = ""
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            doctor.runner.command(*doctor.arguments(*args)),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=doctor.runner.environ({"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}),
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def read(self, until: str | None = None) -> str:
        """Read until something is drawn, or until the end."""
        ends_at = time.monotonic() + TIMEOUT_SECONDS
        while until is None or until not in self.drawn:
            assert select.select([self._master], [], [], max(0.0, ends_at - time.monotonic()))[0], self.drawn
            try:
                chunk = os.read(self._master, 65536)
            except OSError:  # EIO: nobody holds the terminal any more
                break
            self.drawn += chunk.decode()
        return self.drawn


def test_progress_is_one_line_that_is_gone_before_the_report(doctor: Doctor) -> None:
    """On stderr where that is a terminal; nothing of it is left in what is read."""
    with _Terminal(doctor, *HERE) as terminal:
        drawn = terminal.read()
        assert terminal.process.wait(TIMEOUT_SECONDS) == 0
    progress, _, report = drawn.rpartition("\r\x1b[K")
    assert re.search(r"\d+/\d+ slots\.", progress)
    assert "all is well" in report
    assert not re.search(r"\d+/\d+ slots\.", report)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_a_live_view_ends_at_once_and_leaves_the_terminal_clean(number: int, status: int, doctor: Doctor) -> None:
    """In the end the cursor is there again, no alternate screen, and a line of its own."""
    with _Terminal(doctor, "--watch", *HERE) as terminal:
        terminal.read(until="all is well")
        started = time.monotonic()
        terminal.process.send_signal(number)
        drawn = terminal.read()
        assert terminal.process.wait(TIMEOUT_SECONDS) == status
        assert time.monotonic() - started < 2
    assert drawn.rindex("\x1b[?25h") > drawn.rindex("\x1b[?25l")
    assert "\x1b[?1049h" not in drawn
    assert re.sub(r"\x1b\[\??[0-9;]*[A-Za-z]", "", drawn).endswith("\n")
    assert "Traceback" not in drawn


def test_a_live_view_follows_what_changes(doctor: Doctor, node: Root) -> None:
    """A node that falls ill is seen to, and so is one that gets well."""
    with _Terminal(doctor, "--watch", *HERE) as terminal:
        terminal.read(until="all is well")
        node.configure(release_threshold=9)
        terminal.read(until="this node needs someone now")


# -- the self-test ---------------------------------------------------------------------------------------------------------


def test_a_self_test_proves_a_check_a_line_and_ends_0(doctor: Doctor) -> None:
    """In ASCII, wherever it is shown, with the states that were seen."""
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = doctor("--self-test", "--only", "update.lock", "--only", "host.platform", env=env)
    assert (done.status, done.stderr) == (0, "")
    lock, platform, empty, tally = done.stdout.splitlines()
    assert lock.split() == ["ok", "update.lock", "3", "states:", "warn,", "ok"]
    assert platform.split() == ["ok", "host.platform", "2", "states:", "note,", "ok"]
    assert empty == ""
    assert re.fullmatch(r"2 of 2 checks proved in 5 states, \d+\.\d s", tally)


def test_a_self_test_in_json_is_one_document(doctor: Doctor) -> None:
    """With each state by name; the node's own configuration is not even read, and nothing is left in TMPDIR."""
    doctor.root.remove("etc/config.toml")
    done = doctor("--self-test", "--only", "slots.room", "--json")
    document = msgspec.json.decode(done.stdout.encode(), type=SelfTestJson, strict=True)
    assert (done.status, done.stderr) == (0, "")
    assert (document["complete"], document["passed"]) == (True, True)
    (check,) = document["checks"]
    assert (check["id"], check["proved"]) == ("slots.room", ["warn", "ok"])
    assert [state["name"] for state in check["states"]] == ["a healthy node", "the disk is full", "no inodes are left"]
    assert list(doctor.runner.temporary.iterdir()) == []


def test_a_self_test_with_an_unproved_check_is_1_and_says_which(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A check that can't fire is no check."""
    from bcd.doctor.selftest import run as selftest

    mute = Check(id="update.lock", summary="", why="", network=False, look=lambda _see: ok("always"))
    checks = tuple(mute if check.id == mute.id else check for check in CHECKS)
    monkeypatch.setattr(selftest, "CHECKS", checks)
    assert work.self_test([mute], form="plain", color=False) is ExitStatus.PROBLEM
    said = capsys.readouterr().out
    assert said.startswith("FAIL  update.lock")
    assert "somebody holds it: expected warn with 'the update lock is held by process'" in said
    assert "0 of 1 checks proved" in said
    assert work.self_test([mute], form="json", color=False) is ExitStatus.PROBLEM
    assert json.loads(capsys.readouterr().out)["passed"] is False
