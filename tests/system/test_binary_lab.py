"""The real binary in the lab's hands: accepted, swapped in by exec, confirmed; and swapped back when it crashes."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bcd.lab.labnode import LabNode
from bcd.lab.releases import Recipe
from bcd.lab.world import World
from tests.system.binaries import EXITS_AT_ONCE, variant

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(tmp_path_factory.mktemp("lab")) as made:
        yield made


def started(world: World, name: str, binary: Path) -> LabNode:
    """A node on which the real binary was installed as 1.4.0."""
    node = world.node(name)
    node.root.install(variant(binary.read_bytes(), version="1.4.0", sequence=14))
    node.supervisor.start()
    node.wait_welcome("1.4.0")
    return node


def agent(node: LabNode) -> tuple[int, bytes, list[str]]:
    """The agent's pid, its environment as it was started with, and what its descriptors are."""
    pid = node.supervisor.pid
    assert pid is not None
    descriptors = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    return pid, Path(f"/proc/{pid}/environ").read_bytes(), descriptors


def test_a_release_is_accepted_and_becomes_the_process_with_its_environment(world: World, binary: Path) -> None:
    """The same pid, the same environment to the byte, no descriptor of the old file left; nothing in its TMPDIR."""
    node = started(world, "good", binary)
    pid, environ, _ = agent(node)
    body = variant(binary.read_bytes(), version="1.4.1", sequence=15)
    release = world.publisher.publish("1.4.1", 15, shelf="good", recipe=Recipe(file=body))
    node.wait_section(node.push(release), "READY")
    assert node.root.update_record()["confirmed"]["version"] == "1.4.1"
    successor, its_environ, descriptors = agent(node)
    assert successor == pid
    assert sorted(its_environ.split(b"\0")) == sorted(environ.split(b"\0"))
    assert [name for name in descriptors if "bcd-a" in name or "memfd" in name] == []
    assert list(node.root.temporary.iterdir()) == []


def test_a_release_that_crashes_is_swapped_back(world: World, binary: Path) -> None:
    """At the start limit, by the script, which needs nothing of it."""
    node = started(world, "crash", binary)
    body = variant(binary.read_bytes(), version="1.4.1", sequence=15, first=EXITS_AT_ONCE)
    release = world.publisher.publish("1.4.1", 15, shelf="crash", recipe=Recipe(file=body))
    generation = node.push(release)
    node.wait_root(lambda root: root.link("current") == "bcd-b", "the swap", lambda root: root.link("current"))
    swapped = time.monotonic()
    status = node.wait_section(generation, "FAILED")
    print(f"swapped to welcomed again: {time.monotonic() - swapped:.1f} s")
    assert "did not run" in status["message"]
    assert node.root.link("current") == "bcd-a"
    assert list(node.root.failed()) == ["1.4.1"]


def test_an_agent_goes_on_loading_its_own_code_after_its_name_was_given_away(world: World, binary: Path) -> None:
    """By name it would read the new file's index with the old file's places, at the worst of times."""
    node = started(world, "replaced", binary)
    node.root.install(b"#!/bin/sh\nexit 1\n")
    body = variant(binary.read_bytes(), version="1.4.1", sequence=15)
    release = world.publisher.publish("1.4.1", 15, shelf="replaced", recipe=Recipe(file=body))
    node.wait_section(node.push(release), "READY")
