"""A lab removes nothing but a lab's."""

from pathlib import Path

import pytest

from bcd.core.errors import UsageError
from bcd.lab.directory import LabDirectory


def test_a_directory_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    with pytest.raises(UsageError) as error:
        LabDirectory(tmp_path)
    assert error.value.code == "bad-directory"
    assert (tmp_path / "nodes").is_dir()


def test_an_earlier_lab_is_removed_and_nothing_else(tmp_path: Path) -> None:
    LabDirectory(tmp_path / "lab").give_back(keep=False)
    (tmp_path / "lab" / "nodes" / "a").mkdir(parents=True)
    (tmp_path / "lab" / "notes").touch()
    LabDirectory(tmp_path / "lab").give_back(keep=False)
    assert sorted(path.name for path in (tmp_path / "lab").iterdir()) == ["lab.json", "notes"]


def test_a_living_lab_is_not_disturbed(tmp_path: Path) -> None:
    living = LabDirectory(tmp_path / "lab")
    (tmp_path / "lab" / "nodes").mkdir()
    with pytest.raises(UsageError) as error:
        LabDirectory(tmp_path / "lab")
    assert error.value.code == "lab-running"
    assert (tmp_path / "lab" / "nodes").is_dir()
    living.give_back(keep=True)


@pytest.mark.parametrize("keep", [True, False])
def test_a_temporary_one_goes_unless_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: bool) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    claimed = LabDirectory(None)
    assert claimed.path.parent == tmp_path
    claimed.give_back(keep=keep)
    assert claimed.path.exists() is keep


def test_a_file_in_its_place_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as error:
        LabDirectory(tmp_path / "file")
    assert (error.value.code, bool(error.value.hint)) == ("bad-directory", True)
