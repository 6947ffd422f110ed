"""The way back without Python and without bcd: what the script does, and all that it refuses (ADR 0004)."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bcd.core
from bcd.core.links import Slot, read_link
from bcd.core.records import PendingRecord, dump, dump_pending, read_pending
from bcd.core.settle import Outcome, Situation, decide, failure_reason
from tests.core.disk import Entry, entry, snapshot, unchanged
from tests.core.faults import umask

SCRIPT = str(Path(bcd.core.__file__).with_name("rollback.sh"))
COREUTILS = [
    "cat",
    "chmod",
    "cp",
    "head",
    "ln",
    "mkdir",
    "mv",
    "printf",
    "readlink",
    "rm",
    "stat",
    "sync",
    "test",
    "touch",
    "tr",
]
"""More of them than the script needs, and nothing that is not one: no grep, no sed, no python."""
SHELLS = {os.path.realpath(path): name for name in ("bash", "dash", "sh") if (path := shutil.which(name)) is not None}

PENDING = PendingRecord(
    swap_id="0f" * 16,
    from_version="1.4.0",
    to_version="1.4.1",
    from_slot="a",
    to_slot="b",
    sequence=15,
    command_id=None,
    launched=True,
    swapped_at=1_800_000_000,
    deadline=1_800_000_120,
    boot_id="boot-1",
    swapped_boottime=5000.0,
)


class Machine:
    """Slots and records of a node that was just swapped, and nothing but coreutils on its PATH."""

    def __init__(self, root: Path, *, back_to: Slot = "a") -> None:
        self.root = root
        self.slots = root / "slots dir"
        self.records = root / "records"
        self.tools = root / "tools"
        for directory in (self.slots, self.records, self.tools):
            directory.mkdir()
        for tool in COREUTILS:
            (self.tools / tool).symlink_to(shutil.which(tool) or tool)
        for slot in "ab":
            (self.slots / f"bcd-{slot}").write_bytes(b"#!/bin/sh\n")
            (self.slots / f"bcd-{slot}").chmod(0o755)
        self.old, self.new = f"bcd-{back_to}", "bcd-b" if back_to == "a" else "bcd-a"
        self.link("previous", self.old)
        self.link("current", self.new)
        swapped_to: Slot = "b" if back_to == "a" else "a"
        self.record(PENDING._replace(from_slot=back_to, to_slot=swapped_to))

    def link(self, name: str, target: str | None) -> None:
        """Point a link somewhere, or take it away."""
        path = self.slots / name
        path.unlink(missing_ok=True)
        if target is not None:
            path.symlink_to(target)

    def record(self, record: PendingRecord) -> None:
        """Leave `upgrade.json`, as bcd writes it."""
        (self.records / "upgrade.json").write_bytes(dump_pending(record))

    def run(
        self, *more: str, shell: str = "sh", environ: dict[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run the script as a service manager does: without an environment."""
        return subprocess.run(
            [shutil.which(shell) or shell, SCRIPT, str(self.slots), str(self.records), *more],
            env=environ or {"PATH": str(self.tools)},
            capture_output=True,
            text=True,
            cwd="/",
            timeout=20,
            stdin=subprocess.DEVNULL,
        )

    def goes_back(self, *, shell: str = "sh", environ: dict[str, str] | None = None) -> None:
        """The script goes back; it changes the link and leaves the marker, and nothing else in the world."""
        before = snapshot(self.root)
        ran = self.run(shell=shell, environ=environ)
        assert (ran.returncode, ran.stdout) == (0, "")
        assert ran.stderr == f"bcd-rollback: current is {self.old} again\n"
        after = snapshot(self.root)
        assert after.pop("records/rolled-back")._replace(mode=0o644) == Entry("file", 0o644, b"")
        assert after.pop("slots dir/current") == Entry("link", 0, os.fsencode(self.old))
        before.pop("slots dir/current", None)
        before.pop("records/rolled-back", None)
        assert after == before

    def refuses(self, status: int, words: str, *more: str) -> None:
        """The script says why not, and the disk is as it was."""
        with unchanged(self.root):
            ran = self.run(*more)
        assert (ran.returncode, ran.stdout) == (status, "")
        assert words in ran.stderr
        assert ran.stderr.count("\n") == 1


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Swapped from a to b."""
    return Machine(tmp_path)


# Going back -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS.values())
@pytest.mark.parametrize("slot", ["a", "b"])
def test_it_goes_back_with_a_shell_and_coreutils_alone(tmp_path: Path, shell: str, slot: Slot) -> None:
    """To either slot, in whatever shell is `sh`."""
    Machine(tmp_path, back_to=slot).goes_back(shell=shell)


def test_it_goes_back_without_an_environment(machine: Machine) -> None:
    """`env -i` and the system's own two directories."""
    machine.goes_back(environ={"PATH": "/usr/bin:/bin"})


