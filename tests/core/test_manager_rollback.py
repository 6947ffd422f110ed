"""Rollback: to the slot that ran before, or not at all (field report 04); once, and never by guess."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.core.errors import HostError
from bcd.core.settle import Outcome
from tests.core.node_root import Node, make_release, program, quick_node

ONE = make_release("1.1.0", 11)
TWO = make_release("1.2.0", 12)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """1.2.0 in slot a is launched and waits; 1.1.0 ran before, from slot b."""
    made = quick_node(tmp_path, monkeypatch)
    made.update(ONE)
    made.swap(TWO)
    made.start()
    return made


def test_a_rollback_moves_the_link_and_leaves_its_word(node: Node) -> None:
    """The record says how; the marker says that; nothing is settled by the process that goes."""
    manager = node.manager()
    pending = node.json(node.layout.pending_record) or {}
    assert manager.rollback(way="deadline") is True
    assert (node.runs(), node.link("current"), node.link("previous")) == ("1.1.0", "bcd-b", "bcd-b")
    assert node.json(node.layout.pending_record) == {**pending, "way": "deadline"}
    assert Path(node.layout.rollback_marker).read_bytes() == b""
    assert (node.json(node.layout.update_record) or {})["failed"] == []
    assert node.events()[-1] == {
        "at": int(node.clock.now),
        "event": "rolled-back",
        "version": "1.2.0",
        "sequence": 12,
        "way": "deadline",
    }


def test_going_back_twice_goes_back_once(node: Node) -> None:
    """The second finds nothing to go back from, before and after it is settled."""
    manager = node.manager()
    assert manager.rollback(way="deadline") is True
    before = node.tree(history=True)
    assert manager.rollback(way="deadline") is False
    assert node.manager().rollback(way="exec", said="no") is False
    assert node.tree(history=True) == before
    node.start()
    before = node.tree(history=True)
    assert node.manager().rollback(way="deadline") is False
    assert node.tree(history=True) == before


def test_what_was_confirmed_is_not_gone_back_from(node: Node) -> None:
    """A timer that fires late finds nothing pending."""
    assert node.manager().confirm() is not None
    before = node.tree(history=True)
    assert node.manager().rollback(way="deadline") is False
    assert node.tree(history=True) == before
    assert node.runs() == "1.2.0"


def test_a_node_that_never_updated_has_nothing_to_go_back_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says so without a file."""
    node = quick_node(tmp_path, monkeypatch)
    node.start()
    before = node.tree(history=True)
    assert node.manager().rollback(way="deadline") is False
    assert node.manager().clear_failed() == ()
    assert node.tree(history=True) == before


def unrecord(node: Node) -> None:
    """Another record for the old slot."""
    slots = node.json(node.layout.slots_record) or {}
    record = slots["b"]
    assert isinstance(record, dict)
    record["sha256"] = "0" * 64
    Path(node.layout.slots_record).write_text(json.dumps(slots))


def into_link(node: Node) -> None:
    """A link to the right bytes, in the old slot's place."""
    node.slot("b").rename(node.root / "moved")
    node.slot("b").symlink_to(node.root / "moved")


def into_directory(node: Node) -> None:
    """A directory in the old slot's place."""
    node.slot("b").unlink()
    node.slot("b").mkdir()


def into_fifo(node: Node) -> None:
    """A FIFO that hangs whoever opens it."""
    node.slot("b").unlink()
    os.mkfifo(node.slot("b"), 0o755)


def lose_record(node: Node) -> None:
    """No record of any slot, and an empty file."""
    os.unlink(node.layout.slots_record)
    node.slot("b").write_bytes(b"")


BROKEN: dict[str, Callable[[Node], object]] = {
    "gone": lambda node: node.slot("b").unlink(),
    "empty": lambda node: node.slot("b").write_bytes(b""),
    "one byte changed": lambda node: node.slot("b").write_bytes(program("1.1.0")[:-2] + b"~\n"),
    "another program": lambda node: node.slot("b").write_bytes(program("1.0.0")),
    "not executable": lambda node: node.slot("b").chmod(0o644),
    "another record": unrecord,
    "a link": into_link,
    "a directory": into_directory,
    "a FIFO": into_fifo,
    "unrecorded and empty": lose_record,
}


