"""Scenarios of the tour end as the rules say, and what looks after them sees it when they do not."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bcd.core.steps import STEPS
from bcd.lab import verify
from bcd.lab.labnode import Unmet
from bcd.lab.releases import Release
from bcd.lab.root import Root
from bcd.lab.scenario import Scenario, Stage
from bcd.lab.scenarios import GROUPS, SPLIT_GROUPS, crash
from bcd.lab.world import World

SCENARIOS = {scenario.name: scenario for group in GROUPS for scenario in group.scenarios}
QUICK = ("by-section", "by-command", "signed-by-one", "below-floor", "exits-at-once", "not-a-program")
CUTS = tuple(scenario.name for scenario in crash.SCENARIOS if scenario.name.startswith("cut-"))


def play(world: World, scenario: Scenario) -> Stage:
    node = world.node(scenario.name, pins=scenario.pins, role=scenario.role)
    stage = Stage(world=world, node=node)
    try:
        scenario.play(stage)
    except Unmet as unmet:
        pytest.fail(f"{unmet}\n" + "\n".join(node.root.log_tail(30)))
    finally:
        node.stop()
    return stage


@pytest.mark.parametrize("name", [*QUICK, *CUTS])
def test_it_ends_as_the_rules_say(world: World, name: str) -> None:
    assert play(world, SCENARIOS[name]).mismatches == []


def test_power_fails_at_every_step_of_an_update() -> None:
    cut = {step for steps in crash.CUTS for step in steps} | set(crash.ROLLBACK_CUTS)
    # At `settled` there is nothing left that could go wrong: it is the end of each of the others.
    assert cut == set(STEPS) - {"settled"}


def test_names_are_unique_and_rows_fit_eighty_columns() -> None:
    scenarios = [scenario for group in SPLIT_GROUPS for scenario in group.scenarios]
    assert len({scenario.name for scenario in scenarios}) == len(scenarios)
    assert [scenario.title for scenario in scenarios if len(scenario.title) > 29] == []
    assert [scenario.proves for scenario in scenarios if not scenario.proves.endswith(".")] == []


# -- the checks have teeth ------------------------------------------------------------------------------------------


def relink(root: Root) -> None:
    (root.slots / "current").unlink()
    (root.slots / "current").symlink_to("bcd-a")


def spoil_slot(root: Root) -> None:
    with (root.slots / "bcd-b").open("ab") as file:
        file.write(b"more")


def forget_slot(root: Root) -> None:
    (root.slots / "slots.json").write_text('{"format":1,"a":null,"b":null}')


def replace_entrypoint(root: Root) -> None:
    root.install(b"another")


def blame(root: Root) -> None:
    edit(root, failed=[{"version": "1.4.1", "sequence": 15, "reason": "bcd 1.4.1 is to blame", "at": 1}])


def confirm_another(root: Root) -> None:
    edit(root, confirmed={"version": "1.4.0", "sequence": 14, "at": 1, "swap_id": "00"})


def leave_marker(root: Root) -> None:
    (root.records / "rolled-back").touch()


def edit(root: Root, **changes: object) -> None:
    path = root.records / "update.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | changes))


@pytest.fixture(scope="module")
def confirmed(world: World) -> Iterator[tuple[Stage, Release]]:
    """A node on which 1.4.1 was just confirmed."""
    stage = Stage(world=world, node=world.node("confirmed"))
    stage.start()
    release = stage.publish("1.4.1")
    stage.node.push(release)
    verify.confirmed(stage, release, slot="bcd-b")
    assert stage.mismatches == []
    yield stage, release
    stage.node.stop()


@pytest.fixture
def restored(confirmed: tuple[Stage, Release], tmp_path: Path) -> Iterator[None]:
    """Puts its files back as they were."""
    root = confirmed[0].node.root
    files = (root.entrypoint.parent, root.slots, root.records)
    for directory in files:
        shutil.copytree(directory, tmp_path / directory.name, symlinks=True)
    yield
    for directory in files:
        shutil.rmtree(directory)
        shutil.copytree(tmp_path / directory.name, directory, symlinks=True)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    "tamper", [relink, spoil_slot, forget_slot, replace_entrypoint, blame, confirm_another, leave_marker]
)
def test_a_confirmed_update_that_is_not_whole_is_seen(
    confirmed: tuple[Stage, Release], tamper: Callable[[Root], None]
) -> None:
    stage, release = Stage(world=confirmed[0].world, node=confirmed[0].node), confirmed[1]
    verify.confirmed(stage, release, slot="bcd-b")
    assert stage.mismatches == []
    tamper(stage.node.root)
    try:
        verify.confirmed(stage, release, slot="bcd-b")
    except Unmet:
        return
    assert stage.mismatches


def test_an_answer_of_another_kind_is_seen(world: World) -> None:
    node = world.node("answer-of-another-kind")
    stage = Stage(world=world, node=node)
    stage.start()
    command = node.command(stage.publish("1.3.9"))
    verify.answered_once(stage, command, "SUCCEEDED")
    node.stop()
    assert [mismatch.what for mismatch in stage.mismatches] == ["the command's end"]
