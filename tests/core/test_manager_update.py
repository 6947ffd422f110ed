"""A good update, from a plain file at the entrypoint to the second release, with every record on the way."""

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from bcd.core.adopt import ask_version
from bcd.core.answers import Fetch, Prepared
from bcd.core.settle import Outcome
from tests.core.node_root import NOW, URL, Node, make_release, program, quick_node

ONE = make_release("1.1.0", 11)
TWO = make_release("1.2.0", 12)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Settled once, as every start does."""
    made = quick_node(tmp_path, monkeypatch)
    made.start()
    return made


def slot_record(version: str, sequence: int, at: int) -> dict[str, object]:
    """What `slots.json` says of a slot; an adopted file came with no manifest, and so with no expiry."""
    data = program(version)
    expiry = {"expires_at": NOW + 365 * 86_400} if sequence else {}
    return {
        **expiry,
        "version": version,
        "sequence": sequence,
        "sha256": sha256(data).hexdigest(),
        "size": len(data),
        "written_at": at,
    }


def test_a_first_start_leaves_only_the_lock(tmp_path: Path) -> None:
    """Nothing is pending; a node that never updated has no records to lose."""
    node = Node(tmp_path)
    before = node.tree()
    (settled,) = node.start()
    assert settled.outcome is Outcome.SETTLED
    assert (settled.pending, settled.failed, settled.stayed) == (None, None, None)
    assert node.tree().keys() - before.keys() == {"data/update", "data/update/update.lock"}


def test_what_is_prepared_is_what_the_manifest_says(node: Node) -> None:
    """The node is told what to download; only the history knows that it was asked, once."""
    before = node.tree()
    manager = node.manager()
    expected = Prepared(
        version="1.1.0",
        fetch=Fetch(
            version="1.1.0",
            sequence=11,
            url=URL,
            sha256=sha256(program("1.1.0")).hexdigest(),
            size=len(program("1.1.0")),
        ),
    )
    assert [manager.prepare(ONE.section, server_time=None) for _ in range(3)] == [expected] * 3
    assert node.tree() == before
    assert node.events() == [{"at": NOW, "event": "prepared", "version": "1.1.0"}]


def test_the_running_version_plans_nothing(node: Node) -> None:
    """Whatever else the section says: it is what runs."""
    before = node.tree(history=True)
    assert node.manager().prepare(make_release("1.0.0", 1).section, server_time=None) is None
    assert node.manager().prepare({"version": "1.0.0"}, server_time=None) is None
    assert node.tree(history=True) == before


def test_the_first_swap_adopts_and_switches(node: Node) -> None:
    """Slot a is what ran, slot b what shall run; every record says so, and the entrypoint is ours."""
    pending = node.swap(ONE, command_id="cmd-7")
    assert node.runs() == "1.1.0"
    assert node.link("current") == "bcd-b"
    assert node.link("previous") == "bcd-a"
    assert os.readlink(node.layout.entrypoint) == node.layout.current
    assert node.slot("a").read_bytes() == program("1.0.0")
    assert node.slot("b").read_bytes() == program("1.1.0")
    assert node.json(node.layout.slots_record) == {
        "format": 1,
        "a": slot_record("1.0.0", 0, NOW),
        "b": slot_record("1.1.0", 11, NOW),
    }
    assert node.json(node.layout.update_record) == {"format": 1, "sequence": 0, "confirmed": None, "failed": []}
    assert len(pending.swap_id) == 32
    assert node.json(node.layout.pending_record) == {
        "format": 1,
        "state": "swapped",
        "swap_id": pending.swap_id,
        "from_version": "1.0.0",
        "to_version": "1.1.0",
        "from_slot": "a",
        "to_slot": "b",
        "sequence": 11,
        "command_id": "cmd-7",
        "launched": False,
        "swapped_at": NOW,
        "deadline": NOW + 120,
        "boot_id": "boot-1",
        "swapped_boottime": 5_000.0,
        "refused": None,
        "way": None,
        "said": None,
    }


def test_the_new_binary_is_launched_on_disk_before_it_does_anything(node: Node) -> None:
    """Its first settle writes that it ran, once; a second start finds that."""
    node.swap(ONE)
    node.clock.passes(20)
    (settled,) = node.start()
    assert settled.outcome is Outcome.PENDING
    assert settled.pending is not None
    assert settled.pending.launched
    left = node.manager().look.time_left()
    assert left is not None
    assert left.seconds == 100
    assert (node.json(node.layout.pending_record) or {})["launched"] is True
    before = node.tree(history=True)
    (again,) = node.start()
    assert again.pending == settled.pending
    assert node.tree(history=True) == before


def test_a_welcome_raises_the_floor_and_ends_the_swap(node: Node) -> None:
    """`confirmed` carries the swap; nothing is pending after it, and nothing more to confirm."""
    pending = node.swap(ONE, command_id="cmd-7")
    node.start()
    node.clock.passes(20)
    confirmed = node.manager().confirm()
    assert confirmed is not None
    assert (confirmed.swap_id, confirmed.command_id) == (pending.swap_id, "cmd-7")
    assert node.json(node.layout.update_record) == {
        "format": 1,
        "sequence": 11,
        "confirmed": {"version": "1.1.0", "sequence": 11, "at": NOW + 20, "swap_id": pending.swap_id},
        "failed": [],
    }
    assert node.json(node.layout.pending_record) is None
    assert node.manager().look.time_left() is None
    assert node.floor() == 11
    before = node.tree(history=True)
    assert node.manager().confirm() is None
    assert [settled.outcome for settled in node.start()] == [Outcome.SETTLED]
    assert node.tree(history=True) == before


def test_the_second_update_goes_to_the_other_slot(node: Node) -> None:
    """What ran before the first one makes room; what runs now stays as it is."""
    node.update(ONE)
    kept = node.slot("b").stat()
    node.clock.passes(1_000)
    node.update(TWO)
    assert node.runs() == "1.2.0"
    assert (node.link("current"), node.link("previous")) == ("bcd-a", "bcd-b")
    assert node.slot("b").stat().st_ino == kept.st_ino
    assert node.slot("b").stat().st_mtime_ns == kept.st_mtime_ns
    assert node.json(node.layout.slots_record) == {
        "format": 1,
        "a": slot_record("1.2.0", 12, NOW + 1_000),
        "b": slot_record("1.1.0", 11, NOW),
    }
    assert node.floor() == 12


def test_the_history_tells_an_update_in_order(node: Node) -> None:
    """Adoption once; then each update's steps."""
    node.update(ONE)
    node.update(TWO)
    told = [(event["event"], event["version"]) for event in node.events()]
    assert told == [
        ("prepared", "1.1.0"),
        ("adopted", "1.0.0"),
        ("downloaded", "1.1.0"),
        ("swapped", "1.1.0"),
        ("confirmed", "1.1.0"),
        ("prepared", "1.2.0"),
        ("downloaded", "1.2.0"),
        ("swapped", "1.2.0"),
        ("confirmed", "1.2.0"),
    ]


