"""What is read of a node in each state: said as it is, never written, by whoever may look at what they may look at."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bcd.core.build import Build
from bcd.core.status import Status, read_status, status_lines
from bcd.core.statusjson import status_json
from tests.core.node_root import NOW, Node, Process, make_release, quick_directory, quick_node

ONE = make_release("1.1.0", 11)
TWO = make_release("1.2.0", 12)
PINS = "3 release pins (threshold 2)"


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Never updated."""
    return quick_node(tmp_path, monkeypatch)


def updated(node: Node) -> None:
    """On 1.1.0."""
    node.update(ONE)


def swapped(node: Node) -> None:
    """1.2.0 is current and pending, and was not started yet."""
    node.update(ONE)
    node.swap(TWO, command_id="cmd-1")
    node.clock.passes(33.3)


def overdue(node: Node) -> None:
    """Nobody rolled back."""
    swapped(node)
    node.clock.passes(100)


def rolled_back(node: Node) -> None:
    """Before its deadline, and no start settled it yet."""
    swapped(node)
    assert node.manager("1.1.0").rollback(way="exec", said="no")


def lost(node: Node) -> None:
    """`current` is gone."""
    swapped(node)
    os.unlink(node.layout.current)


def dangling(node: Node) -> None:
    """`current` names something else, and nothing is pending."""
    updated(node)
    os.unlink(node.layout.current)
    os.symlink("bcd-c", node.layout.current)


def failed(node: Node) -> None:
    """1.2.0 failed and lies in the other slot."""
    node.update(ONE)
    node.fail(TWO)


def unrecorded(node: Node) -> None:
    """The slots' record and the floor's are gone."""
    updated(node)
    os.unlink(node.layout.slots_record)
    os.unlink(node.layout.update_record)


STATES: dict[str, tuple[Callable[[Node], object], list[str]]] = {
    "never started": (
        lambda _: None,
        [f"version 0.0.0, release floor 0, {PINS}", "slots: not in use yet (the first update adopts the entrypoint)"],
    ),
    "started": (
        Node.start,
        [f"version 0.0.0, release floor 0, {PINS}", "slots: not in use yet (the first update adopts the entrypoint)"],
    ),
    "updated": (
        updated,
        [f"version 1.1.0, release floor 11, {PINS}", "slots: current b (1.1.0), other a (1.0.0)"],
    ),
    "swapped": (
        swapped,
        [
            f"version 1.2.0, release floor 11, {PINS}",
            "slots: current a (1.2.0), other b (1.1.0)",
            "pending: 1.2.0 in slot a, 86 s left to be welcomed",
        ],
    ),
    "overdue": (
        overdue,
        [
            f"version 1.2.0, release floor 11, {PINS}",
            "slots: current a (1.2.0), other b (1.1.0)",
            "pending: 1.2.0 in slot a, overdue by 13 s, not yet rolled back",
        ],
    ),
    "rolled back": (
        rolled_back,
        [
            f"version 1.1.0, release floor 11, {PINS}",
            "slots: current b (1.1.0), other a (1.2.0)",
            "pending: 1.2.0 in slot a, but current is b: settled at the next start of bcd",
        ],
    ),
    "lost": (
        lost,
        [
            f"version 0.0.0, release floor 11, {PINS}",
            "slots: ROOT/lib/bcd/current is missing",
            "pending: 1.2.0 in slot a, but current is lost: settled at the next start of bcd",
        ],
    ),
    "elsewhere": (
        dangling,
        [f"version 0.0.0, release floor 11, {PINS}", "slots: ROOT/lib/bcd/current names no slot"],
    ),
    "failed": (
        failed,
        [
            f"version 1.1.0, release floor 11, {PINS}",
            "slots: current b (1.1.0), other a (1.2.0)",
            "failed: 1.2.0 (bcd 1.2.0 was not welcomed by a gateway before its deadline)",
        ],
    ),
    "unrecorded": (
        unrecorded,
        [f"version 0.0.0, release floor at least 0, {PINS}", "slots: current b (unknown), other a (unknown)"],
    ),
}


def said(node: Node) -> list[str]:
    """The lines, and that nothing was written to get them."""
    before = node.tree(history=True)
    status = node.status()
    lines = [line.replace(str(node.root), "ROOT") for line in status_lines(status)]
    document = status_json(status)
    assert json.loads(json.dumps(document)) == document
    assert node.tree(history=True) == before
    return lines


