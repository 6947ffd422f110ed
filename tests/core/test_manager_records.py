"""Broken records never stop a start, a swap or a rollback, are kept for people, and lower nothing (reports 01, 02, 24)."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bcd.core.errors import HostError, Refusal
from bcd.core.manager import Manager
from bcd.core.records import Json
from bcd.core.settle import Outcome
from tests.core.node_root import Node, Tree, make_release, quick_directory, quick_node

ONE = make_release("1.1.0", 11)
TWO = make_release("1.2.0", 12)
THREE = make_release("1.3.0", 13)


def directory(path: Path) -> None:
    """A directory of that name, with something in it."""
    path.mkdir()
    (path / "inside").write_bytes(b"kept")


BROKEN: dict[str, Callable[[Path], object]] = {
    "empty": Path.touch,
    "half": lambda path: path.write_bytes(b'{"format":1,"sequence":12,"confirmed":{"vers'),
    "NULs": lambda path: path.write_bytes(b"\0" * 512),
    "no JSON": lambda path: path.write_bytes(b"{asd"),
    "another type": lambda path: path.write_bytes(b"[1, 2]"),
    "without its fields": lambda path: path.write_bytes(b'{"format": 1, "a": {}, "state": "swapped"}'),
    "bytes of no text": lambda path: path.write_bytes(b'{"sequence": "\xff\xfe"}'),
    "a depth of 100,000": lambda path: path.write_bytes(b"[" * 100_000),
    "2 MB": lambda path: path.write_bytes(b" " * 2_000_000),
    "a directory": directory,
    "a FIFO": os.mkfifo,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to a good one": lambda path: path.symlink_to("good"),
}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """1.2.0 in slot a is launched and waits; 1.1.0 ran before from slot b; 0.9.0 failed; floor 11."""
    with quick_directory(tmp_path) as root:
        made = quick_node(root, monkeypatch)
        made.fail(make_release("0.9.0", 9))
        made.update(ONE)
        made.swap(TWO)
        made.start()
        yield made


def spoil(node: Node, record: str, kind: str) -> Tree:
    """Break a record; returns what lies there now, by its name."""
    path = Path(getattr(node.layout, record))
    path.rename(path.with_name("good"))
    BROKEN[kind](path)
    return moved(node, path.name)


def moved(node: Node, name: str) -> Tree:
    """What lies under a name, and below it, without that name."""
    tree = {os.path.relpath(path, os.path.dirname(path)): entry for path, entry in node.tree().items()}
    return {("." if found == name else found): entry for found, entry in tree.items() if found in (name, "inside")}


def kept_aside(node: Node, record: str, lay: Tree) -> None:
    """What lay there lies beside it now, under the time's name, untouched; and is shown."""
    path = f"{getattr(node.layout, record)}.corrupt-{int(node.clock.now)}"
    assert moved(node, os.path.basename(path)) == lay
    assert path in node.status().aside


