"""`bcd update --clear-failed`: what it forgets, says and writes, and who may."""

import fcntl
import json
import os
from collections.abc import Callable

import pytest

from bcd.cli import main
from tests.commands.documents import document
from tests.commands.node_dir import REASON, Node, failed
from tests.commands.running import NOBODY, Done, Runner

Call = Callable[..., Done]


def remembered(node: Node) -> list[str]:
    return [entry["version"] for entry in json.loads(node.update_json.read_text())["failed"]]


@pytest.fixture
def two_failed(node: Node) -> Node:
    node.write_update([failed("1.4.1"), failed("1.4.2", "it exited at once")])
    return node


def test_without_versions_all_are_forgotten_and_named(call: Call, two_failed: Node) -> None:
    done = call("update", "--clear-failed", "--config", str(two_failed.config))
    assert done == (0, f"failed versions cleared\n  1.4.1 ({REASON})\n  1.4.2 (it exited at once)\n", "")
    assert remembered(two_failed) == []
    assert call("update", "--config", str(two_failed.config)).stdout.count("\n") == 2


@pytest.mark.parametrize(
    "words",
    [
        ["--clear-failed", "1.4.2", "--config", "F"],
        ["--config", "F", "--clear-failed", "1.4.2"],
        ["--clear-failed", "--config", "F", "1.4.2"],
        ["--clear-failed", "--config=F", "--json", "1.4.2", "1.4.2"],
    ],
    ids=" ".join,
)
def test_a_named_version_is_forgotten_alone_wherever_it_stands(words: list[str], call: Call, two_failed: Node) -> None:
    """A version after another option is still a version: it must never widen to all of them."""
    done = call("update", *(word.replace("F", str(two_failed.config)) for word in words))
    assert (done.status, done.stderr) == (0, "")
    assert remembered(two_failed) == ["1.4.1"]


def test_several_named_versions_are_forgotten(call: Call, two_failed: Node) -> None:
    done = call("update", "--clear-failed", "1.4.1", "1.4.2", "--config", str(two_failed.config))
    assert done.status == 0
    assert remembered(two_failed) == []


def test_an_unknown_version_is_said_and_the_known_is_forgotten(call: Call, two_failed: Node) -> None:
    done = call("update", "--clear-failed", "1.4.1", "9.9.9", "--config", str(two_failed.config))
    assert done == (
        1,
        f"failed versions cleared\n  1.4.1 ({REASON})\n9.9.9 is not among the failed versions\n",
        "",
    )
    assert remembered(two_failed) == ["1.4.2"]


@pytest.mark.parametrize("version", ["9.9.9", "", "check", "1.4"])
def test_a_version_that_did_not_fail_clears_nothing(version: str, call: Call, two_failed: Node) -> None:
    """An empty one, as an unset variable gives, is no wish to forget all."""
    before = two_failed.update_json.read_bytes()
    done = call("update", "--clear-failed", version, "--config", str(two_failed.config))
    assert done == (1, f"{version or repr('')} is not among the failed versions\n", "")
    assert two_failed.update_json.read_bytes() == before


def test_where_nothing_failed_there_is_nothing_to_clear(call: Call, node: Node) -> None:
    node.write_update([])
    before = node.update_json.read_bytes()
    assert call("update", "--clear-failed", "--config", str(node.config)) == (0, "no failed versions to clear\n", "")
    assert node.update_json.read_bytes() == before


def test_where_nothing_was_ever_written_nothing_is(call: Call, node: Node) -> None:
    node.unadopted()
    node.records.rmdir()
    before = node.snapshot()
    assert call("update", "--clear-failed", "--config", str(node.config)) == (0, "no failed versions to clear\n", "")
    assert node.snapshot() == before


def test_floor_confirmed_and_unknown_fields_outlive_it(call: Call, node: Node) -> None:
    """Only the failures are forgotten; an older release stays refused (the floor never falls)."""
    confirmed = {"version": "1.4.0", "sequence": 14, "at": 5, "swap_id": "ab"}
    document_before = {"format": 1, "sequence": 14, "confirmed": confirmed, "failed": [failed("1.4.1")], "new": [1]}
    node.update_json.write_text(json.dumps(document_before))
    assert call("update", "--clear-failed", "--config", str(node.config)).status == 0
    assert json.loads(node.update_json.read_text()) == {**document_before, "failed": []}


def test_what_was_forgotten_stands_in_the_history(call: Call, two_failed: Node) -> None:
    call("update", "--clear-failed", "--config", str(two_failed.config))
    event = json.loads(two_failed.history.read_text())
    assert (event["event"], event["versions"]) == ("cleared", ["1.4.1", "1.4.2"])


