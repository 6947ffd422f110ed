"""Settle on a real disk: each row of section 7's table, what it leaves, and what the same update may do after it."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.core import steps
from bcd.core.errors import HostError, Refusal
from bcd.core.records import PendingRecord
from bcd.core.settle import Outcome
from bcd.core.store import Store
from tests.core.node_root import NOW, Node, make_release, program, quick_node

ONE = make_release("1.1.0", 11)
TWO = make_release("1.2.0", 12)
SCRIPT = Path(__file__).parents[2] / "bcd" / "core" / "rollback.sh"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """On 1.1.0 in slot b, 1.0.0 in slot a; floor 11."""
    made = quick_node(tmp_path, monkeypatch)
    made.update(ONE)
    return made


class Cut(BaseException):
    """The power goes."""


def cut_at(monkeypatch: pytest.MonkeyPatch, step: str, operation: Callable[[], object]) -> None:
    """Run an operation that ends at a step."""

    def reached(name: str) -> None:
        if name == step:
            raise Cut

    with monkeypatch.context() as patched:
        patched.setattr(steps, "reached", reached)
        with pytest.raises(Cut):
            operation()


def crash_loop(node: Node) -> None:
    """The new binary crashed until systemd gave up on it: the rollback unit's script."""
    ran = subprocess.run(["sh", str(SCRIPT), node.layout.slots_dir, node.layout.records_dir], capture_output=True)
    assert ran.returncode == 0, ran.stderr


def settled_records(node: Node) -> None:
    """Nothing is pending, and no marker stands."""
    assert node.json(node.layout.pending_record) is None
    assert not os.path.lexists(node.layout.rollback_marker)
    assert node.manager().look.time_left() is None


def failures(node: Node) -> list[tuple[str, int, str, int]]:
    """What `update.json` holds against versions."""
    listed = (node.json(node.layout.update_record) or {})["failed"]
    assert isinstance(listed, list)
    return [(entry["version"], entry["sequence"], entry["reason"], entry["at"]) for entry in listed]


# Rows that end well --------------------------------------------------------------------------------------------------


def test_nothing_is_pending(node: Node) -> None:
    """Settled, and the disk is as it was."""
    before = node.tree(history=True)
    (settled,) = node.start()
    assert (settled.outcome, settled.pending, settled.failed) == (Outcome.SETTLED, None, None)
    assert node.tree(history=True) == before


