"""What `bcd update` says on a plain stream, state by state."""

import re

import pytest

from bcd.core.build import this_build
from tests.commands.node_dir import PINS, REASON, Node, failed, slot_entry
from tests.commands.running import NOBODY, Runner

VERSION_LINE = "version 1.4.0, release floor 14, 2 release pins (threshold 2)"
SLOTS_LINE = "slots: current b (1.4.0), other a (1.3.2)"
FAILED_LINE = f"failed: 1.4.1 ({REASON})"


def lines(run: Runner, node: Node, status: int = 0) -> list[str]:
    done = run("update", "--config", str(node.config))
    assert (done.status, done.stderr) == (status, "")
    return done.stdout.splitlines()


def test_a_node_where_one_version_failed_is_three_lines(run: Runner, node: Node) -> None:
    """The product's own example, byte for byte."""
    done = run("update", "--config", str(node.config))
    assert done == (
        0,
        (
            "version 1.4.0, release floor 14, 2 release pins (threshold 2)\n"
            "slots: current b (1.4.0), other a (1.3.2)\n"
            "failed: 1.4.1 (bcd 1.4.1 was not welcomed by a gateway before its deadline)\n"
        ),
        "",
    )


def test_reading_the_state_changes_nothing_on_disk(run: Runner, node: Node) -> None:
    before = node.snapshot()
    lines(run, node)
    run("update", "--json", "--config", str(node.config))
    assert node.snapshot() == before


def test_without_failures_it_is_two_lines(run: Runner, node: Node) -> None:
    node.write_update([])
    assert lines(run, node) == [VERSION_LINE, SLOTS_LINE]


def test_several_failed_versions_are_a_line_each_oldest_first(run: Runner, node: Node) -> None:
    node.write_update([failed("1.4.1"), failed("1.4.2", "it exited at once"), failed("1.5.0-rc.1", "no gateway")])
    assert lines(run, node)[2:] == [
        FAILED_LINE,
        "failed: 1.4.2 (it exited at once)",
        "failed: 1.5.0-rc.1 (no gateway)",
    ]


def test_one_pin_is_singular(run: Runner, node: Node) -> None:
    node.configure(pins=PINS[:1], threshold=1)
    assert lines(run, node)[0] == "version 1.4.0, release floor 14, 1 release pin (threshold 1)"


def test_without_pins_it_says_that_updates_are_off(run: Runner, node: Node) -> None:
    node.configure(pins=())
    assert lines(run, node)[0] == "version 1.4.0, release floor 14, no release pins (updates are off)"


def test_the_configured_floor_counts_where_it_is_higher(run: Runner, node: Node) -> None:
    node.configure(more="release_sequence = 20\n")
    assert lines(run, node)[0] == "version 1.4.0, release floor 20, 2 release pins (threshold 2)"


def test_a_node_before_its_first_update_runs_this_build(run: Runner, node: Node) -> None:
    node.unadopted()
    assert lines(run, node) == [
        f"version {this_build().version}, release floor 0, 2 release pins (threshold 2)",
        "slots: not in use yet (the first update adopts the entrypoint)",
    ]


def test_an_adopted_node_has_an_empty_other_slot(run: Runner, node: Node) -> None:
    node.write_slots({"a": None, "b": slot_entry("1.4.0", 0)})
    assert lines(run, node)[1] == "slots: current b (1.4.0), other a (empty)"


def test_a_pending_update_counts_down(run: Runner, node: Node) -> None:
    """What runs is the pending release; the floor is still the confirmed one's."""
    node.write_pending(seconds_left=87.5)
    version, slots, pending, _ = lines(run, node)
    assert version == "version 1.4.2, release floor 14, 2 release pins (threshold 2)"
    assert slots == "slots: current a (1.4.2), other b (1.4.0)"
    found = re.fullmatch(r"pending: 1\.4\.2 in slot a, (\d+) s left to be welcomed", pending)
    assert found is not None
    assert 60 < int(found[1]) <= 87


def test_a_pending_update_past_its_deadline_is_overdue(run: Runner, node: Node) -> None:
    node.write_pending(seconds_left=-30)
    pending = lines(run, node)[2]
    found = re.fullmatch(r"pending: 1\.4\.2 in slot a, overdue by (\d+) s, not yet rolled back", pending)
    assert found is not None
    assert 30 <= int(found[1]) < 60


