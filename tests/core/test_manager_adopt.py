"""Adoption: what lies at the entrypoint, first and later, and what is never switched (field reports 19, 24)."""

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from bcd.core.errors import BcdError
from tests.core.node_root import Node, code_of, make_release, program, quick_node, version_of

ONE = make_release("1.1.0", 11)
TWO = make_release("1.2.0", 12)
THREE = make_release("1.3.0", 13)


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """1.0.0 as a plain file, never updated."""
    made = quick_node(tmp_path, monkeypatch)
    made.start()
    return made


@pytest.fixture
def node(fresh: Node) -> Node:
    """On 1.1.0 in slot b, 1.0.0 in slot a."""
    fresh.update(ONE)
    return fresh


def recorded(node: Node, slot: str) -> tuple[object, object]:
    """A slot's version and sequence; the record is of the file's very bytes."""
    record = (node.json(node.layout.slots_record) or {})[slot]
    assert isinstance(record, dict)
    data = node.slot(slot).read_bytes()
    assert (record["sha256"], record["size"]) == (sha256(data).hexdigest(), len(data))
    return record["version"], record["sequence"]


# What is adopted -----------------------------------------------------------------------------------------------------


def test_a_file_put_there_while_bcd_runs_is_what_is_gone_back_to(fresh: Node) -> None:
    """An install script put 1.0.5 there under a running 1.0.0: the slot says what the file is."""
    fresh.install("1.0.5")
    manager = fresh.manager("1.0.0")
    fresh.stage(ONE)
    pending = manager.swap(ONE.section, server_time=None, command_id=None)
    assert pending.from_version == "1.0.5"
    assert recorded(fresh, "a") == ("1.0.5", 0)
    assert manager.rollback(way="deadline")
    assert fresh.runs() == "1.0.5"


def test_a_file_that_does_not_say_what_it_is_is_taken_for_what_runs(fresh: Node) -> None:
    """Somebody's wrapper script, say."""
    Path(fresh.layout.entrypoint).write_bytes(b"#!/bin/sh\nexec /opt/bcd/bcd\n")
    fresh.stage(ONE)
    pending = fresh.manager("1.0.0").swap(ONE.section, server_time=None, command_id=None)
    assert pending.from_version == "1.0.0"
    assert recorded(fresh, "a") == ("1.0.0", 0)


def test_a_later_plain_file_goes_into_the_current_slot(node: Node) -> None:
    """`mv -f` of 1.5.0 over the link: what it put there is what runs, is recorded anew, and is gone back to."""
    node.install("1.5.0")
    assert node.start()[-1].pending is None
    pending = node.swap(TWO)
    assert (pending.from_version, pending.from_slot, pending.to_slot) == ("1.5.0", "b", "a")
    assert recorded(node, "b") == ("1.5.0", 0)
    assert recorded(node, "a") == ("1.2.0", 12)
    assert os.readlink(node.layout.entrypoint) == node.layout.current
    assert [event["version"] for event in node.events() if event["event"] == "adopted"] == ["1.0.0", "1.5.0"]
    node.clock.passes(121)
    assert node.start()[-1].failed is not None
    assert node.runs() == "1.5.0"
    assert node.floor() == 11


@pytest.mark.parametrize("current", ["absent", "dangling"])
def test_a_plain_file_mends_a_lost_current(node: Node, current: str) -> None:
    """Install bcd anew, as every hint says, and the next update puts all of it right."""
    if current == "absent":
        os.unlink(node.layout.current)
    else:
        node.slot("b").unlink()
    node.install("1.1.0")
    node.update(TWO)
    assert node.runs() == "1.2.0"
    slot = "a" if current == "absent" else "b"
    assert node.link("previous") == f"bcd-{slot}"
    assert version_of(str(node.slot(slot))) == "1.1.0"


def test_a_lost_record_of_what_runs_is_made_anew(node: Node) -> None:
    """From the file itself, with an unknown sequence; else no rollback could be checked."""
    os.unlink(node.layout.slots_record)
    pending = node.swap(TWO)
    assert pending.from_version == "1.1.0"
    assert recorded(node, "b") == ("1.1.0", 0)
    assert node.floor() == 11
    assert node.manager().rollback(way="deadline")
    assert node.runs() == "1.1.0"