def test_a_confirm_that_was_cut_off_is_finished(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record carries this very swap: confirmed it is, even when the deadline passed meanwhile."""
    node.swap(TWO, command_id="cmd-1")
    node.start()
    cut_at(monkeypatch, "floor-raised", lambda: node.manager().confirm())
    node.clock.passes(100_000)
    (settled,) = node.start()
    assert settled.outcome is Outcome.FINISH_CONFIRM
    assert settled.pending is not None
    assert settled.pending.command_id == "cmd-1"
    settled_records(node)
    assert (node.runs(), node.floor(), failures(node)) == ("1.2.0", 12, [])


def test_a_confirm_of_another_swap_finishes_nothing(node: Node) -> None:
    """The same version and sequence, confirmed before: what counts is the swap."""
    node.update(TWO)
    node.update(make_release("1.3.0", 13))
    node.swap(make_release("1.2.0", 13))
    (settled,) = node.start()
    assert settled.outcome is Outcome.PENDING


def test_a_swap_cut_off_before_its_link_taught_nothing(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Provably never ran: not held against the version, which may be tried again at once."""
    for step in ("recorded", "previous-linked"):
        cut_at(monkeypatch, step, lambda: node.swap(TWO))
        node.clock.reboots(10_000)
        (settled,) = node.start()
        assert settled.outcome is Outcome.INTERRUPTED
        assert settled.pending is not None
        assert settled.failed is None
        settled_records(node)
        assert (node.runs(), failures(node)) == ("1.1.0", [])
    node.update(TWO)
    assert node.runs() == "1.2.0"


# Rows that end in a failure ------------------------------------------------------------------------------------------


def at_deadline(node: Node) -> None:
    """The new binary's own timer."""
    node.start()
    node.clock.passes(120)
    assert node.manager().rollback(way="deadline")


def refused_at_deadline(node: Node) -> None:
    """A gateway answered all the time, and refused."""
    node.start()
    node.manager().note_gateway_refused("429 later")
    node.manager().note_gateway_refused("unknown node n-17")
    node.clock.passes(120)
    assert node.manager().rollback(way="deadline")


def exec_failed(node: Node) -> None:
    """The old process could not exec the new binary."""
    assert node.manager("1.1.0").rollback(way="exec", said="Exec format error")


def crashed_at_once(node: Node) -> None:
    """It never got as far as settling."""
    crash_loop(node)


def crashed_later(node: Node) -> None:
    """It settled and crashed, five times."""
    for _ in range(5):
        node.start()
    crash_loop(node)


def started_late(node: Node) -> None:
    """Launched, stopped, and started after the deadline."""
    node.start()
    node.clock.passes(3_600)


def first_started_late(node: Node) -> None:
    """Switched off right after the swap, and on the next day."""
    node.clock.reboots(86_400)


WAYS: dict[str, tuple[Callable[[Node], None], str]] = {
    "never answered": (at_deadline, "bcd 1.2.0 was not welcomed by a gateway before its deadline"),
    "refused": (refused_at_deadline, "bcd 1.2.0 was refused by the gateway until its deadline: unknown node n-17"),
    "exec failed": (exec_failed, "bcd 1.2.0 could not be started: Exec format error"),
    "crash loop": (crashed_at_once, "bcd 1.2.0 did not run: it failed at every start"),
    "crash loop, launched": (crashed_later, "bcd 1.2.0 kept crashing before a gateway welcomed it"),
    "late start": (started_late, "bcd 1.2.0 was not welcomed by a gateway before its deadline"),
    "late first start": (first_started_late, "bcd 1.2.0 did not run before its deadline"),
}


@pytest.mark.parametrize("name", WAYS)
def test_what_was_rolled_back_is_held_against_the_version(node: Node, name: str) -> None:
    """With the reason, once; the floor stays, the old binary runs, and only an operator lets it be tried again."""
    go_back, reason = WAYS[name]
    pending = node.swap(TWO, command_id="cmd-2")
    go_back(node)
    settled = node.start()[-1]
    assert settled.outcome is Outcome.ROLLED_BACK
    assert settled.pending is not None
    assert (settled.pending.swap_id, settled.pending.command_id) == (pending.swap_id, "cmd-2")
    assert settled.failed is not None
    assert settled.failed.reason == reason
    settled_records(node)
    assert failures(node) == [("1.2.0", 12, reason, int(node.clock.now))]
    assert (node.runs(), node.link("current"), node.floor()) == ("1.1.0", "bcd-b", 11)
    last = node.events()[-1]
    assert (last["event"], last["version"], last["reason"]) == ("settled-failed", "1.2.0", reason)
    before = node.tree(history=True)
    assert node.start()[-1].outcome is Outcome.SETTLED
    assert node.tree(history=True) == before
    with pytest.raises(Refusal, match="failed here before"):
        node.manager().prepare(TWO.section, server_time=None)
    assert [entry.reason for entry in node.manager().clear_failed()] == [reason]
    node.update(make_release("1.2.0", 12, expires_at=int(node.clock.now) + 60))
    assert (node.runs(), node.floor()) == ("1.2.0", 12)


@pytest.mark.parametrize("name", ["late start", "late first start"])
def test_a_late_start_goes_back_and_asks_for_the_old_binary(node: Node, name: str) -> None:
    """Two processes: the new one moves the link, the old one settles."""
    node.swap(TWO)
    WAYS[name][0](node)
    went, settled = node.start()
    assert (went.outcome, went.restart, went.stayed) == (Outcome.ROLL_BACK, True, None)
    assert (settled.outcome, settled.restart) == (Outcome.ROLLED_BACK, False)


def test_a_version_that_fails_again_is_listed_once(node: Node) -> None:
    """With its latest reason, last."""
    node.fail(TWO)
    node.fail(make_release("1.3.0", 13))
    node.manager().clear_failed(("1.3.0",))
    node.clock.passes(60)
    Store(node.layout, node.clock).save_update(Store(node.layout, node.clock).update())
    listed = failures(node)
    assert [version for version, *_ in listed] == ["1.2.0"]
    pending = node.json(node.layout.pending_record)
    assert pending is None
    node.manager().clear_failed()
    node.fail(make_release("1.3.0", 13))
    node.fail(TWO)
    assert [version for version, *_ in failures(node)] == ["1.3.0", "1.2.0"]


def test_of_33_failed_versions_the_oldest_is_forgotten(node: Node) -> None:
    """32 are kept, oldest first."""
    for number in range(33):
        node.fail(make_release(f"2.0.{number}", 20 + number))
    assert [version for version, *_ in failures(node)] == [f"2.0.{number}" for number in range(1, 33)]
    assert node.runs() == "1.1.0"
    assert node.manager().prepare(make_release("2.0.0", 20).section, server_time=None) is not None
    with pytest.raises(Refusal, match="failed here before"):
        node.manager().prepare(make_release("2.0.1", 21).section, server_time=None)


# `current` is lost ---------------------------------------------------------------------------------------------------


def remove(path: str) -> None:
    """No link at all."""
    os.unlink(path)


def elsewhere(path: str) -> None:
    """A link to something else."""
    os.unlink(path)
    os.symlink("/bin/true", path)


def dangling(path: str) -> None:
    """The new slot's file is gone."""
    os.unlink(os.path.realpath(path))


def plain(path: str) -> None:
    """A file."""
    os.unlink(path)
    Path(path).write_bytes(program("1.2.0"))


LOST: dict[str, Callable[[str], None]] = {
    "missing": remove,
    "elsewhere": elsewhere,
    "dangling": dangling,
    "a file": plain,
}


@pytest.mark.parametrize("launched", [False, True])
@pytest.mark.parametrize("name", LOST)
def test_a_lost_current_is_put_back_to_a_whole_old_slot(node: Node, name: str, launched: bool) -> None:
    """Then it is as rolled back: the version failed, the old one runs."""
    node.swap(TWO)
    if launched:
        node.start()
    LOST[name](node.layout.current)
    settled = node.manager("1.1.0").settle()
    assert (settled.outcome, settled.restart) == (Outcome.RESTORE, True)
    assert settled.failed is not None
    assert settled.failed.version == "1.2.0"
    assert settled.failed.reason == "bcd 1.2.0 was given up: `current` led neither to it nor to what ran before"
    settled_records(node)
    assert (node.runs(), node.link("current"), node.floor()) == ("1.1.0", "bcd-b", 11)
    assert node.start()[-1].outcome is Outcome.SETTLED


@pytest.mark.parametrize("old", ["gone", "empty", "changed", "not executable", "unrecorded", "a link"])
@pytest.mark.parametrize("name", LOST)
def test_without_a_whole_old_slot_nothing_is_touched(node: Node, name: str, old: str) -> None:
    """Stopped with a clear error, at each start the same, until somebody installs bcd anew."""
    node.swap(TWO)
    LOST[name](node.layout.current)
    slot = node.slot("b")
    match old:
        case "gone":
            slot.unlink()
        case "empty":
            slot.write_bytes(b"")
        case "changed":
            slot.write_bytes(program("1.1.0").replace(b"#\n", b"~\n"))
        case "not executable":
            slot.chmod(0o644)
        case "unrecorded":
            slots = node.json(node.layout.slots_record) or {}
            Path(node.layout.slots_record).write_text(json.dumps({**slots, "b": None}))
        case "a link":
            slot.rename(slot.with_name("moved"))
            slot.symlink_to("moved")
    before = node.tree(history=True)
    for _ in range(2):
        with pytest.raises(HostError, match="names neither slot of the pending update") as caught:
            node.manager("1.1.0").settle()
        assert caught.value.code == "slots-broken"
        assert node.layout.entrypoint in caught.value.hint
        assert node.tree(history=True) == before


# Left-overs ----------------------------------------------------------------------------------------------------------


def test_a_stale_marker_is_nothing(node: Node) -> None:
    """Without a record beside it: removed, nobody is blamed, and the next swap is not judged by it."""
    Path(node.layout.rollback_marker).touch()
    assert node.start()[-1].outcome is Outcome.SETTLED
    settled_records(node)
    Path(node.layout.rollback_marker).touch()
    node.swap(TWO)
    assert not os.path.lexists(node.layout.rollback_marker)
    assert node.start()[-1].outcome is Outcome.PENDING


def test_stale_temporary_files_go_when_nothing_is_pending(node: Node) -> None:
    """Ours alone, of whatever type; a directory with content is left, and so is everything else."""
    slots, records = Path(node.layout.slots_dir), Path(node.layout.records_dir)
    beside = Path(node.layout.entrypoint).parent
    (slots / ".current.0123456789ab.tmp").symlink_to("bcd-a")
    (slots / ".slots.json.0123456789ab.tmp").write_bytes(b"{")
    (slots / "bcd-a.tmp").write_bytes(b"half")
    (records / ".update.json.0123456789ab.tmp").write_bytes(b"")
    (records / ".upgrade.json.0123456789ab.tmp").mkdir()
    (beside / ".bcd.0123456789ab.tmp").symlink_to(node.layout.current)
    kept = [slots / "notes.tmp", slots / "bcd-c", records / "update.json.corrupt-7", slots / "bcd-b.tmp" / "content"]
    kept += [
        beside / ".other.0123456789ab.tmp",
        beside / ".bcd.tmp",
        beside / ".bcd.fedcba987654.tmp",
        beside / "x.tmp",
    ]
    (slots / "bcd-b.tmp").mkdir()
    for path in kept:
        path.write_bytes(b"somebody's")
    before = node.tree()
    node.swap(TWO)
    node.start()
    assert (beside / ".bcd.0123456789ab.tmp").is_symlink()
    assert node.manager().confirm() is not None
    node.start()
    gone = before.keys() - node.tree().keys()
    assert gone == {
        "lib/bcd/.current.0123456789ab.tmp",
        "lib/bcd/.slots.json.0123456789ab.tmp",
        "lib/bcd/bcd-a.tmp",
        "data/update/.update.json.0123456789ab.tmp",
        "data/update/.upgrade.json.0123456789ab.tmp",
        "bin/.bcd.0123456789ab.tmp",
    }
    assert all(path.read_bytes() == b"somebody's" for path in kept)


@pytest.mark.parametrize("name", ["bcd-1.3.0.part", "bcd-1.3.0"])
def test_staged_files_stay_for_seven_days(node: Node, name: str) -> None:
    """A download that was cut off may still be resumed; one of last week is not wanted any more."""
    staged = Path(node.layout.staging) / name
    foreign = Path(node.layout.staging) / "thesis.part"
    for path in (staged, foreign):
        path.write_bytes(b"half")
        os.utime(path, (NOW, NOW))
    node.clock.now = NOW + 7 * 86_400
    node.start()
    assert staged.exists()
    node.clock.now = NOW - 86_400
    node.start()
    assert staged.exists()
    node.clock.now = NOW + 7 * 86_400 + 1
    node.start()
    assert not staged.exists()
    assert foreign.exists()


def test_a_pending_update_keeps_what_it_may_need(node: Node) -> None:
    """Nothing is tidied before it is settled."""
    (Path(node.layout.slots_dir) / ".current.0123456789ab.tmp").symlink_to("bcd-a")
    node.swap(TWO)
    (settled,) = node.start()
    assert isinstance(settled.pending, PendingRecord)
    assert os.path.lexists(os.path.join(node.layout.slots_dir, ".current.0123456789ab.tmp"))