def test_after_a_reboot_the_wall_clock_decides(run: Runner, node: Node) -> None:
    """The boot clock of another boot means nothing."""
    node.write_pending(seconds_left=60, boot_id="another-boot", swapped_boottime=1e9)
    found = re.fullmatch(r"pending: 1\.4\.2 in slot a, (\d+) s left to be welcomed", lines(run, node)[2])
    assert found is not None
    assert 30 < int(found[1]) <= 60


def test_without_its_configuration_the_defaults_are_in_force_and_that_is_said(run: Runner, node: Node) -> None:
    """A misspelt --config must not pass for an answer about the node."""
    node.config.rename(node.home / "elsewhere.toml")
    done = run("update", "--config", str(node.config))
    assert done.status == 0
    assert "no release pins (updates are off)" in done.stdout
    assert done.stderr == f"bcd: {node.config} is not there; the defaults are in force\n"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"\0" * 40, "it holds nothing but NUL bytes"),
        (b'{"format": 1, "sequ', "it does not parse: "),
        (b"[]", "it is no JSON object"),
        (b'{"sequence": "14"}', "it does not parse: sequence is no integer"),
        (b"\xff\xfe" * 40, "it does not parse: "),
        (b" " * 2_000_000, "it is larger than any record"),
    ],
    ids=["empty", "NUL", "torn", "list", "mistyped", "binary", "huge"],
)
def test_a_broken_record_is_said_and_the_floor_is_what_is_known_at_least(
    content: bytes, why: str, run: Runner, node: Node
) -> None:
    """Status 1; the rest is still shown, and nothing is moved by looking."""
    node.update_json.write_bytes(content)
    before = node.snapshot()
    version, slots, broken = lines(run, node, status=1)
    assert version == "version 1.4.0, release floor at least 14, 2 release pins (threshold 2)"
    assert slots == SLOTS_LINE
    assert broken.startswith(f"corrupt: {node.update_json} ({why}")
    assert node.snapshot() == before


def test_a_broken_pending_record_is_said_and_nothing_is_pending(run: Runner, node: Node) -> None:
    node.pending_json.write_text("{")
    said = lines(run, node, status=1)
    assert said[:3] == [VERSION_LINE, SLOTS_LINE, FAILED_LINE]
    assert said[3].startswith(f"corrupt: {node.pending_json} (")


def test_broken_slot_records_leave_the_versions_unknown(run: Runner, node: Node) -> None:
    node.slots_json.write_text("{")
    said = lines(run, node, status=1)
    assert said[1] == "slots: current b (unknown), other a (unknown)"
    assert said[-1].startswith(f"corrupt: {node.slots_json} (")


def test_a_current_that_names_no_slot_is_not_well(run: Runner, node: Node) -> None:
    (node.slots / "current").unlink()
    (node.slots / "current").symlink_to("/usr/bin/true")
    assert lines(run, node, status=1)[1] == f"slots: {node.slots}/current names no slot"


def test_a_record_that_may_not_be_read_is_unknown_and_not_none(run: Runner, node: Node) -> None:
    """Status 4: this user could not look (field report 38)."""
    node.forbid(node.update_json)
    done = run("update", "--config", str(node.config), user=NOBODY)
    assert (done.status, done.stderr) == (4, "")
    assert done.stdout.splitlines() == [
        "version 1.4.0, release floor at least 14, 2 release pins (threshold 2)",
        SLOTS_LINE,
        f"unreadable: {node.update_json} (this user may not read it)",
    ]


def test_slots_that_may_not_be_looked_at_are_not_said_to_be_out_of_use(run: Runner, node: Node) -> None:
    node.forbid(node.slots)
    done = run("update", "--config", str(node.config), user=NOBODY)
    assert done.status == 4
    assert "slots: could not be read" in done.stdout.splitlines()
    assert "not in use" not in done.stdout


def test_a_configuration_that_may_not_be_read_ends_with_4(run: Runner, node: Node) -> None:
    node.forbid(node.config)
    done = run("update", "--config", str(node.config), user=NOBODY)
    assert (done.status, done.code, done.stdout) == (4, "unreadable-config", "")


def test_what_any_user_may_read_any_user_is_told(run: Runner, node: Node) -> None:
    done = run("update", "--config", str(node.config), user=NOBODY)
    assert done == (0, f"{VERSION_LINE}\n{SLOTS_LINE}\n{FAILED_LINE}\n", "")
