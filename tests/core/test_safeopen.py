"""Opening what somebody else may have put there, and removing it: never through a link, never waiting (field report 36)."""

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.core.errors import HostError
from bcd.core.safeopen import open_plain_beneath, remove_leftover
from tests.core.disk import open_files, unchanged

NAME = "bcd-1.4.1"


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A data directory with a good file in staging, and a secret outside."""
    made = tmp_path / "data"
    (made / "staging").mkdir(parents=True)
    (made / "staging" / NAME).write_bytes(b"good")
    (tmp_path / "secret").write_bytes(b"secret")
    return made


def opened(data_dir: Path, owner: int | None = None, name: str = NAME) -> bytes:
    """What is read through the descriptor."""
    handle = open_plain_beneath(str(data_dir), "staging", name, owner=owner)
    try:
        assert not os.get_inheritable(handle)
        return os.read(handle, 100)
    finally:
        os.close(handle)


def make_socket(path: Path) -> None:
    """Leave a socket behind."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def make_device(path: Path) -> None:
    """The null device under another name."""
    if os.geteuid() != 0:
        pytest.skip("only root makes devices")
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))


def link_to(target: str) -> Callable[[Path], None]:
    """Make a symlink."""
    return lambda path: path.symlink_to(target)


def hard_link(path: Path) -> None:
    """Give somebody's file a second name."""
    path.hardlink_to(path.parent.parent.parent / "secret")


PLANTS: dict[str, Callable[[Path], None]] = {
    "link to a secret": link_to("../../secret"),
    "link to a good file": link_to("other"),
    "link to a device": link_to("/dev/zero"),
    "dangling link": link_to("nowhere"),
    "link to itself": link_to(NAME),
    "hard link": hard_link,
    "fifo": os.mkfifo,
    "socket": make_socket,
    "device": make_device,
    "directory": Path.mkdir,
}


def test_a_plain_file_is_opened(data_dir: Path) -> None:
    """For reading, at its start, and not for children."""
    assert opened(data_dir) == b"good"
    assert opened(data_dir, os.geteuid()) == b"good"


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_whatever_is_no_plain_file_is_refused(data_dir: Path, plant: Callable[[Path], None]) -> None:
    """Never followed, never waited for, whoever owns it; it is left where it lies, and nothing stays open."""
    path = data_dir / "staging" / NAME
    path.rename(path.with_name("other"))
    plant(path)
    before = open_files()
    with unchanged(data_dir.parent):
        for owner in (None, os.geteuid()):
            with pytest.raises((HostError, OSError)):
                opened(data_dir, owner)
    assert open_files() == before


def test_a_second_name_for_a_file_is_refused_with_its_count(data_dir: Path) -> None:
    """A hard link to a file that root can read and the node can't."""
    path = data_dir / "staging" / NAME
    path.unlink()
    hard_link(path)
    with pytest.raises(HostError, match="has 2 links") as caught:
        opened(data_dir)
    assert caught.value.code == "io-error"


@pytest.mark.parametrize("kind", [os.mkfifo, Path.mkdir], ids=["fifo", "directory"])
def test_what_is_no_regular_file_is_said_to_be_none(data_dir: Path, kind: Callable[[Path], None]) -> None:
    """With its path and what to do."""
    path = data_dir / "staging" / NAME
    path.unlink()
    kind(path)
    with pytest.raises(HostError, match="no regular file") as caught:
        opened(data_dir)
    assert str(path) in caught.value.message
    assert "remove it" in caught.value.hint


def test_somebody_elses_file_is_refused(data_dir: Path) -> None:
    """Under the helper only the node's user may have written it."""
    before = open_files()
    with unchanged(data_dir), pytest.raises(HostError, match=f"owned by uid {os.geteuid()}, not 4242"):
        opened(data_dir, 4242)
    assert open_files() == before


def test_a_missing_file_is_an_oserror(data_dir: Path) -> None:
    """There is nothing to judge; so with a missing directory."""
    with pytest.raises(FileNotFoundError):
        opened(data_dir, name="bcd-1.4.2")
    with pytest.raises(FileNotFoundError):
        open_plain_beneath(str(data_dir), "missing", NAME)
    with pytest.raises(FileNotFoundError):
        open_plain_beneath(str(data_dir / "missing"), "staging", NAME)


