"""Room for an update, and the mounts it would land on (field reports 25, 29, 35)."""

import os
from pathlib import Path

import pytest

from bcd.core.errors import HostError
from bcd.core.space import SPARE_BYTES, SPARE_INODES, check_room, mount_of, no_room, refuse_unwritable_mount

SIZE = 50_000_000
BLOCK = 1024
SPARE = SPARE_BYTES


def file_system(
    free: int = 10**12, *, root_free: int | None = None, inodes: int = 10**6, total: int = 10**10, flag: int = 0
) -> os.statvfs_result:
    """A file system with `free` bytes and `inodes` for users, `root_free` bytes for root."""
    root = free if root_free is None else root_free
    files = 0 if inodes < 0 else 10**7
    return os.statvfs_result((4096, BLOCK, total, root // BLOCK, free // BLOCK, files, inodes, inodes, flag, 255))


@pytest.fixture(autouse=True)
def user(monkeypatch: pytest.MonkeyPatch) -> None:
    """We are not root, whoever runs the tests."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """Staging and slots directories."""
    made = tmp_path / "staging", tmp_path / "slots"
    for one in made:
        one.mkdir()
    return made


def on_one(places: tuple[Path, Path], has: os.statvfs_result, already: int = 0) -> None:
    """Check both on one file system."""
    check_room(*places, SIZE, already, statvfs=lambda _: has)


def on_two(places: tuple[Path, Path], staging: os.statvfs_result, slots: os.statvfs_result, already: int = 0) -> None:
    """Check each on its own."""
    check_room(
        *places,
        SIZE,
        already,
        statvfs=lambda path: staging if path == places[0] else slots,
        device=lambda path: 1 if path == places[0] else 2,
    )


def up(size: int) -> int:
    """Whole blocks."""
    return -(-size // BLOCK) * BLOCK


@pytest.mark.parametrize(
    ("already", "need"),
    [(0, 2 * SIZE + SPARE), (SIZE // 2, SIZE + SIZE // 2 + SPARE), (SIZE, SIZE + SPARE), (2 * SIZE, SIZE + SPARE)],
)
def test_one_file_system_must_hold_both_files_and_the_spare(places: tuple[Path, Path], already: int, need: int) -> None:
    """What the partial file holds counts as had; one block less is too little, and both numbers are said."""
    on_one(places, file_system(up(need)), already)
    with pytest.raises(HostError) as caught:
        on_one(places, file_system(up(need) - BLOCK), already)
    assert caught.value.code == "no-space"
    assert caught.value.retryable
    assert caught.value.message == f"need {need} bytes on {mount_of(places[1])}, {up(need) - BLOCK} are free"
    assert list(places[0].iterdir()) == list(places[1].iterdir()) == []


@pytest.mark.parametrize(
    ("staging", "slots", "fits"),
    [
        (SIZE + SPARE, SIZE + SPARE, True),
        (SIZE + SPARE - BLOCK, 10**12, False),
        (10**12, SIZE + SPARE - BLOCK, False),
    ],
)
def test_two_file_systems_must_each_hold_their_own(
    places: tuple[Path, Path], staging: int, slots: int, *, fits: bool
) -> None:
    """With the spare on each."""
    if fits:
        on_two(places, file_system(up(staging)), file_system(up(slots)))
    else:
        with pytest.raises(HostError, match="bytes on"):
            on_two(places, file_system(staging), file_system(slots))


def test_what_is_already_there_counts_for_staging_alone(places: tuple[Path, Path]) -> None:
    """The slot still needs its whole file."""
    on_two(places, file_system(up(SPARE)), file_system(up(SIZE + SPARE)), already=SIZE)
    with pytest.raises(HostError):
        on_two(places, file_system(up(SPARE)), file_system(SIZE + SPARE - BLOCK), already=SIZE)


def test_what_is_kept_for_root_is_roots(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A user may not count on it; root may."""
    has = file_system(0, root_free=10**12)
    with pytest.raises(HostError, match="0 are free"):
        on_one(places, has)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    on_one(places, has)


def test_a_file_system_out_of_inodes_is_full(places: tuple[Path, Path]) -> None:
    """Bytes alone make no file."""
    on_one(places, file_system(inodes=SPARE_INODES))
    with pytest.raises(HostError, match=rf"need {SPARE_INODES} inodes on .*, {SPARE_INODES - 1} are free") as caught:
        on_one(places, file_system(inodes=SPARE_INODES - 1))
    assert caught.value.code == "no-space"


def test_a_file_system_without_numbers_is_believed(places: tuple[Path, Path]) -> None:
    """btrfs has no fixed number of inodes, some others no fixed size: 0 of 0 is not full."""
    on_one(places, os.statvfs_result((4096, BLOCK, 10**10, 10**9, 10**9, 0, 0, 0, 0, 255)))
    on_one(places, os.statvfs_result((4096, BLOCK, 0, 0, 0, 0, 0, 0, 0, 255)))


def test_directories_still_to_be_made_are_asked_about_above(tmp_path: Path) -> None:
    """The file system is the one they will be on; and nothing is made by looking."""
    asked: list[Path] = []

    def ask(path: Path) -> os.statvfs_result:
        asked.append(path)
        return file_system()

    check_room(tmp_path / "a" / "staging", tmp_path / "b" / "slots", SIZE, 0, statvfs=ask)
    assert asked == [tmp_path]
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_that_cannot_be_asked_is_an_error_of_its_own(places: tuple[Path, Path]) -> None:
    """Not taken for room, and not for none."""

    def fail(path: Path) -> os.statvfs_result:
        raise PermissionError(13, "Permission denied", str(path))

    with pytest.raises(HostError, match="Permission denied") as caught:
        check_room(*places, SIZE, 0, statvfs=fail)
    assert caught.value.code == "io-error"
    with pytest.raises(HostError, match="Permission denied"):
        check_room(*places, SIZE, 0, device=lambda path: fail(path).f_flag)


def test_the_real_file_system_answers(places: tuple[Path, Path]) -> None:
    """A byte fits; an exabyte does not."""
    check_room(*places, 1, 0)
    with pytest.raises(HostError, match=r"need \d+ bytes on /"):
        check_room(*places, 10**18, 0)
    assert no_room(places[0] / "x", 7).message.startswith(f"need 7 bytes on {mount_of(places[0])}, ")


# Mounts --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/proc/self/status", "/proc", "/proc/nowhere/at/all"])
def test_the_mount_point_of_a_path_is_found(path: str) -> None:
    """Also of one that does not exist yet."""
    assert mount_of(Path(path)) == Path("/proc")


def test_a_mount_point_with_blanks_in_its_name_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel writes them in octal; the deepest mount point that holds the path counts."""
    deep = tmp_path / "a b" / "c\\d"
    (deep / "x").mkdir(parents=True)
    table = tmp_path / "mountinfo"
    escaped = str(deep).replace("\\", "\\134").replace(" ", "\\040")
    table.write_text(f"1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / {escaped} ro - ext4 x rw\n3 1 0:3 / {deep}x rw - t t rw\n")
    monkeypatch.setattr("bcd.core.space._MOUNTS", str(table))
    assert mount_of(deep / "x") == deep
    assert mount_of(deep.parent) == Path("/")


@pytest.mark.parametrize("content", [None, "nonsense\n"])
def test_without_the_kernels_table_the_device_tells(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chroot may have no /proc."""
    table = tmp_path / "mountinfo"
    if content:
        table.write_text(content)
    monkeypatch.setattr("bcd.core.space._MOUNTS", str(table))
    assert mount_of(Path("/proc/self")) == Path("/proc")
    assert os.path.ismount(mount_of(tmp_path))


@pytest.mark.parametrize(
    ("flag", "executable", "words"),
    [
        (os.ST_RDONLY, False, "read-only"),
        (os.ST_RDONLY, True, "read-only"),
        (os.ST_RDONLY | os.ST_NOEXEC, True, "read-only"),
        (os.ST_NOEXEC, True, "noexec"),
    ],
)
def test_a_mount_that_cannot_take_it_is_named(tmp_path: Path, *, flag: int, executable: bool, words: str) -> None:
    """With what to do about it (field reports 25, 35)."""
    with pytest.raises(HostError, match=f"is mounted {words}") as caught:
        refuse_unwritable_mount(tmp_path / "new", executable, statvfs=lambda _: file_system(flag=flag))
    assert caught.value.code == "io-error"
    assert caught.value.message.startswith(f"{mount_of(tmp_path)} is")
    assert "remount" in caught.value.hint


@pytest.mark.parametrize(("flag", "executable"), [(0, True), (0, False), (os.ST_NOEXEC, False), (os.ST_NOSUID, True)])
def test_a_mount_that_can_take_it_passes(tmp_path: Path, *, flag: int, executable: bool) -> None:
    """Staging may be noexec: nothing is run from there."""
    refuse_unwritable_mount(tmp_path, executable, statvfs=lambda _: file_system(flag=flag))


def test_a_real_noexec_mount_is_refused() -> None:
    """/proc is one nearly everywhere."""
    if not os.statvfs("/proc").f_flag & os.ST_NOEXEC:
        pytest.skip("this /proc is mounted exec")
    with pytest.raises(HostError, match=r"^/proc is mounted noexec"):
        refuse_unwritable_mount(Path("/proc/self"), executable=True)