@pytest.mark.parametrize("name", STATES)
def test_a_state_is_said_as_it_is(fresh: Node, name: str) -> None:
    """One line each; looking changes nothing."""
    begin, lines = STATES[name]
    begin(fresh)
    assert said(fresh) == lines


def test_the_document_of_a_pending_update_is_whole(fresh: Node) -> None:
    """All of the record that others may want, with what is left by the clock that counts."""
    swapped(fresh)
    document = status_json(fresh.status())
    pending = fresh.json(fresh.layout.pending_record) or {}
    assert document["pending"] == {
        "version": "1.2.0",
        "sequence": 12,
        "slot": "a",
        "from_version": "1.1.0",
        "from_slot": "b",
        "swap_id": pending["swap_id"],
        "command_id": "cmd-1",
        "launched": False,
        "swapped_at": NOW,
        "deadline": NOW + 120,
        "seconds_left": 86.7,
        "refused": None,
    }
    assert document["links"] == {"current": "a", "previous": "b"}
    assert document["confirmed"] == {"version": "1.1.0", "sequence": 11, "at": NOW}
    assert (document["floor"], document["floor_known"]) == (11, True)
    assert (document["problems"], document["corrupt_aside"], document["failed"]) == ([], [], [])


def directory(path: Path) -> None:
    """A directory in a file's place."""
    path.mkdir()


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (Path.touch, "it is empty"),
    "NULs": (lambda path: path.write_bytes(bytes(64)), "it holds nothing but NUL bytes"),
    "half": (lambda path: path.write_bytes(b'{"format": 1,'), "it does not parse: "),
    "a directory": (directory, "it is no regular file"),
    "a FIFO": (os.mkfifo, "it is no regular file"),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("record", ["slots_record", "update_record", "pending_record"])
def test_a_broken_record_is_said_and_left_where_it_is(fresh: Node, record: str, kind: str) -> None:
    """Corrupt is not absent; what the others say is said, and a floor that is only a guess is at least that."""
    swapped(fresh)
    path = Path(getattr(fresh.layout, record))
    path.unlink()
    spoil, why = BROKEN[kind]
    spoil(path)
    lines = said(fresh)
    shown = str(path).replace(str(fresh.root), "ROOT")
    assert len([line for line in lines if line.startswith(f"corrupt: {shown} ({why}")]) == 1
    document = status_json(fresh.status())
    assert [(problem["path"], problem["state"]) for problem in document["problems"]] == [(str(path), "corrupt")]
    guess = record == "update_record"
    assert document["floor_known"] == (not guess)
    assert f"release floor {'at least 12' if guess else 11}, " in lines[0]
    assert any(line.startswith("pending: 1.2.0") for line in lines) == (record != "pending_record")
    assert lines[1].startswith("slots: current a")


def test_without_both_records_no_floor_is_claimed(fresh: Node) -> None:
    """`update.json` is absent and the slots can't say what they held: at least what is configured."""
    updated(fresh)
    os.unlink(fresh.layout.update_record)
    assert said(fresh)[0] == f"version 1.1.0, release floor 11, {PINS}"
    Path(fresh.layout.slots_record).write_bytes(b"")
    assert said(fresh)[0] == f"version 0.0.0, release floor at least 0, {PINS}"


def test_what_was_moved_aside_is_shown_until_somebody_takes_it_away(fresh: Node) -> None:
    """By its path, also after all is well again."""
    updated(fresh)
    Path(fresh.layout.pending_record).write_bytes(b"{asd")
    fresh.update(TWO)
    aside = f"{fresh.layout.pending_record}.corrupt-{NOW}"
    assert status_json(fresh.status())["corrupt_aside"] == [aside]
    os.unlink(aside)
    assert status_json(fresh.status())["corrupt_aside"] == []


# Not root (field reports 38, C13) ------------------------------------------------------------------------------------


@pytest.fixture
def open_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """Swapped, in directories that everybody may pass through."""
    with quick_directory(tmp_path) as made:
        for folder in (made, *([] if made != tmp_path else tmp_path.parents[:2])):
            os.chmod(folder, 0o755)
        node = quick_node(made / "node", monkeypatch)
        failed(node)
        node.swap(make_release("1.3.0", 13))
        yield node


