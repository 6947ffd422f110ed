"""Confirm: only what is current and pending, only what could be written, and the floor never falls."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.core.errors import HostError
from bcd.core.manager import Manager
from bcd.core.settle import Outcome
from tests.core.node_root import Node, Process, make_release, quick_node

ONE = make_release("1.1.0", 11)
TWO = make_release("1.2.0", 12)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """On 1.1.0, floor 11; 1.2.0 is launched and waits for its welcome."""
    made = quick_node(tmp_path, monkeypatch)
    made.update(ONE)
    made.swap(TWO)
    made.start()
    return made


@pytest.mark.parametrize("name", ["never swapped", "confirmed", "rolled back", "settled"])
def test_without_a_swap_to_confirm_a_welcome_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A gateway welcomes every start, not only an update's first."""
    node = quick_node(tmp_path, monkeypatch)
    node.start()
    if name != "never swapped":
        node.swap(ONE)
        node.start()
    if name == "confirmed":
        assert node.manager().confirm() is not None
    if name in ("rolled back", "settled"):
        assert node.manager().rollback(way="deadline")
    if name == "settled":
        node.start()
    before = node.tree(history=True)
    floor = node.floor()
    # Also to the new process that was rolled back under its feet.
    for manager in (node.manager(), node.manager("1.1.0")):
        assert manager.confirm() is None
    assert node.tree(history=True) == before
    assert node.floor() == floor == (11 if name == "confirmed" else 0)


@pytest.mark.parametrize("current", ["missing", "elsewhere"])
def test_what_is_not_current_is_not_confirmed(node: Node, current: str) -> None:
    """Wherever the link was lost to."""
    os.unlink(node.layout.current)
    if current == "elsewhere":
        os.symlink("/bin/true", node.layout.current)
    before = node.tree(history=True)
    assert node.manager("1.2.0").confirm() is None
    assert node.tree(history=True) == before


def test_the_process_that_swapped_does_not_confirm_by_its_own_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the swap there is nothing to confirm; after it the old process has closed everything."""
    node = quick_node(tmp_path, monkeypatch)
    node.update(ONE)
    old = node.manager()
    assert old.confirm() is None
    node.swap(TWO)
    assert (node.json(node.layout.update_record) or {})["sequence"] == 11


def test_the_floor_never_falls(node: Node) -> None:
    """Not by a release whose sequence is below what the record says meanwhile."""
    record = node.json(node.layout.update_record) or {}
    Path(node.layout.update_record).write_text(json.dumps({**record, "sequence": 40}))
    assert node.manager().confirm() is not None
    after = node.json(node.layout.update_record) or {}
    assert after["sequence"] == node.floor() == 40
    assert isinstance(after["confirmed"], dict)
    assert after["confirmed"]["sequence"] == 12


def read_only(name: str, wanted: Callable[[str], bool]) -> Callable[[pytest.MonkeyPatch], None]:
    """A call that fails for the paths that are meant."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        real = getattr(os, name)

        def call(path: str, *more: object) -> object:
            if wanted(str(more[0]) if name == "rename" else str(path)):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
            return real(path, *more)

        monkeypatch.setattr(os, name, call)

    return patch


REFUSED = {
    "no temporary file": read_only("open", lambda path: ".update.json." in path),
    "no rename": read_only("rename", lambda path: path.endswith("/update.json")),
    "no removal": read_only("unlink", lambda path: path.endswith("/upgrade.json")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_not_confirmed_and_is_tried_again(
    node: Node, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The pending record stays, each time; on a disk that is well again the same manager confirms."""
    manager = node.manager()
    pending = node.json(node.layout.pending_record)
    with monkeypatch.context() as patched:
        REFUSED[name](patched)
        for _ in range(3):
            with pytest.raises(HostError, match="could not confirm the update") as caught:
                manager.confirm()
            assert caught.value.code == "io-error"
            assert "read-write" in caught.value.hint
            assert node.json(node.layout.pending_record) == pending
            assert (node.floor() == 12) == (name == "no removal")
    confirmed = manager.confirm()
    assert confirmed is not None
    assert confirmed.to_version == "1.2.0"
    assert node.json(node.layout.pending_record) is None
    assert node.floor() == 12
    assert [event["event"] for event in node.events()].count("confirmed") == 2


def test_an_unconfirmed_update_on_a_full_disk_is_still_rolled_back(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not confirmed by its deadline was not; the disk is well by then."""
    with monkeypatch.context() as patched:
        REFUSED["no rename"](patched)
        with pytest.raises(HostError):
            node.manager().confirm()
    node.clock.passes(120)
    assert [settled.outcome for settled in node.start()] == [Outcome.ROLL_BACK, Outcome.ROLLED_BACK]
    assert (node.runs(), node.floor()) == ("1.1.0", 11)


def test_a_welcome_on_disk_outlasts_the_deadline(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the pending record could not be removed: nothing to go back from, for the timer as for a start."""
    manager = node.manager()
    with monkeypatch.context() as patched:
        REFUSED["no removal"](patched)
        with pytest.raises(HostError):
            manager.confirm()
    node.clock.passes(500)
    before = node.tree(history=True)
    assert manager.rollback(way="deadline") is False
    assert node.tree(history=True) == before
    assert node.start()[-1].outcome is Outcome.FINISH_CONFIRM
    assert (node.runs(), node.floor()) == ("1.2.0", 12)
    node.start()
    last = [event for event in node.events() if event.get("version") == "1.2.0" and event["event"] == "confirmed"]
    assert [event["sequence"] for event in last] == [12]  # the history has it, and once


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a user to whom the records are not")
def test_a_user_to_whom_the_records_are_not_confirms_nothing(node: Node) -> None:
    """Real permissions: an error with a code, and not a word on disk."""
    before = node.tree(history=True)
    manager = node.manager()

    def work() -> int:
        os.setegid(65534)
        os.seteuid(65534)
        with pytest.raises(HostError) as caught:
            Manager.confirm(manager)
        return 10 if caught.value.code == "io-error" else 1

    assert Process(work).ended() == 10
    assert node.tree(history=True) == before
    assert manager.confirm() is not None


# What the gateway said -----------------------------------------------------------------------------------------------


def test_what_a_gateway_said_is_kept_for_the_reason_and_written_once(node: Node) -> None:
    """The last word counts; the same word again writes nothing."""
    manager = node.manager()
    for said in ("busy", "unknown node", "unknown node"):
        manager.note_gateway_refused(said)
    assert (node.json(node.layout.pending_record) or {})["refused"] == "unknown node"
    kept = os.stat(node.layout.pending_record).st_ino
    manager.note_gateway_refused("unknown node")
    assert os.stat(node.layout.pending_record).st_ino == kept
    assert manager.confirm() is not None
    before = node.tree(history=True)
    manager.note_gateway_refused("too late")
    assert node.tree(history=True) == before


def test_a_gateways_word_is_shown_clean_and_kept_as_it_was(node: Node) -> None:
    """An escape sequence in it reaches the record as JSON and people as text (field report C06)."""
    said = "no\x1b]52;c;aGk=\x07 \u202e[/red]"
    node.manager().note_gateway_refused(said)
    assert (node.json(node.layout.pending_record) or {})["refused"] == said
    node.clock.passes(121)
    failed = node.start()[-1].failed
    assert failed is not None
    assert failed.reason.isprintable()
    assert "\\x1b]52;c;aGk=\\x07" in failed.reason
    assert b"\x1b" not in Path(node.layout.update_record).read_bytes()
