"""Whose things may choose what starts: under a helper never those of the node's user, whoever looks."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bcd.doctor.checks.slot_places import directories
from bcd.doctor.finding import Level
from bcd.doctor.probes import Probes

NODE, OPERATOR = 61_234, 1_000


@pytest.mark.parametrize(
    ("helper", "euid", "owners"),
    [
        ("", NODE, (0, NODE)),
        ('[helper]\nnode_user = "61234"\n', NODE, (0,)),
        ('[helper]\nnode_user = "61234"\n', OPERATOR, (0, OPERATOR)),
        ('[helper]\nnode_user = "61234"\n', 0, (0, 0)),
        ('[helper]\nnode_user = "nobody of that name"\n', NODE, (0, NODE)),
    ],
    ids=["no helper", "the node's user looks", "an operator looks", "root looks", "no such user"],
)
def test_the_node_is_no_owner_under_its_helper(tmp_path: Path, helper: str, euid: int, owners: tuple[int, ...]) -> None:
    config = tmp_path / "config.toml"
    config.write_text(helper)
    assert Probes(config_path=str(config), euid=euid).owners == owners


def test_a_slots_directory_of_the_nodes_is_found_by_the_node_itself(tmp_path: Path) -> None:
    uid = os.geteuid() or NODE
    slots = tmp_path / "lib"
    slots.mkdir()
    if os.geteuid() == 0:
        os.chown(slots, uid, uid)
    config = tmp_path / "config.toml"
    config.write_text(
        f'[helper]\nnode_user = "{uid}"\n[update]\nslots_dir = "{slots}"\nentrypoint = "{tmp_path}/bcd"\n'
    )
    said = directories(Probes(config_path=str(config), euid=uid, top=str(slots)))
    assert isinstance(said, Iterator)
    assert [(result.level, str(slots) in result.message) for result in said] == [(Level.FAIL, True)]
