"""What lies in staging is nobody's word: whatever is there, of any type, ends in the right bytes or in no swap."""

import os
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bcd.core import durable, safeopen
from bcd.core.errors import BcdError
from tests.core.node_root import Node, Release, code_of, make_release, program, quick_node

ONE = make_release("1.1.0", 11)
TWO = make_release("1.2.0", 12)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """On 1.1.0, 1.0.0 in the other slot."""
    made = quick_node(tmp_path, monkeypatch)
    made.update(ONE)
    return made


def refuse(node: Node, release: Release, expected: str) -> BcdError:
    """No swap, and nothing but the history is another."""
    before = node.tree()
    with pytest.raises(BcdError) as caught:
        node.manager().swap(release.section, server_time=None, command_id=None)
    assert code_of(caught.value) == expected
    assert node.tree() == before
    assert node.runs() == "1.1.0"
    return caught.value


def rewrite(path: Path, data: bytes) -> None:
    """Other bytes in the same file."""
    path.write_bytes(data)


def into_link(path: Path) -> None:
    """A symlink to the right bytes."""
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def into_staging_link(path: Path) -> None:
    """The staging directory itself is a link to one with the right bytes."""
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.symlink_to("moved")


def into_directory(path: Path) -> None:
    """A directory of that name."""
    path.unlink()
    path.mkdir()


def into_fifo(path: Path) -> None:
    """A FIFO that nobody writes: whoever opens it without care hangs."""
    path.unlink()
    os.mkfifo(path)


def into_socket(path: Path) -> None:
    """A socket."""
    path.unlink()
    os.chdir(path.parent)  # a socket's path is at most 107 bytes long
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


def into_dangling_link(path: Path) -> None:
    """A link to nothing."""
    path.unlink()
    path.symlink_to("nowhere")


def into_loop(path: Path) -> None:
    """A link to itself."""
    path.unlink()
    path.symlink_to(path.name)


def without_staging(path: Path) -> None:
    """Somebody tidied up."""
    path.unlink()
    path.parent.rmdir()


def into_staging_file(path: Path) -> None:
    """A file in the directory's place."""
    without_staging(path)
    path.parent.write_bytes(b"")


