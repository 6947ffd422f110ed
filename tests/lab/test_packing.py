"""The lab's binaries are what their stamps say, down to the byte."""

import subprocess
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from bcd.lab.packing import EXITS_AT_ONCE, Packer, Stamp

STAMP = Stamp(version="1.4.1", sequence=15, built_at=1_790_000_000)


@pytest.fixture(scope="module")
def packer() -> Packer:
    return Packer()


def install(path: Path, body: bytes) -> Path:
    path.write_bytes(body)
    path.chmod(0o755)
    return path


def test_the_same_stamp_gives_the_same_bytes_and_another_gives_others(packer: Packer) -> None:
    assert packer.pack(STAMP) == packer.pack(STAMP)
    assert packer.pack(STAMP) != packer.pack(Stamp(version="1.4.1", sequence=16, built_at=1_790_000_000))


def test_it_holds_no_source_and_all_of_the_data(packer: Packer) -> None:
    names = zipfile.ZipFile(BytesIO(packer.pack(STAMP))).namelist()
    assert [name for name in names if name.endswith(".py")] == []
    assert {"__main__.pyc", "bcd/_stamp.pyc", "bcd/core/rollback.sh"} <= set(names)


def test_it_runs_and_says_its_stamp(packer: Packer, tmp_path: Path) -> None:
    binary = install(tmp_path / "with a space", packer.pack(STAMP))
    done = subprocess.run([binary, "version"], capture_output=True, text=True)
    assert (done.returncode, "1.4.1" in done.stdout) == (0, True), done.stderr


def test_it_sees_its_arguments_as_they_were_given(packer: Packer, tmp_path: Path) -> None:
    program = "import sys; del sys.argv[0]; print(sys.argv)"
    binary = install(tmp_path / "bcd", packer.pack(Stamp(version="1.0.0", sequence=1, built_at=0, main=program)))
    done = subprocess.run([binary, "a b", "--c", ""], capture_output=True, text=True)
    assert done.stdout == f"{[str(binary), 'a b', '--c', '']}\n"


def test_a_program_that_exits_at_once_says_so(packer: Packer, tmp_path: Path) -> None:
    binary = install(tmp_path / "bcd", packer.pack(Stamp(version="1.0.0", sequence=1, built_at=0, main=EXITS_AT_ONCE)))
    done = subprocess.run([binary, "version"], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def test_a_running_one_goes_on_loading_from_its_own_file(packer: Packer, tmp_path: Path) -> None:
    # The accident: an update replaces the name, and the old process loads its next module from the new release.
    program = "print('ready', flush=True); input(); import bcd._stamp; print(bcd._stamp.VERSION)"
    old, new = (
        packer.pack(Stamp(version=version, sequence=1, built_at=0, main=program)) for version in ("1.0.0", "2.0.0")
    )
    binary = install(tmp_path / "bcd", old)
    with subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        install(tmp_path / "bcd.new", new).replace(binary)
        out, _ = process.communicate("\n")
    assert out == "1.0.0\n"
