"""A node on disk and a way to run `bcd` on it."""

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bcd.cli import main
from tests.commands.node_dir import Node
from tests.commands.running import Done, Runner


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory that every user may look into, which pytest's own are not."""
    path = Path(tempfile.mkdtemp(prefix="bcd-test-"))
    path.chmod(0o755)
    yield path
    for directory in [path, *(p for p in path.rglob("*") if p.is_dir() and not p.is_symlink())]:
        directory.chmod(0o755)
    shutil.rmtree(path)


@pytest.fixture
def node(home: Path) -> Node:
    """A node that updated once, and where 1.4.1 failed."""
    (home / "node").mkdir()
    return Node(home / "node")


@pytest.fixture
def run(home: Path) -> Iterator[Runner]:
    """Run `bcd`; whatever it was fed, it must not have crashed."""
    runner = Runner(home)
    yield runner
    assert not runner.crashed(), "bcd reported a fault of its own"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run `bcd` in this process, which has paid for its imports already."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def run_here(*args: str) -> Done:
        capsys.readouterr()
        status = main(args)
        said = capsys.readouterr()
        return Done(int(status), said.out, said.err)

    return run_here


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A command run in this process sets logging up for its own life, which here goes on."""
    root, ours = logging.getLogger(), logging.getLogger("bcd")
    before = (list(root.handlers), ours.level, logging.raiseExceptions)
    yield
    root.handlers[:], level, logging.raiseExceptions = before
    ours.setLevel(level)
