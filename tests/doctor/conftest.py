"""A healthy node for each test that asks for one."""

from collections.abc import Iterator

import pytest

from bcd.doctor.selftest.root import Root


@pytest.fixture
def root() -> Iterator[Root]:
    """The self-test's healthy node: real files, everything else told."""
    with Root() as made:
        yield made
