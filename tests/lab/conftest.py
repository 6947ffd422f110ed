"""One world for all tests of the lab: its nodes do not know of each other."""

from collections.abc import Iterator

import pytest

from bcd.lab.world import World


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(tmp_path_factory.mktemp("lab")) as made:
        yield made