def test_the_json_lists_what_was_cleared_and_what_is_unknown(call: Call, two_failed: Node) -> None:
    done = call("update", "--clear-failed", "1.4.1", "9.9.9", "--json", "--config", str(two_failed.config))
    assert (done.status, done.stderr) == (1, "")
    assert document(done.stdout, "update-clear-failed") == {"format": 1, "cleared": ["1.4.1"], "unknown": ["9.9.9"]}


def test_a_broken_record_is_kept_aside_and_said(call: Call, node: Node) -> None:
    """What it remembered is lost, not guessed at; the floor is what the slots are evidence of."""
    node.update_json.write_text("{")
    done = call("update", "--clear-failed", "--json", "--config", str(node.config))
    assert document(done.stdout, "update-clear-failed") == {"format": 1, "cleared": [], "unknown": []}
    (aside,) = node.records.glob("update.json.corrupt-*")
    assert aside.read_text() == "{"
    assert done.stderr.startswith(f"bcd: {node.update_json} is broken (")
    assert done.stderr.endswith(f"; kept as {aside}\n")
    assert json.loads(node.update_json.read_text())["sequence"] == 14
    after = call("update", "--json", "--config", str(node.config))
    assert document(after.stdout, "update")["corrupt_aside"] == [str(aside)]
    assert after.status == 1  # until somebody has looked at what was moved aside


def test_while_an_update_holds_the_lock_it_is_busy(
    node: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 5, and nothing is forgotten."""
    monkeypatch.setattr("bcd.core.manager._LOCK_SECONDS", 0.1)
    before = node.update_json.read_bytes()
    with (node.records / "update.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        status = main(["update", "--clear-failed", "--config", str(node.config)])
    said = capsys.readouterr()
    assert (status, said.out) == (5, "")
    assert "(update-in-progress)" in said.err
    assert "  try: wait for it to finish; `bcd update` shows where it is" in said.err
    assert node.update_json.read_bytes() == before


def test_a_pending_update_is_no_hindrance(call: Call, node: Node) -> None:
    """What failed earlier may be forgotten while another release waits for its welcome."""
    node.write_pending()
    pending = node.pending_json.read_bytes()
    assert call("update", "--clear-failed", "1.4.1", "--config", str(node.config)).status == 0
    assert (remembered(node), node.pending_json.read_bytes()) == ([], pending)


@pytest.mark.parametrize("versions", [[], ["1.4.1"]], ids=["all", "named"])
def test_a_user_without_the_right_is_told_the_command_and_writes_nothing(
    versions: list[str], run: Runner, node: Node
) -> None:
    node.forbid_writing()
    before = node.snapshot()
    done = run("update", "--clear-failed", *versions, "--config", str(node.config), user=NOBODY)
    assert (done.status, done.code, done.stdout) == (4, "needs-root", "")
    assert done.hint == " ".join(["sudo bcd update --clear-failed", *versions, "--config", str(node.config)])
    assert node.snapshot() == before


def test_the_command_in_the_hint_is_quoted_for_the_shell(run: Runner, node: Node) -> None:
    node.forbid_writing()
    odd = node.config.rename(node.home / "my config; rm.toml")
    done = run("update", "--clear-failed", "$(id)", "--config", str(odd), user=NOBODY)
    assert done.hint == f"sudo bcd update --clear-failed '$(id)' --config '{odd}'"


def test_on_a_node_with_a_helper_even_the_owner_of_the_directory_needs_root(run: Runner, node: Node) -> None:
    """The records are root's there; the node's user decides nothing about them, whatever the modes say."""
    node.use_helper()
    node.records.chmod(0o777)
    node.update_json.chmod(0o666)
    before = node.snapshot()
    done = run("update", "--clear-failed", "--config", str(node.config), user=NOBODY)
    assert (done.status, done.code, done.stdout) == (4, "needs-root", "")
    assert done.hint == f"sudo bcd update --clear-failed --config {node.config}"
    assert node.snapshot() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is root")
def test_on_a_node_with_a_helper_root_may(call: Call, node: Node) -> None:
    node.use_helper()
    assert call("update", "--clear-failed", "--config", str(node.config)).status == 0
    assert remembered(node) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="the lock must be another user's")
def test_anothers_lock_in_ones_own_directory_needs_root_too(run: Runner, node: Node) -> None:
    """A directory that was given away after root had worked in it."""
    (node.records / "update.lock").touch()
    for path in (node.records, node.update_json):
        os.chown(path, NOBODY, NOBODY)
    before = node.update_json.read_bytes()
    done = run("update", "--clear-failed", "--config", str(node.config), user=NOBODY)
    assert (done.status, done.code) == (4, "needs-root")
    assert node.update_json.read_bytes() == before


def test_records_that_may_not_be_read_need_root(run: Runner, node: Node) -> None:
    """Unreadable is not "none": it must not say that there was nothing to clear."""
    node.forbid(node.data)
    done = run("update", "--clear-failed", "--config", str(node.config), user=NOBODY)
    assert (done.status, done.code, done.stdout) == (4, "needs-root", "")
