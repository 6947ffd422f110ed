"""What lies where the service starts bcd, and whether it may be switched (field report 19)."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.core.entrypoint import EntrypointKind, inspect_entrypoint
from bcd.core.errors import Refusal
from bcd.core.layout import Layout
from tests.core.disk import unchanged

PROGRAM = b"#!/bin/sh\necho bcd\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with slots and no entrypoint yet."""
    slots = tmp_path / "lib" / "bcd"
    slots.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    for slot in "ab":
        (slots / f"bcd-{slot}").write_bytes(PROGRAM)
        (slots / f"bcd-{slot}").chmod(0o755)
    (slots / "current").symlink_to("bcd-a")
    return tmp_path


def layout_in(root: Path, *, entrypoint: str = "bin/bcd", slots: str = "lib/bcd") -> Layout:
    """Its paths."""
    return Layout(str(root / slots), str(root / entrypoint), str(root / "data" / "update"), str(root / "data"))


def kind(root: Path, *, as_root: bool = False) -> EntrypointKind:
    """What the entrypoint is; looking changes nothing."""
    with unchanged(root):
        return inspect_entrypoint(layout_in(root), as_root=as_root)


def refusal(root: Path, words: str, *, as_root: bool = False) -> Refusal:
    """It may not be switched, and is named with what to do."""
    with unchanged(root), pytest.raises(Refusal, match=words) as caught:
        inspect_entrypoint(layout_in(root), as_root=as_root)
    assert caught.value.code == "unsafe-entrypoint"
    assert str(root / "bin" / "bcd") in caught.value.message
    assert caught.value.hint
    return caught.value


def install(root: Path, mode: int = 0o755, data: bytes = PROGRAM) -> Path:
    """What an install script leaves."""
    path = root / "bin" / "bcd"
    path.write_bytes(data)
    path.chmod(mode)
    return path


# a: a plain file ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o555, 0o775, 0o777, 0o111])
def test_a_plain_program_is_adopted(root: Path, mode: int) -> None:
    """Whatever its mode, where nobody acts as root."""
    install(root, mode)
    assert kind(root) is EntrypointKind.ADOPTABLE


def test_a_plain_program_is_adopted_before_there_are_slots(tmp_path: Path) -> None:
    """The first update."""
    (tmp_path / "bin").mkdir()
    install(tmp_path)
    assert kind(tmp_path) is EntrypointKind.ADOPTABLE


@pytest.mark.parametrize(("mode", "data"), [(0o644, PROGRAM), (0o000, PROGRAM), (0o755, b"")])
def test_a_file_that_is_no_program_is_refused(root: Path, mode: int, data: bytes) -> None:
    """A torn copy in the entrypoint's place must not become the slot to roll back to."""
    install(root, mode, data)
    refusal(root, "no program")


def owned(patch: pytest.MonkeyPatch, path: Path, uid: int) -> None:
    """Let a file be somebody's, whoever runs the tests."""
    real = os.lstat

    def lstat(asked: str) -> os.stat_result:
        found = real(asked)
        if asked != str(path):
            return found
        return os.stat_result((*found[:4], uid, *found[5:]))

    patch.setattr(os, "lstat", lstat)


@pytest.mark.parametrize(
    ("uid", "mode", "adopted"),
    [
        (0, 0o755, True),
        (0, 0o555, True),
        (0, 0o711, True),
        (0, 0o4755, True),
        (0, 0o775, False),
        (0, 0o757, False),
        (0, 0o777, False),
        (0, 0o722, False),
        (1000, 0o755, False),
        (1000, 0o777, False),
        (65534, 0o700, False),
    ],
)
def test_root_adopts_only_what_is_roots_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch, uid: int, mode: int, adopted: bool
) -> None:
    """The attack: whoever may write the file would have root install and start it."""
    path = install(root, mode)
    owned(monkeypatch, path, uid)
    if adopted:
        assert inspect_entrypoint(layout_in(root), as_root=True) is EntrypointKind.ADOPTABLE
        return
    with pytest.raises(Refusal, match=f"not root's alone .uid {uid}, mode {mode:04o}") as caught:
        inspect_entrypoint(layout_in(root), as_root=True)
    assert caught.value.code == "unsafe-entrypoint"
    assert caught.value.hint == f"chown root:root {path} && chmod 0755 {path}"


# b: our link ----------------------------------------------------------------------------------------------------------


def link(root: Path, target: str | Path) -> None:
    """Make the entrypoint a link."""
    (root / "bin" / "bcd").symlink_to(target)


@pytest.mark.parametrize("slot", ["a", "b"])
@pytest.mark.parametrize("as_root", [False, True])
def test_our_link_is_switched_already(root: Path, slot: str, as_root: bool) -> None:
    """Whichever slot is current; a link has no owner's bits to judge."""
    (root / "lib" / "bcd" / "current").unlink()
    (root / "lib" / "bcd" / "current").symlink_to(f"bcd-{slot}")
    link(root, root / "lib" / "bcd" / "current")
    assert kind(root, as_root=as_root) is EntrypointKind.LINKED


def test_a_relative_link_to_ours_is_ours(root: Path) -> None:
    """An image builder makes such ones."""
    link(root, "../lib/bcd/current")
    assert kind(root) is EntrypointKind.LINKED