# Reuse ---------------------------------------------------------------------------------------------------------------


def back_on_one(node: Node) -> None:
    """1.2.0 failed and was cleared: it still lies in the other slot."""
    node.update(ONE)
    node.fail(TWO)
    node.manager().clear_failed()


def test_what_the_other_slot_holds_needs_neither_manifest_nor_download(node: Node) -> None:
    """The same bytes again: switched to as they lie there."""
    back_on_one(node)
    section = {**TWO.section, "signature": "none"}
    manager = node.manager()
    assert manager.prepare(section, server_time=None) == Prepared(version="1.2.0", fetch=None)
    kept = node.slot("a").stat()
    manager.swap(section, server_time=None, command_id=None)
    assert node.runs() == "1.2.0"
    assert (node.slot("a").stat().st_ino, node.slot("a").stat().st_mtime_ns) == (kept.st_ino, kept.st_mtime_ns)
    node.start()
    assert node.manager().confirm() is not None
    assert node.floor() == 12


@pytest.mark.parametrize("spoil", ["bytes", "record", "digest", "sequence", "floor", "gone", "mode", "link"])
def test_anything_else_in_the_other_slot_is_fetched_again(node: Node, spoil: str) -> None:
    """One byte, one field, or one bit of its mode off, and it is not reused."""
    back_on_one(node)
    section = dict(TWO.section)
    slots = node.json(node.layout.slots_record)
    assert slots is not None
    record = slots["a"]
    assert isinstance(record, dict)
    match spoil:
        case "bytes":
            node.slot("a").write_bytes(program("1.2.0")[:-1] + b" ")
        case "record":
            slots["a"] = None
        case "digest":
            section["sha256"] = "0" * 64
        case "sequence":
            record["sequence"] = 0
        case "floor":
            record["sequence"] = 10
        case "gone":
            node.slot("a").unlink()
        case "mode":
            node.slot("a").chmod(0o644)
        case "link":
            node.slot("a").rename(node.slot("a").with_name("elsewhere"))
            node.slot("a").symlink_to("elsewhere")
    Path(node.layout.slots_record).write_text(json.dumps(slots))
    if spoil == "digest":
        with pytest.raises(Exception, match="sha256"):
            node.manager().prepare(section, server_time=None)
        return
    prepared = node.manager().prepare(section, server_time=None)
    assert prepared is not None
    assert prepared.fetch is not None
    node.update(TWO)
    assert node.runs() == "1.2.0"
    assert stat.S_IMODE(node.slot("a").lstat().st_mode) == 0o755


# Modes (field report 26) ---------------------------------------------------------------------------------------------


@pytest.fixture(params=[0o077, 0o027, 0o000], ids=["077", "027", "000"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    """A service's umask."""
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.parametrize("helper", [False, True], ids=["alone", "helper"])
def test_modes_do_not_depend_on_the_umask(tmp_path: Path, umask: None, helper: bool) -> None:
    """Directories and programs 0755, records 0644, from adoption to the second update and a failure."""
    node = Node(tmp_path, helper=helper)
    node.update(ONE)
    node.fail(TWO)
    node.swap(make_release("1.3.0", 13))
    modes = {
        name: entry.mode
        for name, entry in node.tree(history=True).items()
        if name.startswith(("lib", "data/update")) and entry.kind != "link" and not name.endswith("update.lock")
    }
    records = "lib/bcd" if helper else "data/update"
    assert modes == {
        "lib": 0o755,
        "lib/bcd": 0o755,
        records: 0o755,
        "lib/bcd/bcd-a": 0o755,
        "lib/bcd/bcd-b": 0o755,
        "lib/bcd/slots.json": 0o644,
        f"{records}/update.json": 0o644,
        f"{records}/upgrade.json": 0o644,
        f"{records}/history.jsonl": 0o644,
    }


def test_what_was_adopted_and_what_was_swapped_in_really_run(node: Node) -> None:
    """The entrypoint is started as a service would, and asked as adoption asks."""
    assert ask_version(node.layout.entrypoint) == "1.0.0"
    node.swap(ONE)
    assert ask_version(node.layout.entrypoint) == "1.1.0"
    ran = subprocess.run([str(node.slot("a")), "version", "--json"], capture_output=True, check=True)
    assert json.loads(ran.stdout) == {"version": "1.0.0"}
