"""What several tests of whole systems need."""

from pathlib import Path

import pytest

from tests.system.binaries import made


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The real binary."""
    own = tmp_path_factory.getbasetemp()
    return made(own if worker_id == "master" else own.parent)