@pytest.mark.parametrize("target", ["../lib/./bcd//current", "../bin/../lib/bcd/current"])
def test_our_link_in_another_spelling_is_ours(root: Path, target: str) -> None:
    """It leads to the same name in the same directory."""
    link(root, target)
    assert kind(root) is EntrypointKind.LINKED


def test_our_link_through_a_directory_of_another_name_is_ours(root: Path) -> None:
    """/usr/local may be a link itself, on either side."""
    (root / "alias").symlink_to("lib")
    link(root, root / "alias" / "bcd" / "current")
    assert kind(root) is EntrypointKind.LINKED
    layout = layout_in(root, slots="alias/bcd")
    assert inspect_entrypoint(layout, as_root=False) is EntrypointKind.LINKED


@pytest.mark.parametrize("plain", [False, True])
def test_an_entrypoint_in_a_linked_directory_is_what_it_is(root: Path, plain: bool) -> None:
    """/bin is a link to /usr/bin on many systems; only the last name is judged."""
    (root / "usr").symlink_to(".")
    if plain:
        install(root)
    else:
        link(root, "../lib/bcd/current")
    layout = layout_in(root, entrypoint="usr/bin/bcd")
    expected = EntrypointKind.ADOPTABLE if plain else EntrypointKind.LINKED
    assert inspect_entrypoint(layout, as_root=False) is expected


@pytest.mark.parametrize(
    "spoil",
    [
        lambda current: None,
        lambda current: current.symlink_to("bcd-c"),
        lambda current: current.symlink_to("../bcd/bcd-a"),
        lambda current: current.symlink_to(current.parent / "bcd-a"),
        lambda current: current.symlink_to("current"),
        lambda current: current.write_bytes(PROGRAM),
        lambda current: current.mkdir(),
    ],
    ids=["missing", "no slot", "another spelling", "absolute", "itself", "file", "directory"],
)
def test_our_link_to_a_current_that_leads_to_no_slot_is_refused(root: Path, spoil: Callable[[Path], object]) -> None:
    """There is nothing here that a swap could go back to."""
    current = root / "lib" / "bcd" / "current"
    current.unlink()
    spoil(current)
    link(root, current)
    refusal(root, "leads to no slot's file")


def test_our_link_to_a_slot_whose_file_is_gone_is_refused(root: Path) -> None:
    """`current` is right and dangles (field report 04)."""
    (root / "lib" / "bcd" / "bcd-a").unlink()
    link(root, root / "lib" / "bcd" / "current")
    refusal(root, "leads to no slot's file")


# c, d, e, f: anything else --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    ["/bin/sh", "../lib/bcd/bcd-a", "../lib/bcd/previous", "../lib/bcd", "../lib/bcd/current/", "../lib/bcd/current/.", "../lib/current",
     "current", "bcd", "\x1b]0;x\x07"],
)  # fmt: skip
def test_a_link_to_somewhere_else_is_refused(root: Path, target: str) -> None:
    """Somebody put it there on purpose; the hint has the command, and the setting, for either intention."""
    (root / "lib" / "bcd" / "previous").symlink_to("bcd-b")
    link(root, target)
    error = refusal(root, "is a link to")
    assert f"ln -sfn {root}/lib/bcd/current {root}/bin/bcd" in error.hint
    assert "[update] entrypoint" in error.hint


def test_a_link_to_a_slot_itself_is_refused(root: Path) -> None:
    """It runs the right program today, and would go on doing so after a swap."""
    link(root, root / "lib" / "bcd" / "bcd-a")
    refusal(root, "is a link to")


def test_a_chain_that_ends_at_ours_is_refused(root: Path) -> None:
    """Each hop of it can be moved by whoever owns it; also where a hop has our name."""
    (root / "opt").mkdir()
    (root / "opt" / "current").symlink_to(root / "lib" / "bcd" / "current")
    link(root, root / "opt" / "current")
    assert os.path.realpath(root / "bin" / "bcd") == str(root / "lib" / "bcd" / "bcd-a")
    refusal(root, "is a link to")


def test_a_link_to_the_current_of_other_slots_is_refused(root: Path) -> None:
    """Another node's, or those of an earlier configuration."""
    other = root / "other"
    other.mkdir()
    (other / "bcd-a").write_bytes(PROGRAM)
    (other / "current").symlink_to("bcd-a")
    link(root, other / "current")
    refusal(root, "is a link to")


@pytest.mark.parametrize("target", ["nowhere", "/nowhere/current", "bcd"])
def test_a_dangling_link_is_refused(root: Path, target: str) -> None:
    """Also one that leads to itself."""
    link(root, target)
    refusal(root, "is a link to")


def make_socket(path: Path) -> None:
    """Leave a socket behind."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


@pytest.mark.parametrize("plant", [Path.mkdir, os.mkfifo, make_socket], ids=["directory", "fifo", "socket"])
def test_what_is_neither_file_nor_link_is_refused(root: Path, plant: Callable[[Path], None]) -> None:
    """And never opened."""
    plant(root / "bin" / "bcd")
    refusal(root, "neither a file nor a link")


@pytest.mark.parametrize(
    "spoil", [lambda bin_: None, lambda bin_: bin_.rmdir(), lambda bin_: (bin_.rmdir(), bin_.touch())]
)
def test_a_missing_entrypoint_is_refused(root: Path, spoil: Callable[[Path], object]) -> None:
    """It, its directory, or what should be its directory."""
    spoil(root / "bin")
    assert "install bcd there" in refusal(root, "can't be looked at").hint
