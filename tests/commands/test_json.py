"""`--json`: exactly one document of the published shape on stdout, whatever is well or broken."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.documents import document
from tests.commands.node_dir import REASON, WHEN, Node, failed, slot_entry
from tests.commands.running import NOBODY, Done, Runner

Call = Callable[..., Done]

DOCUMENTS = {
    "update": ("update",),
    "update-history": ("update", "history"),
    "update-clear-failed": ("update", "--clear-failed"),
    "update-check": ("update", "check"),
}


SLOTS = {"a": ("1.3.2", 13), "b": ("1.4.0", 14)}
"""What the slots of the node hold, recorded by a bcd that noted no expiry."""


def asked(call: Call, node: Node, name: str) -> Done:
    """Ask for one of `DOCUMENTS`."""
    manifest = [str(node.config)] if name == "update-check" else []
    return call(*DOCUMENTS[name], *manifest, "--json", "--config", str(node.config))


def test_the_whole_status_of_a_node_is_in_its_document(call: Call, node: Node) -> None:
    done = call("update", "--json", "--config", str(node.config))
    assert (done.status, done.stderr) == (0, "")
    status = document(done.stdout, "update")
    del status["build"]
    assert status == {
        "format": 1,
        "version": "1.4.0",
        "floor": 14,
        "floor_known": True,
        "pins": {"count": 2, "threshold": 2},
        "links": {"current": "b", "previous": "a"},
        "slots": {slot: {**slot_entry(*release), "expires_at": None} for slot, release in SLOTS.items()},
        "confirmed": None,
        "pending": None,
        "failed": [{"version": "1.4.1", "sequence": 15, "reason": REASON, "at": WHEN}],
        "problems": [],
        "corrupt_aside": [],
        "paths": {
            "config": str(node.config),
            "slots_dir": str(node.slots),
            "entrypoint": str(node.entrypoint),
            "records_dir": str(node.records),
            "data_dir": str(node.data),
        },
        "agent": None,
    }


def test_a_pending_update_is_in_it_with_what_is_left(call: Call, node: Node) -> None:
    node.write_pending(seconds_left=87.5, command_id="c-1", refused="too many nodes")
    pending = document(call("update", "--json", "--config", str(node.config)).stdout, "update")["pending"]
    assert 60 < pending.pop("seconds_left") <= 87.5
    assert pending.pop("deadline") == pending.pop("swapped_at") + 120
    assert pending == {
        "version": "1.4.2",
        "sequence": 15,
        "slot": "a",
        "from_version": "1.4.0",
        "from_slot": "b",
        "swap_id": "5a" * 16,
        "command_id": "c-1",
        "launched": True,
        "refused": "too many nodes",
    }


def test_an_overdue_update_has_less_than_nothing_left(call: Call, node: Node) -> None:
    node.write_pending(seconds_left=-30)
    status = document(call("update", "--json", "--config", str(node.config)).stdout, "update")
    assert -60 < status["pending"]["seconds_left"] <= -30


def test_what_was_confirmed_last_is_in_it(call: Call, node: Node) -> None:
    node.write_update([], confirmed={"version": "1.4.0", "sequence": 14, "at": 5, "swap_id": "ab"})
    status = document(call("update", "--json", "--config", str(node.config)).stdout, "update")
    assert status["confirmed"] == {"version": "1.4.0", "sequence": 14, "at": 5}


def broken_config(node: Node) -> None:
    """Not one of the breakages below: see the last test."""
    node.config.write_text("[update\n")


def no_slots(node: Node) -> None:
    node.unadopted()


def torn_records(node: Node) -> None:
    for path in (node.update_json, node.pending_json, node.slots_json, node.history):
        path.write_bytes(b'{"format": 1, "s')


def directories_for_records(node: Node) -> None:
    for path in (node.update_json, node.slots_json):
        path.unlink()
    for path in (node.update_json, node.pending_json, node.slots_json):
        path.mkdir()


def links_to_nowhere(node: Node) -> None:
    for name in ("current", "previous"):
        (node.slots / name).unlink()
        (node.slots / name).symlink_to("bcd-c")


def files_for_directories(node: Node) -> None:
    for path in (*node.records.iterdir(), *node.slots.iterdir()):
        path.unlink()
    for directory in (node.records, node.slots):
        directory.rmdir()
        directory.write_text("")


def many_failures(node: Node) -> None:
    node.write_update([failed(f"1.4.{number}", "x" * 5_000) for number in range(32)])


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize(
    "breakage",
    [no_slots, torn_records, directories_for_records, links_to_nowhere, files_for_directories, many_failures],
    ids=lambda breakage: breakage.__name__,
)
def test_it_is_one_document_whatever_is_broken(
    name: str, breakage: Callable[[Node], None], call: Call, node: Node
) -> None:
    breakage(node)
    done = asked(call, node, name)
    assert done.status in (0, 1)
    document(done.stdout, name)


def test_problems_are_listed_with_path_state_and_why(call: Call, node: Node) -> None:
    torn_records(node)
    done = call("update", "--json", "--config", str(node.config))
    status = document(done.stdout, "update")
    assert done.status == 1
    assert [(p["path"], p["state"]) for p in status["problems"]] == [
        (str(path), "corrupt") for path in (node.slots_json, node.update_json, node.pending_json)
    ]
    assert all(problem["why"].startswith("it does not parse: ") for problem in status["problems"])
    assert (status["floor_known"], status["failed"], status["pending"]) == (False, [], None)


def test_what_may_not_be_read_is_a_problem_of_its_own(run: Runner, node: Node) -> None:
    node.forbid(node.data)
    done = run("update", "--json", "--config", str(node.config), user=NOBODY)
    status = document(done.stdout, "update")
    assert (done.status, done.stderr, status["floor_known"]) == (4, "", False)
    assert [(p["path"], p["state"]) for p in status["problems"]] == [
        (str(path), "unreadable") for path in (node.update_json, node.pending_json)
    ]


def test_records_kept_aside_are_listed(call: Call, node: Node) -> None:
    aside = [node.records / "update.json.corrupt-1790000000", node.slots / "slots.json.corrupt-1790000000-2"]
    for path in aside:
        path.write_text("{")
    status = document(call("update", "--json", "--config", str(node.config)).stdout, "update")
    assert sorted(status["corrupt_aside"]) == sorted(map(str, aside))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_broken_configuration_leaves_stdout_empty(name: str, call: Call, node: Node) -> None:
    """Nothing is known of the node then: no document is better than one that guesses. The error says all of it."""
    broken_config(node)
    done = asked(call, node, name)
    assert (done.status, done.code, done.stdout) == (2, "bad-config", "")


def test_values_from_outside_are_kept_whole(call: Call, node: Node) -> None:
    """Escaped, so that the document is ASCII, and never cut."""
    reason = "".join(map(chr, range(0x20))) + "\x7f\x85\x9b\u202e\u2066\U000e0041é" + "[/b]" + "x" * 10_000
    node.write_update([failed("1.4.1\x1b[2J", reason)])
    done = call("update", "--json", "--config", str(node.config))
    assert done.stdout.isascii()
    assert document(done.stdout, "update")["failed"][0]["reason"] == reason
    cleared = call("update", "--clear-failed", "--json", "--config", str(node.config))
    assert cleared.stdout.isascii()
    assert document(cleared.stdout, "update-clear-failed")["cleared"] == ["1.4.1\x1b[2J"]


def test_a_path_that_is_no_utf8_is_escaped(run: Runner, home: Path) -> None:
    odd = os.fsdecode(os.fsencode(home) + b"/\xff\x1b[2J")
    done = run("update", "--json", "--config", odd + "/missing.toml")
    assert (done.status, done.stdout.isascii()) == (0, True)
    assert json.loads(done.stdout)["paths"]["config"] == odd + "/missing.toml"
