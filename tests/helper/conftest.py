"""One helper for all attacks of a process; each finds the disk as it was."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helper.world import World, roots_directory, why_not

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def running_world() -> Iterator[World]:
    """A node that is split, its helper running."""
    with roots_directory() as root:
        world = World(root)
        world.start()
        try:
            yield world
        finally:
            if world.helper.poll() is None:
                assert world.stop() == 0


@pytest.fixture
def world() -> Iterator[World]:
    """The same for one test alone; its helper is not started."""
    with roots_directory() as root:
        made = World(root)
        try:
            yield made
        finally:
            made.end()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what wants root and a second user, with the reason."""
    reason = why_not()
    for item in items:
        fixtures: tuple[str, ...] = getattr(item, "fixturenames", ())
        if reason is not None and item.path.parent == HERE and {"world", "running_world", "roots"} & set(fixtures):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def roots() -> Iterator[Path]:
    """A directory of root's alone."""
    with roots_directory() as root:
        yield root
