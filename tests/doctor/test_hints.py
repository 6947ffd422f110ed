"""Hints are pasted into a shell: whatever a path holds, it comes out as the one word that it is."""

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bcd.core import adopt, space
from bcd.core.entrypoint import inspect_entrypoint
from bcd.core.errors import HostError, Refusal
from bcd.core.layout import Layout
from bcd.doctor.checks import CHECKS
from bcd.doctor.finding import Finding
from bcd.doctor.run import run_checks
from bcd.doctor.selftest.faults import FAULTS
from bcd.doctor.selftest.root import Root

ODD = """it's a "node" $(touch pwned); `id`"""


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of a name that no shell may read, where the self-test's nodes are made."""
    made = tmp_path / ODD
    made.mkdir()
    monkeypatch.setenv("TMPDIR", str(made))
    monkeypatch.setattr("tempfile.tempdir", str(made))
    return made


def unquoted(hint: str, odd: Path) -> bool:
    """Whether a path below `odd` stands in a hint as it is: quoted, its own quote marks are not beside their letters."""
    return str(odd) in hint


def findings() -> Iterator[tuple[str, Finding]]:
    """All that doctor says about each state of the self-test, looked at by the check that it is for."""
    for fault in FAULTS:
        if (fault.needs_root and os.geteuid() != 0) or fault.timeout_seconds < 5:
            continue
        with Root() as root:
            fault.plant(root)
            checks = [check for check in CHECKS if check.id == fault.check]
            for finding in run_checks(checks, root.probes(), timeout_seconds=10).findings:
                yield f"{fault.check}: {fault.name}", finding


def test_every_path_in_every_hint_of_the_doctor_is_one_word(odd: Path) -> None:
    """All states of the self-test, on a node whose every path has blanks, quotes and a command in it."""
    seen, wrong = 0, []
    for state, finding in findings():
        seen += "$(touch pwned)" in finding.hint
        if unquoted(finding.hint, odd):
            wrong.append(f"{state}: {finding.hint}")
    assert wrong == []
    assert seen > 50  # or the paths did not come into it


def layout(odd: Path) -> Layout:
    """A node below `odd`."""
    return Layout(
        slots_dir=str(odd / "lib"),
        entrypoint=str(odd / "bcd"),
        records_dir=str(odd / "var" / "update"),
        data_dir=str(odd / "var"),
    )


def strange(odd: Path) -> None:
    (odd / "bcd").write_bytes(b"#!/bin/sh\n")
    (odd / "bcd").chmod(0o777)


@pytest.mark.parametrize("plant", [strange, lambda odd: (odd / "bcd").symlink_to("elsewhere")], ids=["modes", "link"])
def test_what_mends_an_entrypoint_is_a_command_of_whole_words(odd: Path, plant: Callable[[Path], None]) -> None:
    """As it is told to the gateway and in the log."""
    plant(odd)
    with pytest.raises(Refusal) as caught:
        inspect_entrypoint(layout(odd), as_root=True)
    assert not unquoted(caught.value.hint, odd)
    assert shlex.quote(str(odd / "bcd")) in caught.value.hint


@pytest.mark.parametrize("flag", [os.ST_RDONLY, os.ST_NOEXEC], ids=["read-only", "noexec"])
def test_what_mends_a_mount_is_a_command_of_whole_words(odd: Path, monkeypatch: pytest.MonkeyPatch, flag: int) -> None:
    """The name of a USB stick's mount is its label, which anybody may choose."""
    monkeypatch.setattr(space, "mount_of", lambda _path: odd)
    flagged = os.statvfs_result((*os.statvfs("/")[:8], flag, 255))
    with pytest.raises(HostError) as caught:
        space.refuse_unwritable_mount(odd, executable=True, statvfs=lambda _path: flagged)
    assert not unquoted(caught.value.hint, odd)
    assert f"remount,{'rw' if flag == os.ST_RDONLY else 'exec'} {shlex.quote(str(odd))})" in caught.value.hint


def test_what_mends_current_is_a_command_of_whole_words(odd: Path) -> None:
    """A link to something that is not ours stands in its place."""
    (odd / "lib").mkdir()
    (odd / "lib" / "current").symlink_to("elsewhere")
    with pytest.raises(HostError) as caught:
        adopt._current_slot(layout(odd))
    assert not unquoted(caught.value.hint, odd)
    assert shlex.quote(str(odd / "lib" / "current")) in caught.value.hint
