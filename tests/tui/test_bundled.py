"""Another machine's bundle in the console: said on top, its own time, nothing of this machine, nothing hostile believed."""

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from bcd.core.errors import UsageError
from bcd.core.statusjson import status_json
from bcd.doctor.open_bundle import open_bundle
from bcd.doctor.report.machine import report_json
from bcd.tui.app import ConsoleApp
from bcd.tui.bundled import Bundled, no_judging
from bcd.tui.view import View
from tests.tui import states
from tests.tui.consoles import WELL, WIDE, flat

SLOT = {"version": "1.4.0", "sequence": 14, "sha256": "3f" * 32, "size": 9, "written_at": int(states.NOW) - 7200}
FAILED = {"version": "1.4.1", "sequence": 15, "reason": "not welcomed", "at": 1}


def members(**more: bytes) -> dict[str, bytes]:
    """What a bundle of a node holds."""
    status = states.rolled_back().status
    assert status is not None
    documents: dict[str, object] = {
        "contents.json": {"members": [], "left_out": []},
        "report.json": report_json(WELL),
        "status.json": status_json(status, {"phase": "idle"}),
        "environment.json": {"uname": "Linux node-\x1b[2J9 6.1"},
        "records/slots.json": {"format": 1, "a": None, "b": SLOT},
        "records/update.json": {"format": 1, "sequence": 14, "failed": [FAILED]},
    }
    return {**{name: json.dumps(value).encode() for name, value in documents.items()}, **more}


def packed(path: Path, files: dict[str, bytes], *first: tarfile.TarInfo) -> str:
    """An archive of them."""
    with tarfile.open(path, "w:gz") as archive:
        for odd in first:
            archive.addfile(odd, io.BytesIO(b"\0" * odd.size))
        for name, data in files.items():
            info = tarfile.TarInfo(f"bcd-doctor/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return str(path)


async def test_it_says_on_top_whose_it_is_and_tells_the_bundles_time(tmp_path: Path) -> None:
    bundled = Bundled("b.tar.gz", open_bundle(packed(tmp_path / "b.tar.gz", members())))
    app = ConsoleApp(
        read=bundled.read, read_events=bundled.read_events, examine=bundled.examine, clear=bundled.clear,
        judge=no_judging, journal=bundled.journal, view=View(screen="overview"), signals=False, evidence=bundled.look,
    )  # fmt: skip
    async with app.run_test(size=WIDE) as pilot:
        for place in ConsoleApp.MODES:
            await app.switch_mode(place)
            await pilot.pause()
            assert "BUNDLE of node-\\x1b[2J9, 20" in flat(app)
        await app.switch_mode("overview")
        await pilot.pause()
        assert "written 2 hours ago" in flat(app)
        await pilot.press("e")
        await pilot.pause()
        assert "not in the bundle" in flat(app)
        await pilot.press("escape")
        await app.switch_mode("failed")
        await pilot.pause()
        assert app.screen.check_action("clear", ()) is None


@pytest.mark.parametrize("name", ["status.json", "environment.json", "config.json", "records/update.json", "files.txt"])
@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b'{"pending": 1, "links": [], "paths": 3, "uname": {}}', b"[" * 90_000]
)
def test_a_member_that_makes_no_sense_is_no_traceback(tmp_path: Path, name: str, data: bytes) -> None:
    bundled = Bundled("b", open_bundle(packed(tmp_path / "b.tar.gz", {**members(), name: data})))
    assert bundled.read().origin.startswith("BUNDLE of ")


def odd(kind: bytes, name: str, size: int = 0) -> tarfile.TarInfo:
    """A member that is no plain file, or too large a one."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, "/etc/passwd"
    return info


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
@pytest.mark.parametrize("name", ["bcd-doctor/status.json", "../../x", "/etc/x"])
def test_links_devices_and_paths_are_passed_over(tmp_path: Path, kind: bytes, name: str) -> None:
    opened = open_bundle(packed(tmp_path / "b.tar.gz", members(), odd(kind, name)))
    assert opened.files["status.json"] == members()["status.json"]
    assert os.listdir(tmp_path) == ["b.tar.gz"]


def test_a_name_of_a_hundred_megabytes_a_torn_file_and_a_fifo_are_refused(tmp_path: Path) -> None:
    huge = packed(tmp_path / "huge.tar.gz", members(), odd(tarfile.GNUTYPE_LONGNAME, "x", 100 * 2**20))
    whole = Path(packed(tmp_path / "whole.tar.gz", members())).read_bytes()
    (tmp_path / "torn.tar.gz").write_bytes(whole[: len(whole) // 2])
    os.mkfifo(tmp_path / "fifo")
    for path in (huge, str(tmp_path / "torn.tar.gz"), str(tmp_path / "fifo")):
        with pytest.raises(UsageError) as refused:
            open_bundle(path)
        assert refused.value.code == "unreadable-bundle"