@pytest.mark.parametrize("mask", [0o000, 0o077], ids=oct)
def test_it_goes_back_whatever_the_umask(machine: Machine, mask: int) -> None:
    """Who may read the marker does not matter: it is only looked for."""
    with umask(mask):
        machine.goes_back()


def test_what_it_leaves_is_settled_as_failed(machine: Machine) -> None:
    """The old binary finds the record, the link and the marker, and knows that the new one did not run."""
    machine.record(PENDING._replace(launched=False))
    machine.goes_back()
    pending = read_pending(str(machine.records / "upgrade.json")).value
    assert pending is not None
    situation = Situation(
        pending=pending,
        current=read_link(str(machine.slots), "current").slot,
        confirmed_swap_id=None,
        marker=(machine.records / "rolled-back").exists(),
        seconds_left=60.0,
        old_slot_whole=lambda: True,
    )
    assert decide(situation) is Outcome.ROLLED_BACK
    assert failure_reason(pending, marker=True) == "bcd 1.4.1 did not run: it failed at every start"


def test_run_twice_it_changes_nothing_the_second_time(machine: Machine) -> None:
    """Nor the tenth (field report 08)."""
    machine.goes_back()
    for _ in range(3):
        machine.refuses(0, "current is bcd-a already")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda current: None,
        lambda current: current.symlink_to("bcd-c"),
        lambda current: current.symlink_to("/usr/bin/true"),
        lambda current: current.symlink_to("current"),
        lambda current: current.write_bytes(b"torn"),
    ],
    ids=["missing", "dangling", "elsewhere", "itself", "file"],
)
def test_it_goes_back_from_a_current_that_is_lost(machine: Machine, spoil: Callable[[Path], object]) -> None:
    """A node that starts nothing gets its old binary back."""
    machine.link("current", None)
    spoil(machine.slots / "current")
    machine.goes_back()


def test_it_goes_back_from_a_new_binary_that_is_gone_or_torn(machine: Machine) -> None:
    """Nothing of it is needed (field report 07)."""
    (machine.slots / "bcd-b").unlink()
    machine.goes_back()


@pytest.mark.parametrize(
    "plant",
    [Path.touch, lambda path: path.symlink_to("bcd-b"), lambda path: path.symlink_to("nowhere"), os.mkfifo],
    ids=["file", "link", "dangling", "fifo"],
)
def test_what_an_earlier_run_left_is_no_matter(machine: Machine, plant: Callable[[Path], object]) -> None:
    """It was cut off before its rename, with or without its marker."""
    plant(machine.slots / ".current.rollback.tmp")
    (machine.records / "rolled-back").touch()
    ran = machine.run()
    assert ran.returncode == 0
    assert sorted(os.listdir(machine.slots)) == ["bcd-a", "bcd-b", "current", "previous"]
    assert entry(machine.slots / "current") == Entry("link", 0, b"bcd-a")


# What others wrote into the record ------------------------------------------------------------------------------------

TRICKS = {
    "the other slot's name": '","from_slot":"b","x":"',
    "another state": '","state":"confirmed","x":"',
    "a glob": "*[!a]?",
    "a command": "$(touch /tmp/bcd-pwned)`touch /tmp/bcd-pwned`",
    "backslashes": "\\\\\\n\\0\\c\\",
    "nul and controls": "\0\x1b]52;c;eA==\x07\n\r",
    "quotes": '"\'"\'\\"',
    "surrogate": "\ud800",
    "long": "x" * 200_000,
    "dashes": "-n -e --",
}


