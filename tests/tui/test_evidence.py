"""The evidence key: for each value the file behind it, read again, said so that nobody takes one thing for another."""

import hashlib
from pathlib import Path

import pytest

from bcd.tui.evidence import evidence_of, look
from tests.commands.running import acting_on_a_terminal
from tests.tui import states
from tests.tui.consoles import NARROW, World, flat, lines_of, opened, text_of


def test_what_is_at_a_path_is_its_digest_its_target_or_why_it_cannot_be_told(tmp_path: Path) -> None:
    file, link = tmp_path / "slots.json", tmp_path / "current"
    file.write_bytes(b"{}")
    link.symlink_to("bcd-b")
    (when, digest), (_, target), missing = look(str(file)), look(str(link)), look(str(tmp_path / "gone"))
    assert digest == f"sha256 {hashlib.sha256(b'{}').hexdigest()[:16]}"
    assert when
    assert target == "→ bcd-b"
    assert missing == ("", "No such file or directory")


def test_each_value_of_the_overview_has_a_file_and_a_rule() -> None:
    rows = evidence_of(states.pending())
    names = ["version", "current", "entrypoint", "floor", "pins", "deadline", "agent", "failed 1.4.1"]
    assert [row.name for row in rows] == names
    assert all(row.path.startswith("/") and row.rule and row.value for row in rows)
    assert "agent" not in [row.name for row in evidence_of(states.agent_down())]


@pytest.mark.parametrize("size", [NARROW, (120, 36)], ids=["80x24", "120x36"])
async def test_no_column_of_the_evidence_is_cut_off(size: tuple[int, int]) -> None:
    async with opened(World(states.pending()), size=size) as (app, pilot):
        await pilot.press("e")
        await pilot.pause()
        heads = next(line for line in lines_of(app) if "changed" in line and "file" in line)
        assert heads.split() == ["│", "value", "is", "file", "changed", "│"]
        assert "upgrade.json" in flat(app)


def test_of_what_is_too_large_to_hash_at_once_the_size_is_said_and_no_digest_of_a_part(tmp_path: Path) -> None:
    program = tmp_path / "bcd"
    program.write_bytes(b"x" * (5 * 2**20))
    assert look(str(program))[1] == "5242880 bytes"
    assert "sha256" not in look("/proc/self/stat")[1]


async def test_no_control_of_a_links_target_reaches_the_terminal() -> None:
    """The attack: whoever may point a link names it so that the one who looks loses the clipboard, or reads a forgery."""
    evil = "→ /opt/\x1b]52;c;eA==\x07\u202eevil\nforged"
    async with opened(World(states.changed(states.at_rest(), entrypoint_leads=evil))) as (app, pilot):
        for key in ("e", "down", "down", "down"):
            await pilot.press(key)
            await pilot.pause()
            assert acting_on_a_terminal(text_of(app)) == []
            assert not any(line.strip("│ ").startswith("forged") for line in lines_of(app))


async def test_the_row_under_the_cursor_stands_whole_below() -> None:
    async with opened(World(states.at_rest())) as (app, pilot):
        await pilot.press("e", "down")
        await pilot.pause()
        assert "current: bcd-b /usr/local/lib/bcd/current" in flat(app)
        assert "sha256 No such file" not in flat(app)
