"""A split lab: who its node's user is, where it may live, and what its processes are."""

import os
import pwd
import sys
from pathlib import Path

import pytest

from bcd import cli
from bcd.core.errors import NotPermitted, UsageError
from bcd.core.exits import ExitStatus
from bcd.lab import runtime, split
from bcd.lab.directory import LabDirectory
from bcd.lab.leash import start_on_leash
from tests.lab.processes import until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
MINE = {str(entry.stat().st_uid) for entry in Path("/proc").glob("[0-9]*") if entry.exists()}


def test_the_user_is_a_number_that_nobody_has() -> None:
    drawn = {split.draw_user() for _ in range(5)}
    assert all(split.FIRST_UID <= uid <= split.LAST_UID for uid in drawn)
    assert drawn & {entry.pw_uid for entry in pwd.getpwall()} == set()
    assert {str(uid) for uid in drawn} & MINE == set()


def test_another_than_root_is_told_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["/opt/bcd tree/bcd", "lab", "tour", "--split"])
    with pytest.raises(NotPermitted) as error:
        split.require_root()
    assert (error.value.code, error.value.hint) == ("needs-root", "sudo '/opt/bcd tree/bcd' lab tour --split")


@pytest.mark.parametrize(
    "words", [["lab", "--split"], ["lab", "tour", "--split"], ["lab", "up", "--split"]], ids=" ".join
)
def test_every_split_lab_asks_for_root(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cli.main(words) == ExitStatus.NOT_PERMITTED
    assert "(needs-root)" in capfd.readouterr().err


def test_split_before_the_command_is_told_where_it_belongs(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lab", "--split", "releases"]) == ExitStatus.USAGE
    assert "--split belongs after the command" in capfd.readouterr().err


def test_a_place_that_the_helper_refuses_is_refused_with_the_very_step(tmp_path: Path) -> None:
    place = tmp_path / "lab"
    with pytest.raises(UsageError) as error:
        LabDirectory(place, split=True)
    assert error.value.code == "bad-directory"
    assert "is not root's alone" in error.value.message
    assert "/var/lib" in error.value.hint
    assert not place.exists()


def test_a_place_that_leaves_no_room_for_a_socket_is_refused() -> None:
    split.require_place(Path("/lab"))
    with pytest.raises(UsageError) as error:
        split.require_place(Path("/" + "d" * 100))
    assert (error.value.code, "60 bytes" in error.value.message) == ("bad-directory", True)


@as_root
def test_a_temporary_one_is_roots_alone_and_open_to_the_node() -> None:
    claimed = LabDirectory(None, split=True)
    try:
        found = claimed.path.stat()
        assert (claimed.path.parent, found.st_uid, found.st_mode & 0o777) == (split.PLACE, 0, 0o755)
    finally:
        claimed.give_back(keep=False)
    assert not claimed.path.exists()


@as_root
def test_a_process_of_the_user_has_no_group_and_no_capability_of_roots(tmp_path: Path) -> None:
    uid = split.draw_user()
    with (tmp_path / "log").open("wb") as log:
        process = start_on_leash(["/bin/sleep", "60"], environment={}, directory=Path("/"), log=log, uid=uid)
        status = Path(f"/proc/{process.pid}/status")
        until(lambda: "Name:\tsleep" in status.read_text())
        said = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        process.kill()
        process.wait()
    assert said["Uid"].split() == said["Gid"].split() == [str(uid)] * 4
    assert (said["Groups"].strip(), int(said["CapEff"], 16), int(said["CapPrm"], 16)) == ("", 0, 0)


def test_what_a_copied_interpreter_gets_is_what_bcd_requires() -> None:
    names = {distribution.name.lower().replace("_", "-") for distribution in runtime._required("bcd")}
    assert {"cryptography", "cffi", "msgspec", "rich-click", "textual", "websockets"} <= names
    assert names & {"pytest", "mypy", "ruff", "bcd"} == set()