def test_a_file_with_a_second_name_is_adopted(fresh: Node) -> None:
    """A package manager that keeps equal files once, or a backup: the second name keeps its bytes."""
    second = fresh.root / "bin" / "bcd.backup"
    second.hardlink_to(fresh.layout.entrypoint)
    fresh.update(ONE)
    assert fresh.runs() == "1.1.0"
    assert second.read_bytes() == program("1.0.0")


def test_the_entrypoints_directory_may_be_a_link(fresh: Node) -> None:
    """`/usr/sbin` on a merged system."""
    (fresh.root / "bin").rename(fresh.root / "really")
    (fresh.root / "bin").symlink_to("really")
    fresh.update(ONE)
    fresh.update(TWO)
    assert fresh.runs() == "1.2.0"
    assert os.readlink(fresh.root / "really" / "bcd") == fresh.layout.current


@pytest.mark.parametrize("link", ["relative", "absolute", "through a linked directory"])
def test_any_spelling_of_our_link_is_ours(node: Node, link: str) -> None:
    """It is used as it is: not adopted again, and not written anew."""
    os.unlink(node.layout.entrypoint)
    (node.root / "lib64").symlink_to("lib")
    target = {
        "relative": "../lib/bcd/current",
        "absolute": node.layout.current,
        "through a linked directory": str(node.root / "lib64" / "bcd" / "current"),
    }[link]
    os.symlink(target, node.layout.entrypoint)
    node.update(TWO)
    assert node.runs() == "1.2.0"
    assert os.readlink(node.layout.entrypoint) == target


# What is not ---------------------------------------------------------------------------------------------------------


def replace(path: Path, make: Callable[[Path], object]) -> None:
    """Something else in a file's place."""
    path.rename(path.with_name("away"))
    make(path)


def chain(path: Path) -> None:
    """A link to a link that ends at ours."""
    path.with_name("hop").symlink_to("../lib/bcd/current")
    path.symlink_to("hop")


def empty(path: Path) -> None:
    """An empty program."""
    path.touch()
    path.chmod(0o755)


UNSAFE: dict[str, Callable[[Path], object]] = {
    "a link to another program": lambda path: replace(path, lambda p: p.symlink_to("/bin/true")),
    "a link to a slot": lambda path: replace(path, lambda p: p.symlink_to("../lib/bcd/bcd-b")),
    "a link to another current": lambda path: replace(path, lambda p: p.symlink_to("../lib/current")),
    "a chain that ends at ours": lambda path: replace(path, chain),
    "a dangling link": lambda path: replace(path, lambda p: p.symlink_to("nowhere")),
    "a link to itself": lambda path: replace(path, lambda p: p.symlink_to(p.name)),
    "a directory": lambda path: replace(path, Path.mkdir),
    "a FIFO": lambda path: replace(path, os.mkfifo),
    "nothing": lambda path: replace(path, lambda _: None),
    "an empty file": lambda path: replace(path, empty),
    "not executable": lambda path: replace(path, lambda p: p.write_bytes(program("1.0.0"))),
}


def refuse(node: Node, expected: str) -> BcdError:
    """Prepare (where it is a refusal) and swap say so, and change nothing."""
    node.stage(TWO)
    before = node.tree()
    if expected.startswith("Refusal"):
        with pytest.raises(BcdError) as caught:
            node.manager("1.0.0").prepare(TWO.section, server_time=None)
        assert code_of(caught.value) == expected
    with pytest.raises(BcdError) as caught:
        node.manager("1.0.0").swap(TWO.section, server_time=None, command_id=None)
    assert code_of(caught.value) == expected
    assert node.tree() == before
    return caught.value


@pytest.mark.parametrize("adopted", [False, True], ids=["first", "later"])
@pytest.mark.parametrize("name", UNSAFE)
def test_an_entrypoint_that_is_not_ours_is_never_switched(fresh: Node, name: str, adopted: bool) -> None:
    """Refused with what it is and what mends it; the slots and whatever lies there stay."""
    if adopted:
        fresh.update(ONE)
    UNSAFE[name](Path(fresh.layout.entrypoint))
    error = refuse(fresh, "Refusal: unsafe-entrypoint")
    assert fresh.layout.entrypoint in error.message
    assert error.hint