SPOILED: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda path: rewrite(path, b""),
    "one byte changed": lambda path: rewrite(path, TWO.data[:-2] + b"~\n"),
    "one byte short": lambda path: rewrite(path, TWO.data[:-1]),
    "one byte long": lambda path: rewrite(path, TWO.data + b"\n"),
    "very long": lambda path: rewrite(path, TWO.data + bytes(3_000_000)),
    "hard-linked": lambda path: path.with_name("second").hardlink_to(path),
    "a link": into_link,
    "a dangling link": into_dangling_link,
    "a link to itself": into_loop,
    "a directory": into_directory,
    "a FIFO": into_fifo,
    "a socket": into_socket,
    "staging is a link": into_staging_link,
    "staging is a file": into_staging_file,
    "staging is gone": without_staging,
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_staged_file_is_never_swapped_in(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It is retryable and leaves slots, records and links alone; downloaded again, it works (field reports 14, 36)."""
    monkeypatch.chdir(tmp_path)
    path = node.stage(TWO)
    SPOILED[name](path)
    refuse(node, TWO, "HostError: io-error")
    os.chdir(tmp_path)
    for left in (path.parent, path.parent.with_name("moved")):
        left.rename(tmp_path / f"away-{left.name}") if os.path.lexists(left) else None
    path.parent.mkdir()
    node.update(TWO)
    assert node.runs() == "1.2.0"


@pytest.mark.parametrize("change", ["grows", "other bytes"])
def test_a_file_that_changes_while_it_is_copied_is_not_swapped_in(
    node: Node, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """What is hashed is what was written, and a growing file ends one byte past its size."""
    path = node.stage(TWO)
    copied = 0

    def write_all(handle: int, data: bytes | memoryview) -> None:
        nonlocal copied
        copied += len(data)
        durable.write_all(handle, data)
        with path.open("r+b") as staged:
            staged.seek(0 if change == "other bytes" else len(TWO.data))
            staged.write(b"#" * 4096)

    monkeypatch.setattr("bcd.core.slotfile.write_all", write_all)
    monkeypatch.setattr("bcd.core.slotfile.CHUNK_BYTES", 64)
    with pytest.raises(BcdError, match="the staged file changed after it was checked") as caught:
        node.manager().swap(TWO.section, server_time=None, command_id=None)
    assert caught.value.code == "io-error"
    assert copied <= len(TWO.data) + 1
    assert node.slot("a").read_bytes() == program("1.0.0")
    assert node.runs() == "1.1.0"


def test_a_file_replaced_after_it_was_opened_is_not_read(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check and the use are one descriptor: another file under the same name changes nothing."""
    path = node.stage(TWO)

    def replaced(temporary: str) -> None:
        path.unlink()
        path.write_bytes(program("6.6.6"))
        safeopen.remove_leftover(temporary)

    monkeypatch.setattr("bcd.core.slotfile.remove_leftover", replaced)
    node.manager().swap(TWO.section, server_time=None, command_id=None)
    assert node.runs() == "1.2.0"


def test_under_the_helper_only_the_nodes_own_file_counts(node: Node) -> None:
    """Owned by somebody else, it is not what the node downloaded."""
    node.stage(TWO)
    before = node.tree()
    manager = node.manager(staging_owner=os.getuid() + 1)
    with pytest.raises(BcdError, match=rf"owned by uid {os.getuid()}, not {os.getuid() + 1}"):
        manager.swap(TWO.section, server_time=None, command_id=None)
    assert node.tree() == before
    node.manager(staging_owner=os.getuid()).swap(TWO.section, server_time=None, command_id=None)
    assert node.runs() == "1.2.0"


# Wrong programs (field report 32) -------------------------------------------------------------------------------------


def elf(machine: int, bits: int = 2) -> bytes:
    """The head of an ELF file."""
    return b"\x7fELF" + bytes((bits, 1, 1)) + bytes(9) + struct.pack("<HH", 2, machine) + bytes(200)


FOREIGN = {
    "windows": b"MZ" + bytes(100),
    "macos": b"\xcf\xfa\xed\xfe" + bytes(100),
    "another machine": elf(0xF3),
    "torn": elf(62)[:18],
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_program_of_another_machine_is_refused_for_good(node: Node, name: str) -> None:
    """Signed and whole as it is: terminal, told in the history, and the slot keeps what it has."""
    release = make_release("1.2.0", 12, data=FOREIGN[name])
    node.stage(release)
    refuse(node, release, "Refusal: wrong-platform-binary")
    assert node.events()[-1]["code"] == "wrong-platform-binary"
    node.update(TWO)
    assert node.runs() == "1.2.0"


# Left-overs at our own temporary name ---------------------------------------------------------------------------------

LEFT: dict[str, Callable[[Path, Path], object]] = {
    "file": lambda path, _: path.write_bytes(b"half"),
    "empty directory": lambda path, _: path.mkdir(),
    "link": lambda path, outside: path.symlink_to(outside),
    "dangling link": lambda path, _: path.symlink_to("nowhere"),
    "FIFO": lambda path, _: os.mkfifo(path),
    "hard link": lambda path, outside: path.hardlink_to(outside),
}


@pytest.mark.parametrize("name", LEFT)
def test_a_left_over_of_any_type_is_replaced_and_never_followed(node: Node, tmp_path: Path, name: str) -> None:
    """What it leads to keeps its bytes and its mode."""
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    outside.chmod(0o600)
    LEFT[name](node.slot("a").with_name("bcd-a.tmp"), outside)
    node.swap(TWO)
    assert node.runs() == "1.2.0"
    assert outside.read_bytes() == b"precious"
    assert outside.stat().st_mode & 0o777 == 0o600
    assert not os.path.lexists(node.slot("a").with_name("bcd-a.tmp"))


def test_a_left_over_directory_with_content_is_reported(node: Node) -> None:
    """It is not ours to empty; removed by hand, the update goes on."""
    kept = node.slot("a").with_name("bcd-a.tmp")
    kept.mkdir()
    (kept / "thesis.txt").write_bytes(b"mine")
    node.stage(TWO)
    error = refuse(node, TWO, "HostError: io-error")
    assert str(kept) in error.message
    assert str(kept) in error.hint
    (kept / "thesis.txt").unlink()
    node.swap(TWO)
    assert node.runs() == "1.2.0"


# Busy files (field report 40) and other file systems ------------------------------------------------------------------


@pytest.fixture
def memory() -> Iterator[Path]:
    """A directory on another file system than the slots."""
    if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == os.stat(tempfile.gettempdir()).st_dev:
        pytest.skip("there is no other file system here")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        yield Path(made)


def test_staging_and_records_may_be_on_another_file_system(tmp_path: Path, memory: Path) -> None:
    """Files are copied into the slots directory, never renamed across."""
    node = Node(tmp_path, data_dir=memory / "data")
    assert os.stat(node.layout.staging).st_dev != os.stat(tmp_path).st_dev
    node.update(ONE)
    node.fail(TWO)
    assert node.runs() == "1.1.0"
    assert node.slot("a").read_bytes() == program("1.2.0")


@pytest.mark.parametrize("adopted", [False, True], ids=["slot", "entrypoint"])
def test_a_program_that_is_executing_is_replaced_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adopted: bool
) -> None:
    """In the other slot while that is filled, or at the entrypoint while that is adopted (field report 40)."""
    sleep = shutil.which("sleep")
    assert sleep is not None
    node = quick_node(tmp_path, monkeypatch)
    node.update(ONE)
    busy = Path(node.layout.entrypoint) if adopted else node.slot("a")
    busy.unlink()
    shutil.copyfile(sleep, busy)
    busy.chmod(0o755)
    with subprocess.Popen(["sleep", "600"], executable=str(busy)) as running:
        try:
            with pytest.raises(OSError, match="busy"):
                busy.open("ab").close()
            node.stage(TWO)
            node.manager("1.1.0").swap(TWO.section, server_time=None, command_id=None)
            assert running.poll() is None
            assert node.runs() == "1.2.0"
            kept = Path(node.layout.slots_dir, node.link("previous") or "").read_bytes()
            assert kept == (Path(sleep).read_bytes() if adopted else program("1.1.0"))
        finally:
            running.kill()