@pytest.mark.parametrize("shell", SHELLS.values())
@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_a_text_in_the_record_neither_forges_nor_hides_what_is_looked_for(
    tmp_path: Path, shell: str, trick: str
) -> None:
    """Versions, the gateway's words and a failed exec's come from outside; writer and script agree on each of them."""
    machine = Machine(tmp_path)
    texts = dict.fromkeys(("swap_id", "from_version", "to_version", "command_id", "boot_id", "refused", "said"), trick)
    machine.record(PENDING._replace(**texts))  # type: ignore[arg-type]  # texts all
    machine.goes_back(shell=shell)
    machine.record(PENDING._replace(**texts, from_slot="b", to_slot="a"))  # type: ignore[arg-type]  # texts all
    machine.refuses(0, "the swap had not happened yet")
    assert not Path("/tmp/bcd-pwned").exists()


def test_unknown_fields_of_a_newer_bcd_are_no_matter(machine: Machine) -> None:
    """They are kept in the record, before or after what is looked for."""
    machine.record(PENDING._replace(extra={"a": [1, {"b": None}], "states": "swapped", "z": "x"}))
    machine.goes_back()


# Nothing to do --------------------------------------------------------------------------------------------------------

NO_RECORD: dict[str, bytes | None] = {
    "none": None,
    "empty": b"",
    "NUL bytes": b"\0" * 4096,
    "half": dump_pending(PENDING)[:20],
    "another state": dump({"format": 1, "state": "confirmed", "from_slot": "a"}),
    "a longer state": dump({"format": 1, "state": "swapped-out", "from_slot": "a"}),
    "state in another field": dump({"format": 1, "old_state": "swapped", "from_slot": "a"}),
    "state in a text": dump({"format": 1, "said": '"state":"swapped"', "from_slot": "a"}),
}


@pytest.mark.parametrize("data", NO_RECORD.values(), ids=NO_RECORD)
def test_without_a_swapped_record_there_is_nothing_to_do(machine: Machine, data: bytes | None) -> None:
    """Status 0: a service that crashes for its own reasons is none of our business."""
    (machine.records / "upgrade.json").unlink()
    if data is not None:
        (machine.records / "upgrade.json").write_bytes(data)
    with unchanged(machine.root):
        ran = machine.run()
    assert (ran.returncode, ran.stdout) == (0, "")
    assert ran.stderr.endswith("bcd-rollback: no update is pending\n")


def test_without_a_records_directory_there_is_nothing_to_do(machine: Machine) -> None:
    """A node that never updated; a directory in the record's place is none either."""
    shutil.rmtree(machine.records)
    machine.refuses(0, "no update is pending")
    (machine.records / "upgrade.json").mkdir(parents=True)
    machine.refuses(0, "no update is pending")


@pytest.mark.parametrize(("previous", "current"), [("bcd-b", "bcd-a"), ("bcd-b", "bcd-b"), ("bcd-a", "bcd-a")])
def test_a_swap_that_was_cut_off_is_not_rolled_back(machine: Machine, previous: str, current: str) -> None:
    """After the record, and after each link: the new binary never ran, so nothing is held against it (field report 11)."""
    machine.link("previous", previous)
    machine.link("current", current)
    machine.refuses(0, "current is bcd-a already" if previous == "bcd-a" else "the swap had not happened yet")


def test_a_record_without_its_slots_is_not_guessed_at(machine: Machine) -> None:
    """Torn after its state; which slot ran before is not known."""
    whole = dump_pending(PENDING)
    (machine.records / "upgrade.json").write_bytes(whole[: whole.index(b'"from_slot"')])
    machine.refuses(0, "the swap had not happened yet")


# What must not be done ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plant", [None, Path.touch, Path.mkdir, os.mkfifo], ids=["missing", "file", "dir", "fifo"])
def test_without_a_previous_link_nothing_is_done(machine: Machine, plant: Callable[[Path], object] | None) -> None:
    """There is something to go back from and nothing to go back to: status 1."""
    machine.link("previous", None)
    if plant is not None:
        plant(machine.slots / "previous")
    machine.refuses(1, "no previous slot to go back to")