@pytest.mark.parametrize("kind", BROKEN)
def test_a_start_over_a_broken_pending_record_runs_what_is_current(
    node: Node, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """Nothing is guessed: not confirmed, not gone back from, no floor changed; one warning; a later update works."""
    lay = spoil(node, "pending_record", kind)
    (settled,) = node.start()
    assert (settled.outcome, settled.pending) == (Outcome.SETTLED, None)
    kept_aside(node, "pending_record", lay)
    assert len([record for record in caplog.records if "upgrade.json is broken" in record.getMessage()]) == 1
    assert node.manager().confirm() is None
    assert node.manager().rollback(way="deadline") is False
    assert (node.runs(), node.floor()) == ("1.2.0", 11)
    node.clock.passes(1)
    node.update(THREE)
    assert (node.runs(), node.floor()) == ("1.3.0", 13)
    kept = [name for name in os.listdir(node.layout.records_dir) if ".corrupt-" in name]
    assert len(kept) == 1


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_slots_record_stops_neither_swap_nor_rollback(node: Node, kind: str) -> None:
    """It is made anew from links and hashes, and the floor stays (field report 02)."""
    assert node.manager().confirm() is not None
    lay = spoil(node, "slots_record", kind)
    pending = node.swap(THREE)
    kept_aside(node, "slots_record", lay)
    assert (pending.from_version, pending.from_slot) == ("1.2.0", "a")
    slots = node.json(node.layout.slots_record) or {}
    assert [(slots[slot]["version"], slots[slot]["sequence"]) for slot in "ab"] == [("1.2.0", 0), ("1.3.0", 13)]  # type: ignore[index]  # JSON
    node.clock.passes(1)
    spoil(node, "slots_record", kind)
    assert node.manager().rollback(way="deadline") is True
    assert node.start()[-1].outcome is Outcome.ROLLED_BACK
    assert (node.runs(), node.floor()) == ("1.2.0", 12)


OPERATIONS: dict[str, Callable[[Manager], object]] = {
    "settle": Manager.settle,
    "confirm": Manager.confirm,
    "clear": lambda manager: manager.clear_failed(),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("first", [*OPERATIONS, "prepare"])
def test_a_broken_floor_falls_back_to_the_slots_for_good(node: Node, kind: str, first: str) -> None:
    """Whoever meets it first writes what is known at once: the evidence in the slots goes with the next release."""
    if first == "prepare":
        assert node.manager().confirm() is not None
    lay = spoil(node, "update_record", kind)
    manager = node.manager()
    if first == "prepare":
        with pytest.raises(Refusal, match="below this node's floor of 12"):
            manager.prepare(make_release("1.0.9", 10).section, server_time=None)
    else:
        OPERATIONS[first](manager)
    kept_aside(node, "update_record", lay)
    record = node.json(node.layout.update_record) or {}
    assert (record["sequence"], record["failed"]) == (12, [])
    os.unlink(node.layout.slots_record)
    assert node.floor() == 12


@pytest.mark.parametrize("kind", BROKEN)
def test_a_release_without_its_floors_record_is_rolled_back_all_the_same(node: Node, kind: str) -> None:
    """And the failure is recorded in the new one."""
    spoil(node, "update_record", kind)
    node.clock.passes(121)
    assert [settled.outcome for settled in node.start()] == [Outcome.ROLL_BACK, Outcome.ROLLED_BACK]
    assert node.runs() == "1.1.0"
    assert list(node.manager().look.failed()) == ["1.2.0"]


def test_when_every_record_is_lost_the_configuration_and_the_build_are_left(node: Node) -> None:
    """The node runs what is current, and takes nothing below them."""
    for record in ("pending_record", "slots_record", "update_record"):
        spoil(node, record, "NULs")
    assert [settled.outcome for settled in node.start()] == [Outcome.SETTLED]
    assert node.runs() == "1.2.0"
    with pytest.raises(Refusal, match="floor of 12"):
        node.manager(sequence=12).prepare(make_release("1.0.9", 10).section, server_time=None)
    node.update(THREE)
    assert node.floor() == 13


def test_a_record_that_breaks_again_in_the_same_second_keeps_both(node: Node) -> None:
    """Nothing that is kept for people is written over."""
    for content in (b"one", b"two", b"three"):
        Path(node.layout.pending_record).write_bytes(content)
        node.start()
    beside = f"{node.layout.pending_record}.corrupt-{int(node.clock.now)}"
    assert [Path(beside + more).read_bytes() for more in ("", "-2", "-3")] == [b"one", b"two", b"three"]


@pytest.mark.parametrize("record", ["pending_record", "update_record"])
def test_a_broken_record_that_cannot_be_moved_is_an_error_and_stays(
    node: Node, monkeypatch: pytest.MonkeyPatch, record: str
) -> None:
    """A read-only disk: the node runs on, updates wait, and the next start finds the same."""
    path = Path(getattr(node.layout, record))
    path.write_bytes(b"{asd")
    before = node.tree(history=True)

    def refuse(*_: object) -> None:
        raise OSError(30, os.strerror(30))

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", refuse)
        with pytest.raises(HostError, match="could not move the broken") as caught:
            node.manager().settle()
        assert caught.value.code == "io-error"
    assert node.tree(history=True) == before
    node.start()
    assert not path.exists() or path.read_bytes() != b"{asd"


def test_a_floor_that_could_not_be_written_anew_is_not_forgotten(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moved aside it is; as long as nothing else is, the slots go on being asked."""
    spoil(node, "update_record", "empty")
    real = os.open

    def refuse(path: str, flags: int, *more: int, **named: int) -> int:
        if ".update.json." in str(path):
            raise OSError(28, os.strerror(28), path)
        return real(path, flags, *more, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        node.start()
    assert node.json(node.layout.update_record) is None
    assert node.floor() == 12
    assert node.manager().confirm() is not None
    assert (node.json(node.layout.update_record) or {})["sequence"] == 12


# Other versions of bcd -----------------------------------------------------------------------------------------------

LATER: Json = {"later": {"deep": [1, None, "é\ud800"]}, "format": 7}


def add_fields(path: str, *inside: str | int) -> None:
    """What a later bcd writes that this one does not know."""
    document = json.loads(Path(path).read_bytes())
    place = document
    for key in inside:
        place = place[key]
    place.update(LATER if not inside else {"later": LATER["later"]})
    Path(path).write_text(json.dumps(document))


def has_fields(path: str, *inside: str | int) -> bool:
    """Whether they are there still."""
    place = json.loads(Path(path).read_bytes())
    for key in inside:
        place = place[key]
    return bool(place["later"] == LATER["later"])


def test_what_a_later_bcd_wrote_is_kept_by_every_rewrite(node: Node) -> None:
    """In each record and each entry of one, through confirm, swap, refusal, rollback, settle and clear."""
    layout = node.layout
    add_fields(layout.update_record)
    add_fields(layout.update_record, "failed", 0)
    assert node.manager().confirm() is not None
    add_fields(layout.update_record, "confirmed")
    add_fields(layout.slots_record)
    add_fields(layout.slots_record, "a")
    node.swap(THREE)
    add_fields(layout.pending_record)
    node.start()
    assert has_fields(layout.pending_record)
    assert (node.json(layout.pending_record) or {})["launched"] is True
    node.manager().note_gateway_refused("busy")
    assert has_fields(layout.pending_record)
    assert node.manager().rollback(way="deadline")
    assert has_fields(layout.pending_record)
    node.start()
    assert node.manager().clear_failed(("1.3.0",)) != ()
    assert has_fields(layout.update_record)
    assert has_fields(layout.update_record, "confirmed")
    assert has_fields(layout.update_record, "failed", 0)
    assert has_fields(layout.slots_record)
    assert has_fields(layout.slots_record, "a")
    assert (node.json(layout.update_record) or {})["sequence"] == 12


@pytest.mark.parametrize(
    "fields", [{"state": "armed"}, {"to_slot": "c"}, {"from_slot": "a"}, {"launched": "no"}, {"deadline": -1}]
)
def test_a_pending_record_that_means_something_else_is_not_acted_on(node: Node, fields: Json) -> None:
    """`current` decides what runs; older code does not settle what it does not understand (field report 12)."""
    document = node.json(node.layout.pending_record) or {}
    Path(node.layout.pending_record).write_text(json.dumps({**document, **fields, "format": 2}))
    node.clock.passes(1_000)
    assert [settled.outcome for settled in node.start()] == [Outcome.SETTLED]
    assert node.runs() == "1.2.0"
    assert len(node.status().aside) == 1


@pytest.mark.parametrize("fields", [{"format": 2}, {"format": "two"}, {"steps": ["a"]}])
def test_a_later_record_is_read_for_what_is_known(node: Node, fields: Json) -> None:
    """Rolled back to an older bcd, which settles the newer one's swap."""
    document = node.json(node.layout.pending_record) or {}
    Path(node.layout.pending_record).write_text(json.dumps({**document, **fields}))
    node.clock.passes(1_000)
    assert [settled.outcome for settled in node.start()] == [Outcome.ROLL_BACK, Outcome.ROLLED_BACK]
    assert node.runs() == "1.1.0"