def as_nobody(node: Node, look: Callable[[Status, list[str]], None]) -> None:
    """Read the status as a user without any right of its own, and let `look` assert."""

    def work() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        assert os.geteuid() == 65534
        status = node.status()
        look(status, [line.replace(str(node.root), "ROOT") for line in status_lines(status)])

    before = node.tree(history=True)
    assert Process(work).ended() == 0
    assert node.tree(history=True) == before


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to stop being it")


@as_root
def test_everybody_may_read_the_records_as_bcd_writes_them(open_node: Node) -> None:
    """0644 in 0755: the same lines as for root."""
    expected = said(open_node)

    def look(_: Status, lines: list[str]) -> None:
        assert lines == expected
        assert not any("unreadable" in line for line in lines)

    as_nobody(open_node, look)


@as_root
def test_unreadable_records_are_said_as_that_and_never_as_absent(open_node: Node) -> None:
    """0600 and root's: nothing pending, nothing failed, no floor is claimed; the links are read."""
    layout = open_node.layout
    records = (layout.slots_record, layout.update_record, layout.pending_record)
    for path in records:
        os.chmod(path, 0o600)

    def look(status: Status, lines: list[str]) -> None:
        assert lines == [
            f"version 0.0.0, release floor at least 0, {PINS}",
            "slots: current a (unknown), other b (unknown)",
            *(
                f"unreadable: {path.replace(str(open_node.root), 'ROOT')} (this user may not read it)"
                for path in records
            ),
        ]
        document = status_json(status)
        assert document["floor_known"] is False
        assert {problem["state"] for problem in document["problems"]} == {"unreadable"}

    as_nobody(open_node, look)


@as_root
@pytest.mark.parametrize("closed", ["slots_dir", "records_dir", "data_dir"])
def test_a_closed_directory_is_unreadable_and_not_empty(open_node: Node, closed: str) -> None:
    """What is in it is unknown; what is outside of it is said."""
    os.chmod(getattr(open_node.layout, closed), 0o700)

    def look(status: Status, lines: list[str]) -> None:
        states = (status.slots.state, status.update.state, status.pending.state)
        if closed == "slots_dir":
            assert states == ("unreadable", "good", "good")
            assert lines[1] == "slots: could not be read"
            assert status.floor_known
        else:
            assert states == ("good", "unreadable", "unreadable")
            assert lines[1] == "slots: current a (1.3.0), other b (1.1.0)"
            assert "release floor at least 13" in lines[0]
        assert all(line.startswith("unreadable: ROOT") for line in lines if "may not read" in line)
        assert any("may not read" in line for line in lines)

    as_nobody(open_node, look)


@as_root
def test_nobody_may_not_change_anything_by_acting(open_node: Node) -> None:
    """A manager without the right gets an error with a code for each operation, and no file is another."""
    before = open_node.tree(history=True)
    manager = open_node.manager()

    def work() -> int:
        os.setgid(65534)
        os.setuid(65534)
        from bcd.core.errors import HostError

        operations: list[Callable[[], object]] = [
            manager.settle,
            manager.confirm,
            manager.clear_failed,
            lambda: manager.rollback(way="deadline"),
            lambda: manager.note_gateway_refused("x"),
            lambda: manager.swap(ONE.section, server_time=None, command_id=None),
        ]
        for operation in operations:
            with pytest.raises(HostError) as caught:
                operation()
            assert caught.value.code == "io-error"
        return 0

    assert Process(work).ended() == 0
    assert open_node.tree(history=True) == before


@pytest.mark.parametrize(("looks", "floor"), [(10, "10"), (12, "at least 0")], ids=["the old binary", "the new one"])
def test_the_floor_does_not_seem_to_fall_while_a_first_release_waits(fresh: Node, looks: int, floor: str) -> None:
    """Nothing was ever confirmed here: only the binary from before the swap knows its sequence."""
    manager = fresh.manager(sequence=10)
    manager.settle()
    fresh.stage(TWO)
    assert manager.prepare(TWO.section, server_time=None) is not None
    manager.swap(TWO.section, server_time=None, command_id=None)
    assert read_status(fresh.config, Build("1.0.0", looks, 0, fakehw=False), fresh.clock).floor_words == floor


def test_the_binary_that_waits_knows_the_floor_of_the_slot_that_it_took_over_from(fresh: Node) -> None:
    fresh.update(ONE)
    fresh.swap(TWO)
    Path(fresh.layout.update_record).write_text('{"format": 1, "sequence": 0, "failed": []}')
    assert read_status(fresh.config, Build("1.2.0", 12, 0, fakehw=False), fresh.clock).floor_words == "11"
