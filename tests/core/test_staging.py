"""What may lie in staging before a download, and what may happen to the disk under it (field reports 14, 26, 29)."""

import errno
import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bcd.core.errors import BcdError, HostError, Refusal
from bcd.core.staging import file_name, held_bytes, part_name
from tests.core.release_server import RELEASE, VERSION, Exchange, World, at_most, cut_after, world_in

SIZE = len(RELEASE)
NAMES = [f"bcd-{VERSION}", f"bcd-{VERSION}.part", f"bcd-{VERSION}.part.meta"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A downloader with a good server and an empty staging directory."""
    with world_in(tmp_path) as made:
        made.staging.mkdir(0o700)
        yield made


def make_socket(path: Path) -> None:
    """Leave a socket behind."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def link_to(target: str) -> Callable[[Path], None]:
    """Make a symlink."""
    return lambda path: path.symlink_to(target)


def hard_link(path: Path) -> None:
    """Give somebody's file, with the very bytes that are wanted, a second name."""
    other = path.parent.parent / "other"
    other.write_bytes(RELEASE)
    path.hardlink_to(other)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "plant",
    [os.mkfifo, make_socket, link_to("/dev/zero"), link_to("../other"), link_to("nowhere"), hard_link, Path.mkdir],
    ids=["fifo", "socket", "link-to-device", "link-to-file", "dangling", "hard-link", "directory"],
)
def test_whatever_is_no_file_of_ours_is_removed(world: World, name: str, plant: Callable[[Path], None]) -> None:
    """Never followed, never waited for, and what it led to is as it was (field report 14)."""
    other = world.staging.parent / "other"
    other.write_bytes(RELEASE)
    plant(world.staging / name)
    with at_most(5):
        world.fetch()
    assert world.final.read_bytes() == RELEASE
    assert world.final.lstat().st_nlink == 1
    assert not world.final.is_symlink()
    assert other.read_bytes() == RELEASE
    assert world.on_disk == {f"bcd-{VERSION}": SIZE}
    assert len(world.server.requests) == 1


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_plain_file_is_not_even_opened(world: World, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Opening some devices does something already; a FIFO stands for them here."""
    os.mkfifo(world.staging / name)
    opened: list[str] = []
    real = os.open

    def watching(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if not flags & os.O_CREAT:
            opened.append(path)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", watching)
    world.fetch()
    assert name not in opened


@pytest.mark.parametrize("name", NAMES)
def test_a_directory_with_content_is_reported(world: World, name: str) -> None:
    """It is somebody's: named with a hint, and left alone; nobody is asked for the file."""
    (world.staging / name).mkdir()
    (world.staging / name / "kept").touch()
    with pytest.raises(HostError, match="directory with content") as caught:
        world.fetch()
    assert caught.value.code == "io-error"
    assert str(world.staging / name) in caught.value.message
    assert "move it away" in caught.value.hint
    assert (world.staging / name / "kept").exists()
    assert world.server.requests == []


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")
@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_somebody_else_is_removed(world: World, name: str) -> None:
    """Its owner could change it after it was hashed."""
    planted = world.staging / name
    planted.write_bytes(RELEASE)
    os.chown(planted, 12345, 12345)
    world.fetch()
    assert world.final.lstat().st_uid == os.geteuid()
    assert len(world.server.requests) == 1


def test_what_else_lies_in_staging_is_left_alone(world: World) -> None:
    """Other versions, and files that are not ours."""
    (world.staging / "bcd-1.4.0.part").write_bytes(b"x")
    (world.staging / "note.txt").symlink_to("/nowhere")
    world.fetch()
    assert set(world.on_disk) == {f"bcd-{VERSION}", "bcd-1.4.0.part", "note.txt"}


# The directory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o027, 0o077], ids=oct)
def test_a_missing_directory_is_made_private_whatever_the_umask(world: World, umask: int) -> None:
    """Mode 0700, the file in it 0600, and a later try can open them again (field report 26)."""
    world.staging.rmdir()
    before = os.umask(umask)
    try:
        world.server.script = [cut_after(10_000)]
        with pytest.raises(BcdError):
            world.fetch()
        assert world.staging.stat().st_mode & 0o777 == 0o700
        assert world.part.stat().st_mode & 0o777 == 0o600
        assert world.note.stat().st_mode & 0o777 == 0o600
        world.fetch()
    finally:
        os.umask(before)
    assert world.final.stat().st_mode & 0o777 == 0o600
    assert world.asked() == ["", "bytes=10000-"]


def test_a_link_in_the_directorys_place_is_refused(world: World) -> None:
    """Nothing is written where it leads."""
    elsewhere = world.staging.rename(world.staging.with_name("elsewhere"))
    world.staging.symlink_to(elsewhere)
    with pytest.raises(HostError, match="is a link") as caught:
        world.fetch()
    assert caught.value.code == "io-error"
    assert list(elsewhere.iterdir()) == []
    assert world.server.requests == []


def test_a_file_in_the_directorys_place_is_named(world: World) -> None:
    """It is this host's fault."""
    world.staging.rmdir()
    world.staging.touch()
    with pytest.raises(HostError, match="staging") as caught:
        world.fetch()
    assert caught.value.code == "io-error"


def test_two_downloads_do_not_share_a_directory(world: World) -> None:
    """The second is told so at once, and the first ends well (field report 21)."""
    second: list[BaseException] = []

    def meanwhile(exchange: Exchange) -> None:
        try:
            world.fetch()
        except BcdError as error:
            second.append(error)
        world.server.good(exchange)

    world.server.script = [meanwhile]
    world.fetch()
    assert [getattr(error, "code", "") for error in second] == ["update-in-progress"]
    assert world.final.read_bytes() == RELEASE


def test_a_directory_that_is_swapped_meanwhile_gets_nothing(world: World, tmp_path: Path) -> None:
    """All names are taken in the directory that was opened (field report 36)."""

    def swap(exchange: Exchange) -> None:
        world.staging.rename(tmp_path / "moved")
        (tmp_path / "trap").mkdir()
        world.staging.symlink_to(tmp_path / "trap")
        world.server.good(exchange)

    world.server.script = [swap]
    world.fetch()
    assert list((tmp_path / "trap").iterdir()) == []
    assert (tmp_path / "moved" / f"bcd-{VERSION}").read_bytes() == RELEASE


@pytest.mark.parametrize("swap", ["link", "hard-link", "gone", "fifo"])
def test_a_file_that_is_swapped_between_look_and_open_is_not_taken(
    world: World, monkeypatch: pytest.MonkeyPatch, swap: str
) -> None:
    """What was opened is looked at again (field report 36)."""
    world.staging.joinpath(NAMES[1]).write_bytes(RELEASE)
    other = world.staging.parent / "other"
    other.write_bytes(RELEASE)
    real = os.open

    def racing(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == NAMES[1] and not flags & os.O_CREAT:
            world.part.unlink()
            plants = {"link": lambda: world.part.symlink_to(other), "hard-link": lambda: world.part.hardlink_to(other)}
            plants |= {"gone": lambda: None, "fifo": lambda: os.mkfifo(world.part)}
            plants[swap]()
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", racing)
    with at_most(5):
        world.fetch()
    assert world.final.read_bytes() == RELEASE
    assert world.final.lstat().st_nlink == 1
    assert other.read_bytes() == RELEASE
    assert world.asked() == [""]


def test_a_file_system_that_locks_no_directories_is_good_enough(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Network file systems need not."""

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert world.fetch().read_bytes() == RELEASE


# Names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "version", ["", "..", "../x", "1.4.1/../../etc/x", "1.4.1\0", "v1.4.1", "1.4.1\n", "1.4.1-" + "x" * 59]
)
def test_what_is_no_version_becomes_no_name(world: World, version: str) -> None:
    """It is refused before anything is made or asked."""
    with pytest.raises(Refusal) as caught:
        world.fetch(world.wanted()._replace(version=version))
    assert caught.value.code == "bad-section"
    assert caught.value.message.isprintable()
    assert world.on_disk == {}
    assert world.server.requests == []


def test_the_names_are_the_specs() -> None:
    """`bcd-<version>` and its `.part`."""
    assert (file_name(VERSION), part_name(VERSION)) == (NAMES[0], NAMES[1])


def test_held_bytes_are_those_on_the_disk(world: World) -> None:
    """Of the partial or the finished file, if it is ours; a sparse file holds what it takes."""
    assert held_bytes(world.staging, VERSION) == 0
    world.part.write_bytes(bytes(10_000))
    assert held_bytes(world.staging, VERSION) == 10_000
    os.truncate(world.part, 10**9)
    assert held_bytes(world.staging, VERSION) < 10**6
    world.part.unlink()
    world.part.symlink_to("/etc/passwd")
    assert held_bytes(world.staging, VERSION) == 0
    assert held_bytes(world.staging / "missing", VERSION) == 0


# The disk ------------------------------------------------------------------------------------------------------------


def failing(
    call: str, code: int, monkeypatch: pytest.MonkeyPatch, *, only: Callable[..., bool] = lambda *_: True
) -> None:
    """Let a system call fail."""
    real = getattr(os, call)

    def fail(*args: object, **named: object) -> object:
        if only(*args):
            raise OSError(code, os.strerror(code))
        return real(*args, **named)

    monkeypatch.setattr(os, call, fail)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT], ids=["full", "quota"])
@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
def test_a_disk_that_fills_up_is_left_without_the_partial_file(
    world: World, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    """Retryable, with the need, the mount point and what is free (field report 29)."""
    failing(call, code, monkeypatch)
    with pytest.raises(HostError, match=rf"^need {SIZE} bytes on /\S*, \d+ are free$") as caught:
        world.fetch()
    assert caught.value.code == "no-space"
    assert caught.value.retryable
    assert world.on_disk == {}


@pytest.mark.parametrize("call", ["write", "fsync", "rename", "fchmod"])
def test_another_failure_of_the_disk_names_the_path(world: World, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """Nothing has the final name."""
    failing(call, errno.EIO, monkeypatch)
    with pytest.raises(HostError, match="Input/output error") as caught:
        world.fetch()
    assert caught.value.code == "io-error"
    assert str(world.part) in caught.value.message
    assert not world.final.exists()


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_cannot_be_read_is_replaced(world: World, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A bad block must not stop updates for ever: other blocks hold the next try."""
    world.server.script = [cut_after(10_000)]
    with pytest.raises(BcdError):
        world.fetch()
    if name == NAMES[0]:
        world.final.write_bytes(RELEASE)
    bad = (world.staging / name).stat().st_ino
    failing("pread", errno.EIO, monkeypatch, only=lambda handle, *_: os.fstat(handle).st_ino == bad)
    world.fetch()
    monkeypatch.undo()
    assert world.final.read_bytes() == RELEASE


def test_the_bytes_are_on_the_disk_before_they_have_their_name(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """fsync of the file, rename, fsync of the directory, in that order (field report 03)."""
    calls: list[str] = []
    real_sync, real_rename = os.fsync, os.rename

    def sync(handle: int) -> None:
        calls.append(f"fsync {Path(os.readlink(f'/proc/self/fd/{handle}')).name}")
        real_sync(handle)

    def rename(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        calls.append(f"rename {source} {target}")
        real_rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "rename", rename)
    world.fetch()
    assert calls == [f"fsync {NAMES[1]}", f"rename {NAMES[1]} {NAMES[0]}", "fsync staging"]