@pytest.mark.skipif(os.geteuid() != 0, reason="only root adopts for others")
@pytest.mark.parametrize(("owner", "mode"), [(65534, 0o755), (0, 0o775), (0, 0o757), (0, 0o777)])
def test_root_adopts_only_what_is_roots_alone(fresh: Node, owner: int, mode: int) -> None:
    """Whoever may write the file would have root install and start it."""
    os.chown(fresh.layout.entrypoint, owner, -1)
    os.chmod(fresh.layout.entrypoint, mode)
    error = refuse(fresh, "Refusal: unsafe-entrypoint")
    assert "chown root:root" in error.hint
    os.chown(fresh.layout.entrypoint, 0, -1)
    os.chmod(fresh.layout.entrypoint, 0o755)
    fresh.update(TWO)
    assert fresh.runs() == "1.2.0"


CURRENT: dict[str, Callable[[Path], object]] = {
    "a link elsewhere": lambda path: path.symlink_to("bcd-c"),
    "an absolute link to a slot": lambda path: path.symlink_to(path.with_name("bcd-b")),
    "a plain file": lambda path: path.write_bytes(program("1.1.0")),
    "a directory": Path.mkdir,
}


@pytest.mark.parametrize("plain", [False, True], ids=["linked entrypoint", "plain entrypoint"])
@pytest.mark.parametrize("name", CURRENT)
def test_a_current_that_is_no_link_of_ours_is_never_guessed_at(node: Node, name: str, plain: bool) -> None:
    """Which slot would be overwritten? None is."""
    os.unlink(node.layout.current)
    CURRENT[name](Path(node.layout.current))
    if plain:
        node.install("1.0.0")
    error = refuse(node, "HostError: io-error" if plain else "Refusal: unsafe-entrypoint")
    assert node.layout.current in error.message
    assert error.hint


# The floor without its record (field report 24) -----------------------------------------------------------------------


def test_without_its_record_the_floor_is_what_the_slots_know(node: Node) -> None:
    """A node in use that lost `update.json` takes no older release, and writes the floor before the evidence goes."""
    node.update(TWO)
    node.update(THREE)
    os.unlink(node.layout.update_record)
    assert node.floor() == 13
    with pytest.raises(BcdError, match="floor of 13"):
        node.manager().prepare(make_release("1.2.9", 12).section, server_time=None)
    node.fail(make_release("1.4.0", 14))
    assert (node.json(node.layout.update_record) or {})["sequence"] == 13
    slots = node.json(node.layout.slots_record) or {}
    Path(node.layout.slots_record).write_text(json.dumps({**slots, "a": None, "b": None}))
    assert node.floor() == 13


def test_what_lies_in_a_slot_without_having_been_confirmed_is_evidence_all_the_same(node: Node) -> None:
    """Rather a release too few than one too many: signed it was."""
    node.fail(TWO)
    os.unlink(node.layout.update_record)
    assert node.floor() == 12


# Labels (field report 27) --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "logged"),
    [
        ('#!/bin/sh\necho "$@" >>TOOLS/said\n', ""),
        ('#!/bin/sh\necho "$@" >>TOOLS/said\nexit 3\n', "ended with 3"),
        ("#!TOOLS/nowhere\n", "did not run"),
        (None, ""),
    ],
    ids=["there", "fails", "broken", "none"],
)
def test_under_selinux_each_slot_gets_its_places_label(
    fresh: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tool: str | None, logged: str
) -> None:
    """The adopted slot's as well as the new one's: after a rollback it is started too. A tool that fails is logged."""
    tools = fresh.root / "tools"
    tools.mkdir()
    (tools / "said").touch()
    monkeypatch.setattr("bcd.core.stage._SELINUX", str(tools))
    monkeypatch.setenv("PATH", str(tools))
    if tool is not None:
        (tools / "restorecon").write_text(tool.replace("TOOLS", str(tools)))
        (tools / "restorecon").chmod(0o755)
    fresh.update(ONE)
    said = (tools / "said").read_text().splitlines()
    ran = tool is not None and "echo" in tool
    assert said == ([f"-- {fresh.slot('a')}", f"-- {fresh.slot('b')}"] if ran else [])
    assert ("restorecon" in caplog.text) == bool(logged)
    assert logged in caplog.text
    assert fresh.runs() == "1.1.0"