@pytest.mark.parametrize(
    "target", ["bcd-c", "./bcd-a", "../slots dir/bcd-a", "/bin/sh", "bcd-a/", "bcd-a x", "bcd-?", "-n", "current"]
)
def test_a_previous_link_to_anything_but_a_slot_is_refused(machine: Machine, target: str) -> None:
    """Also where it leads to a slot's file by another spelling."""
    machine.link("previous", target)
    machine.refuses(1, "previous names no slot")


def make_fifo(path: Path) -> None:
    """Put a FIFO in a file's place."""
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        lambda old: old.write_bytes(b""),
        lambda old: old.chmod(0o644),
        lambda old: (old.unlink(), old.mkdir()),
        make_fifo,
        lambda old: (old.unlink(), old.symlink_to("nowhere")),
    ],
    ids=["missing", "empty", "not executable", "directory", "fifo", "dangling"],
)
def test_an_old_slot_that_holds_no_program_is_refused(machine: Machine, spoil: Callable[[Path], object]) -> None:
    """What runs, or at least is there, stays current (field report 04)."""
    spoil(machine.slots / "bcd-a")
    machine.refuses(1, "no program; current stays where it is")


@pytest.mark.parametrize("arguments", [[], ["/nowhere"]])
def test_without_its_arguments_it_does_nothing(machine: Machine, arguments: list[str]) -> None:
    """A mistake in a unit file is an error, and no empty path is worked on."""
    with unchanged(machine.root):
        ran = subprocess.run(
            [shutil.which("sh") or "sh", SCRIPT, *arguments],
            env={"PATH": str(machine.tools)},
            capture_output=True,
            cwd=machine.root,
        )
    assert ran.returncode != 0
    assert ran.stdout == b""


def test_a_directory_in_currents_place_is_not_entered(machine: Machine) -> None:
    """The link is not put into it: the rename fails, and that is an error."""
    machine.link("current", None)
    (machine.slots / "current").mkdir()
    (machine.slots / "current" / "kept").touch()
    assert machine.run().returncode != 0
    assert os.listdir(machine.slots / "current") == ["kept"]


@pytest.mark.parametrize("missing", ["ln", "mv"])
def test_a_step_that_fails_leaves_current_where_it_was(machine: Machine, missing: str) -> None:
    """Each step after the marker; run again when the step works, it goes back."""
    (machine.tools / missing).rename(machine.root / missing)
    assert machine.run().returncode not in {0, 1}
    assert entry(machine.slots / "current") == Entry("link", 0, b"bcd-b")
    (machine.root / missing).rename(machine.tools / missing)
    assert machine.run().returncode == 0
    assert sorted(os.listdir(machine.slots)) == ["bcd-a", "bcd-b", "current", "previous"]
    assert entry(machine.slots / "current") == Entry("link", 0, b"bcd-a")


def test_the_marker_is_there_before_the_link_moves(machine: Machine) -> None:
    """Cut off between the two, the old binary must not take the new one for never started."""
    (machine.tools / "mv").unlink()
    (machine.tools / "mv").write_text(f"#!/bin/sh\n[ -e '{machine.records}/rolled-back' ] && exit 7\nexit 9\n")
    (machine.tools / "mv").chmod(0o755)
    assert machine.run().returncode == 7


@pytest.mark.parametrize("knows_names", [True, False])
def test_the_links_and_the_marker_are_synced(machine: Machine, knows_names: bool) -> None:
    """The marker before the link moves, then both directories; everything where `sync` takes no names."""
    noted = machine.root / "noted"
    (machine.tools / "sync").unlink()
    (machine.tools / "sync").write_text(
        f"#!/bin/sh\n[ $# = 0 ] || {'true' if knows_names else 'exit 1'}\n"
        f"echo \"$(readlink '{machine.slots}/current')\" \"$@\" >>'{noted}'\n"
    )
    (machine.tools / "sync").chmod(0o755)
    assert machine.run().returncode == 0
    marker = f" -- {machine.records}" if knows_names else ""
    both = f" -- {machine.slots} {machine.records}" if knows_names else ""
    assert noted.read_text() == f"bcd-b{marker}\nbcd-a{both}\n"


