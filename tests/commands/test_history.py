"""`bcd update history`: newest first, whatever the file holds."""

import json
from collections.abc import Callable

import pytest

from tests.commands.documents import document
from tests.commands.node_dir import Node
from tests.commands.running import NOBODY, Done, Runner

Call = Callable[..., Done]

EVENTS = (
    {"at": 1_790_000_000, "event": "prepared", "version": "1.4.1", "sequence": 15},
    {"at": 1_790_000_060, "event": "swapped", "version": "1.4.1", "sequence": 15, "slot": "a"},
    {"at": 1_790_000_180, "event": "rolled-back", "version": "1.4.1", "sequence": 15, "way": "deadline"},
    {"at": 1_790_000_181, "event": "settled-failed", "version": "1.4.1", "sequence": 15, "reason": "no welcome"},
    {"at": 1_790_000_300, "event": "refused", "version": "1.4.2", "code": "expired", "reason": "it expired"},
    {"at": 1_790_000_400, "event": "cleared", "versions": ["1.4.1", "1.4.0"]},
)


def test_each_event_is_a_line_newest_first(call: Call, node: Node) -> None:
    node.write_history(*EVENTS)
    done = call("update", "history", "--config", str(node.config))
    assert done == (
        0,
        (
            "2026-09-21 14:20:00Z  cleared         1.4.1, 1.4.0\n"
            "2026-09-21 14:18:20Z  refused         1.4.2 (code expired): it expired\n"
            "2026-09-21 14:16:21Z  settled-failed  1.4.1 (sequence 15): no welcome\n"
            "2026-09-21 14:16:20Z  rolled-back     1.4.1 (sequence 15, way deadline)\n"
            "2026-09-21 14:14:20Z  swapped         1.4.1 (sequence 15, slot a)\n"
            "2026-09-21 14:13:20Z  prepared        1.4.1 (sequence 15)\n"
        ),
        "",
    )


def test_the_json_keeps_every_field(call: Call, node: Node) -> None:
    node.write_history(*EVENTS)
    done = call("update", "history", "--json", "--config", str(node.config))
    assert (done.status, done.stderr) == (0, "")
    assert document(done.stdout, "update-history")["events"] == list(reversed(EVENTS))


def test_what_was_rotated_away_follows(call: Call, node: Node) -> None:
    node.write_history(EVENTS[0])
    node.history.rename(f"{node.history}.1")
    node.write_history(EVENTS[1])
    done = call("update", "history", "--config", str(node.config))
    assert [line.split()[2] for line in done.stdout.splitlines()] == ["swapped", "prepared"]


@pytest.mark.parametrize(("count", "lines"), [("1", 1), ("3", 3), ("99999999999999999999999", 6)])
def test_n_is_how_many_at_most(count: str, lines: int, call: Call, node: Node) -> None:
    node.write_history(*EVENTS)
    done = call("update", "history", "-n", count, "--config", str(node.config))
    assert (done.status, done.stdout.count("\n")) == (0, lines)


def test_twenty_are_shown_where_nobody_says_how_many(call: Call, node: Node) -> None:
    node.write_history(*[EVENTS[0]] * 25)
    assert call("update", "history", "--config", str(node.config)).stdout.count("\n") == 20


def test_where_nothing_happened_it_says_so(call: Call, node: Node) -> None:
    assert call("update", "history", "--config", str(node.config)) == (0, "nothing happened here yet\n", "")
    done = call("update", "history", "--json", "--config", str(node.config))
    assert document(done.stdout, "update-history") == {"format": 1, "events": []}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[1]",
        b"\0" * 50,
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"at": NaN, "event": "swapped"}',
        b'{"at": 1e999, "event": "swapped"}',
        b'{"at": ' + b"9" * 5000 + b', "event": "swapped"}',
    ],
    ids=lambda line: repr(line[:12]),
)
def test_a_torn_line_is_passed_over(line: bytes, call: Call, node: Node) -> None:
    good = json.dumps(EVENTS[0]).encode()
    node.history.write_bytes(good + b"\n" + line + b"\n" + good + b"\n")
    done = call("update", "history", "--json", "--config", str(node.config))
    assert (done.status, len(document(done.stdout, "update-history")["events"])) == (0, 2)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ({}, "at unknown time       unknown"),
        ({"at": 10**30, "event": "swapped"}, "at unknown time       swapped"),
        ({"at": -(10**30), "event": "swapped"}, "at unknown time       swapped"),
        ({"at": "today", "event": "swapped"}, "at unknown time       swapped"),
        ({"at": None, "event": None}, "at unknown time       unknown"),
        ({"at": 0, "event": ["x"], "version": {"a": 1}}, "1970-01-01 00:00:00Z  x               {'a': 1}"),
        ({"at": 0, "event": "e", "sequence": "15"}, "1970-01-01 00:00:00Z  e"),
    ],
    ids=str,
)
def test_an_event_of_another_shape_is_shown_as_far_as_it_goes(
    event: dict[str, object], line: str, call: Call, node: Node
) -> None:
    node.write_history(event)
    assert call("update", "history", "--config", str(node.config)) == (0, f"{line}\n", "")


def test_a_history_that_may_not_be_read_is_not_an_empty_one(run: Runner, node: Node) -> None:
    node.write_history(*EVENTS)
    node.forbid(node.history)
    done = run("update", "history", "--config", str(node.config), user=NOBODY)
    assert (done.status, done.code, done.stdout) == (4, "unreadable-history", "")
    assert done.hint == f"sudo bcd update history --config {node.config}"