@pytest.mark.parametrize("target", ["elsewhere", "../outside", "/etc"])
def test_a_link_in_the_directorys_place_is_not_followed(data_dir: Path, target: str) -> None:
    """Also where it leads to a directory with a good file of that name."""
    for where in (data_dir / "elsewhere", data_dir.parent / "outside"):
        where.mkdir()
        (where / NAME).write_bytes(b"good")
    (data_dir / "staging").rename(data_dir / "old")
    (data_dir / "staging").symlink_to(target)
    before = open_files()
    with unchanged(data_dir.parent), pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        opened(data_dir)
    assert open_files() == before


def test_what_is_no_directory_is_not_entered(data_dir: Path) -> None:
    """A FIFO in its place hangs nobody."""
    (data_dir / "staging").rename(data_dir / "old")
    os.mkfifo(data_dir / "staging")
    with pytest.raises(NotADirectoryError):
        opened(data_dir)


def test_the_trusted_parent_may_be_a_link(data_dir: Path) -> None:
    """It is configuration's, and an operator may have moved it to another disk."""
    link = data_dir.parent / "link"
    link.symlink_to(data_dir)
    assert opened(link) == b"good"


def test_a_file_that_is_exchanged_after_it_was_opened_is_read_as_it_was_checked(data_dir: Path) -> None:
    """The descriptor is of the file that was judged; its name may lead anywhere by now."""
    path = data_dir / "staging" / NAME
    handle = open_plain_beneath(str(data_dir), "staging", NAME)
    path.unlink()
    path.symlink_to("../../secret")
    (data_dir / "staging").rename(data_dir / "old")
    assert os.read(handle, 100) == b"good"
    os.close(handle)


def test_a_directory_that_is_exchanged_between_its_opening_and_the_files_does_not_matter(data_dir: Path) -> None:
    """The attack: `staging` becomes a link to a directory with another file, after it was opened and before that is."""
    evil = data_dir.parent / "evil"
    evil.mkdir()
    (evil / NAME).write_bytes(b"evil")
    real = os.open

    def exchanging(path: str, flags: int, *args: int, **more: int) -> int:
        if path == NAME:
            (data_dir / "staging").rename(data_dir / "old")
            (data_dir / "staging").symlink_to(evil)
        return real(path, flags, *args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", exchanging)
        assert opened(data_dir) == b"good"
    assert (data_dir / "staging" / NAME).read_bytes() == b"evil"


# Leftovers ------------------------------------------------------------------------------------------------------------


def plain_file(path: Path) -> None:
    """Half of a copy."""
    path.write_bytes(b"half")


def read_only_file(path: Path) -> None:
    """One without any right."""
    path.touch(mode=0o000)


@pytest.mark.parametrize("plant", [*PLANTS.values(), plain_file, read_only_file], ids=[*PLANTS, "file", "read-only"])
def test_a_leftover_of_any_type_is_removed_and_not_followed(data_dir: Path, plant: Callable[[Path], None]) -> None:
    """A temporary name is ours, whatever lies there; what it led to is as it was."""
    path = data_dir / "staging" / "bcd-a.tmp"
    with unchanged(data_dir.parent):
        plant(path)
        remove_leftover(str(path))
        assert not os.path.lexists(path)


def test_a_missing_leftover_is_well(data_dir: Path) -> None:
    """There is nothing to do."""
    with unchanged(data_dir):
        remove_leftover(str(data_dir / "bcd-a.tmp"))


def test_a_directory_with_content_is_reported_and_left(data_dir: Path) -> None:
    """It is somebody's, and its path is in error and hint."""
    path = data_dir / "bcd-a.tmp"
    path.mkdir()
    (path / "kept").touch()
    with unchanged(data_dir), pytest.raises(HostError, match="a directory with content") as caught:
        remove_leftover(str(path))
    assert caught.value.code == "io-error"
    assert str(path) in caught.value.hint


def test_a_link_to_a_directory_with_content_is_a_link(data_dir: Path) -> None:
    """It goes; the directory stays."""
    path = data_dir / "bcd-a.tmp"
    with unchanged(data_dir):
        path.symlink_to("staging")
        remove_leftover(str(path))