@pytest.mark.parametrize("way", ["deadline", "exec", "late start"])
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_old_slot_is_not_gone_back_to(node: Node, name: str, way: str) -> None:
    """`current` is untouched, what runs goes on running, and says why; it may be confirmed yet."""
    BROKEN[name](node)
    node.clock.passes(500)
    before = node.tree(history=True)
    if way == "late start":
        (settled,) = node.start()
        assert (settled.outcome, settled.restart, settled.failed) == (Outcome.ROLL_BACK, False, None)
        error = settled.stayed
        assert error is not None
    else:
        with pytest.raises(HostError) as caught:
            node.manager().rollback(way="exec" if way == "exec" else "deadline")
        error = caught.value
    assert error.code == "io-error"
    assert "slot b does not hold what ran before (1.1.0), so bcd stays on 1.2.0" in error.message
    assert node.layout.entrypoint in error.hint
    assert node.tree(history=True) == before
    assert node.runs() == "1.2.0"
    assert node.manager().confirm() is not None
    assert node.floor() == 12


def test_a_mended_old_slot_is_gone_back_to(node: Node) -> None:
    """Asked again, as the timer does."""
    shutil.copy2(node.slot("b"), node.root / "kept")
    node.slot("b").unlink()
    manager = node.manager()
    with pytest.raises(HostError):
        manager.rollback(way="deadline")
    shutil.copy2(node.root / "kept", node.slot("b"))
    assert manager.rollback(way="deadline") is True
    assert node.start()[-1].outcome is Outcome.ROLLED_BACK
    assert node.runs() == "1.1.0"


def test_a_rollback_needs_no_room_for_its_record(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad release that filled the disk is gone back from all the same; only the reason is poorer for it."""
    real = os.write

    def full(handle: int, data: bytes) -> int:
        if b"swap_id" in bytes(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(handle, data)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        assert node.manager().rollback(way="deadline") is True
    assert node.start()[-1].outcome is Outcome.ROLLED_BACK
    assert node.runs() == "1.1.0"


def test_who_runs_under_a_link_that_was_moved_back_is_told(node: Node) -> None:
    """By the crash loop's script, or by hand: what runs is not what would be started, and a start settles it."""
    manager = node.manager()
    assert manager.look.went_back() is False
    os.unlink(node.layout.current)
    os.symlink("bcd-b", node.layout.current)
    assert manager.look.went_back() is True
    assert manager.confirm() is None
    assert node.start()[-1].outcome is Outcome.ROLLED_BACK
    assert manager.look.went_back() is False


def test_without_any_record_a_program_in_the_old_slot_is_gone_back_to(node: Node) -> None:
    """What can't be checked is better than what no gateway welcomes (field report 02)."""
    os.unlink(node.layout.slots_record)
    assert node.manager().rollback(way="deadline") is True
    assert node.start()[-1].outcome is Outcome.ROLLED_BACK
    assert node.runs() == "1.1.0"


def test_a_late_start_that_cannot_go_back_tries_at_each_start(node: Node) -> None:
    """It stays, and is rolled back as soon as it can be."""
    node.slot("b").rename(node.root / "kept")
    node.clock.passes(121)
    for _ in range(3):
        (settled,) = node.start()
        assert settled.stayed is not None
    (node.root / "kept").rename(node.slot("b"))
    assert [settled.outcome for settled in node.start()] == [Outcome.ROLL_BACK, Outcome.ROLLED_BACK]


def test_after_a_rollback_the_next_update_is_a_new_one(node: Node) -> None:
    """The failed release's slot makes room, and nothing of it is left to judge the next by."""
    assert node.manager().rollback(way="deadline")
    node.start()
    three = make_release("1.3.0", 13)
    node.update(three)
    assert (node.runs(), node.floor()) == ("1.3.0", 13)
    assert list(node.manager().look.failed()) == ["1.2.0"]


@pytest.mark.parametrize(
    ("versions", "left"),
    [((), []), (("1.2.0",), ["1.3.0"]), (("1.3.0", "9.9.9"), ["1.2.0"]), (("9.9.9",), ["1.2.0", "1.3.0"])],
)
def test_clearing_forgets_what_is_named_and_no_more(node: Node, versions: tuple[str, ...], left: list[str]) -> None:
    """All, some or none; told in the history where there was something to forget."""
    assert node.manager().rollback(way="deadline")
    node.start()
    node.fail(make_release("1.3.0", 13))
    told = len(node.events())
    before = node.tree()
    forgotten = [failed.version for failed in node.manager().clear_failed(versions)]
    assert sorted(forgotten + left) == ["1.2.0", "1.3.0"]
    assert list(node.manager().look.failed()) == left
    assert [event["versions"] for event in node.events()[told:]] == ([forgotten] if forgotten else [])
    assert (node.tree() == before) == (not forgotten)
    assert node.floor() == 11
