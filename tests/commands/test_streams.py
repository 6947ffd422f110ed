"""Streams that are closed, full, read by nobody or of a poor terminal: never a traceback, and never a false status."""

from pathlib import Path

import pytest

from tests.commands.node_dir import Node
from tests.commands.running import Runner
from tests.commands.test_update import FAILED_LINE, SLOTS_LINE, VERSION_LINE

STATE = f"{VERSION_LINE}\n{SLOTS_LINE}\n{FAILED_LINE}\n"

COMMANDS = {
    "update": ("update", "--config", "F"),
    "update json": ("update", "--json", "--config", "F"),
    "history": ("update", "history", "--config", "F"),
    "clear": ("update", "--clear-failed", "--config", "F"),
    "version": ("version",),
    "help": ("--help",),
    "completion": ("completion", "bash"),
}
REFUSED = {
    "check": ("update", "check", "F", "--config", "F"),
    "unknown": ("updat",),
    "bad config": ("update", "--config", "/"),
}
STATUS = {"check": 1, "unknown": 2, "bad config": 2}


def words(name: str, node: Node) -> list[str]:
    return [word if word != "F" else str(node.config) for word in {**COMMANDS, **REFUSED}[name]]


@pytest.mark.parametrize("name", ["update", "clear", "help", "check"])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_no_status(closed: str, name: str, run: Runner, node: Node) -> None:
    """What can still be said is said."""
    done = run.shell(f"$BCD {closed}", *words(name, node))
    assert (done.status, "Traceback" in done.stderr) == (STATUS.get(name, 0), False)
    if "2>&-" not in closed and ">&-" in closed and name in COMMANDS:
        assert (done.stdout, done.stderr) == ("", "")


def test_with_stderr_closed_no_record_is_written_into(run: Runner, node: Node) -> None:
    """The attack: a record's file gets stderr's number, and what is said to people lands in it."""
    node.update_json.write_text("{")
    done = run.shell("$BCD 2>&-", "update", "--clear-failed", "--config", str(node.config))
    assert (done.status, done.stdout) == (0, "no failed versions to clear\n")
    for path in node.records.iterdir():
        assert b"bcd: " not in path.read_bytes(), path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_behind_stdout_is_said_and_is_no_fault_of_bcd(name: str, run: Runner, node: Node) -> None:
    done = run.shell("$BCD > /dev/full", *words(name, node))
    assert (done.status, done.code) == (1, "io-error")
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("name", ["update", "check", "unknown", "bad config"])
def test_a_full_disk_behind_stderr_changes_no_status(name: str, run: Runner, node: Node) -> None:
    done = run.shell("$BCD 2> /dev/full", *words(name, node))
    assert done.status == STATUS.get(name, 0)


def test_a_full_disk_behind_both_still_has_its_status(run: Runner, node: Node) -> None:
    assert run.shell("$BCD > /dev/full 2> /dev/full", *words("update", node)).status == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_a_reader_that_went_away_is_no_failure(name: str, run: Runner, node: Node) -> None:
    done = run.shell("$BCD | head -0; exit ${PIPESTATUS[0]}", *words(name, node))
    assert done == (0, "", "")


def test_a_reader_that_goes_away_in_the_middle_is_no_failure(run: Runner, node: Node) -> None:
    """More than a pipe holds."""
    node.write_history(*[{"at": 1, "event": "refused", "reason": "x" * 1900}] * 200)
    script = "$BCD | (head -c 10 > /dev/null; sleep 0.2); exit ${PIPESTATUS[0]}"
    done = run.shell(script, "update", "history", "-n", "1000", "--config", str(node.config))
    assert done == (0, "", "")


@pytest.mark.parametrize("name", REFUSED)
def test_a_reader_that_went_away_hides_no_bad_status(name: str, run: Runner, node: Node) -> None:
    done = run.shell("$BCD | head -0; exit ${PIPESTATUS[0]}", *words(name, node))
    assert done.status == STATUS[name]


@pytest.mark.parametrize("name", ["update", "help", "check", "unknown"])
@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"TERM": "dumb", "COLUMNS": "20"},
    ],
    ids=str,
)
def test_a_poor_terminal_changes_no_status(env: dict[str, str], name: str, run: Runner, node: Node) -> None:
    done = run(*words(name, node), env=env)
    assert done.status == STATUS.get(name, 0)
    assert (done.stdout + done.stderr).isascii()
    if name == "update":
        assert done.stdout == STATE


def test_what_ascii_has_not_is_escaped_where_the_terminal_knows_no_more(run: Runner, node: Node) -> None:
    node.write_update([{"version": "1.4.1", "sequence": 1, "reason": "für ✗", "at": 1}])
    done = run("update", "--config", str(node.config), env={"PYTHONIOENCODING": "ascii"})
    assert (done.status, done.stdout.splitlines()[-1]) == (0, r"failed: 1.4.1 (f\xfcr \u2717)")


@pytest.mark.parametrize("name", ["update", "history", "version", "help", "check"])
def test_a_working_directory_that_is_gone_does_not_matter(name: str, run: Runner, node: Node, home: Path) -> None:
    gone = home / "gone"
    gone.mkdir()
    done = run.shell(f"cd {gone} && rmdir {gone} && $BCD", *words(name, node))
    assert (done.status, done.stderr) == (STATUS.get(name, 0), "")


def test_a_command_reads_its_standard_input_only_when_asked(run: Runner, node: Node) -> None:
    """A loop over hosts that reads their names from stdin is not robbed of them."""
    script = "printf 'one\\ntwo\\n' | while read -r host; do $BCD > /dev/null; echo $host; done"
    assert run.shell(script, *words("update", node)).stdout == "one\ntwo\n"


@pytest.mark.parametrize("source", ["<&-", "< /dev/null"])
def test_a_manifest_from_a_stdin_that_has_none_is_refused(source: str, run: Runner, node: Node) -> None:
    done = run.shell(f"$BCD {source}", "update", "check", "-", "--config", str(node.config))
    assert (done.status, done.stderr) == (1, "")
    assert "(manifest-shape)" in done.stdout