# With a unit ----------------------------------------------------------------------------------------------------------


def systemctl(machine: Machine, answers: dict[str, str], status: int = 0) -> Path:
    """A systemctl that answers so, and notes what it was asked."""
    asked = machine.root / "asked"
    asked.touch()
    cases = "".join(f"--property={name}) echo {value};;\n" for name, value in answers.items())
    (machine.tools / "systemctl").write_text(
        f"#!/bin/sh\necho \"$*\" >>'{asked}'\nfor one; do case $one in\n{cases}esac; done\nexit {status}\n"
    )
    (machine.tools / "systemctl").chmod(0o755)
    return asked


def test_at_its_start_limit_the_unit_is_started_anew(machine: Machine) -> None:
    """The link first, then `reset-failed`, then the start."""
    asked = systemctl(machine, {"SubState": "failed", "Restart": "on-failure"})
    assert machine.run("bcd.service").returncode == 0
    assert entry(machine.slots / "current") == Entry("link", 0, b"bcd-a")
    lines = asked.read_text().splitlines()
    assert [line.partition(" ")[0] for line in lines[:2]] == ["show", "show"]
    assert lines[2:] == ["reset-failed -- bcd.service", "--no-block start -- bcd.service"]


@pytest.mark.parametrize(
    ("state", "restart"),
    [
        ("auto-restart", "always"),
        ("failed-before-auto-restart", "always"),
        ("running", "on-failure"),
        ("dead", "on-failure"),
        ("failed", "no"),
        ("", ""),
        ("failed\nrunning", "always"),
    ],
)
def test_one_crash_is_no_crash_loop(machine: Machine, state: str, restart: str) -> None:
    """Only a unit that will not be restarted any more has looped; and one that is never restarted has not (report 08)."""
    state = f"'{state}'"
    systemctl(machine, {"SubState": state, "Restart": restart})
    before = snapshot(machine.root)
    ran = machine.run("bcd.service")
    after = snapshot(machine.root)
    assert (ran.returncode, "no crash loop" in ran.stderr) == (0, True)
    assert {name: one for name, one in after.items() if name != "asked"} == {
        name: one for name, one in before.items() if name != "asked"
    }
    assert all(line.startswith("show ") for line in (machine.root / "asked").read_text().splitlines())


def test_a_systemd_that_does_not_answer_is_an_error(machine: Machine) -> None:
    """What is not known is not acted on."""
    systemctl(machine, {}, status=1)
    before = snapshot(machine.slots), snapshot(machine.records)
    assert machine.run("bcd.service").returncode == 1
    assert (snapshot(machine.slots), snapshot(machine.records)) == before


def test_a_unit_is_not_started_where_nothing_was_rolled_back(machine: Machine) -> None:
    """Without a pending update, systemd is not even asked."""
    asked = systemctl(machine, {"SubState": "failed", "Restart": "always"})
    (machine.records / "upgrade.json").unlink()
    machine.refuses(0, "no update is pending", "bcd.service")
    assert asked.read_text() == ""


# The script itself ----------------------------------------------------------------------------------------------------


def test_the_script_is_executable_and_says_what_runs_it() -> None:
    """A unit may start it by its name."""
    found: Any = entry(SCRIPT)
    assert found.mode & 0o111 == 0o111
    assert found.content.startswith(b"#!/bin/sh\n")


def test_the_writer_and_the_script_agree_on_the_text() -> None:
    """What the script looks for stands in the script and in what bcd writes."""
    script = Path(SCRIPT).read_text()
    written = dump_pending(PENDING).decode()
    assert '\'"state":"swapped"\'' in script
    assert '"state":"swapped"' in written
    assert '\'"from_slot":"\'"${slot#bcd-}"\'"\'' in script
    assert '"from_slot":"a"' in written
    assert json.loads(written)["state"] == "swapped"
