"""Machines for stories, and a note of what each took."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.system import binaries
from tests.system.bases import BASES, Unavailable, root_of
from tests.system.machine import Machine, made
from tests.system.station import WAYS, Binaries, Station, station

Told = Callable[[str, float], None]


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The real binary."""
    own = tmp_path_factory.getbasetemp()
    return binaries.made(own if worker_id == "master" else own.parent)


@pytest.fixture(params=BASES, ids=lambda base: base.name)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    """A freshly booted machine, of each base."""
    try:
        root_of(request.param)
    except Unavailable as why:
        pytest.skip(str(why))
    with made(tmp_path, request.param) as running:
        yield running


@pytest.fixture(scope="session")
def real(request: pytest.FixtureRequest) -> Path | None:
    """The real binary; None where the lab's are to do (no compiler, or BCD_SYSTEM_BINARY=lab)."""
    wanted = os.environ.get("BCD_SYSTEM_BINARY", "packed") == "packed"
    if not wanted or not (shutil.which("cc") or "BCD_TEST_BINARY" in os.environ):
        return None
    path: Path = request.getfixturevalue("binary")
    return path


@pytest.fixture(params=WAYS)
def installed(request: pytest.FixtureRequest, machine: Machine, tmp_path: Path, real: Path | None) -> Iterator[Station]:
    """bcd 1.4.0 installed by its installer, running and welcomed; both ways."""
    with station(machine, tmp_path / "world", request.param, Binaries(real, faults=False)) as here:
        yield here


@pytest.fixture(params=WAYS)
def breakable(request: pytest.FixtureRequest, machine: Machine, tmp_path: Path, real: Path | None) -> Iterator[Station]:
    """The same, with programs in which power can fail at a step."""
    with station(machine, tmp_path / "world", request.param, Binaries(real, faults=True)) as here:
        yield here


@pytest.fixture
def took(record_property: Told, request: pytest.FixtureRequest) -> Told:
    """Note how many seconds a scenario took, for the table at the end."""
    name = "breakable" if "breakable" in request.fixturenames else "installed"
    here: Station = request.getfixturevalue(name)
    version = here.machine.run("systemctl", "--version").stdout.split()[1]
    way = "split" if here.split else "root"

    def note(scenario: str, seconds: float) -> None:
        record_property(f"{scenario}|{version} {way}", seconds)

    return note
