"""The lock: who finds it taken touches nothing, says so, and is served later; a dead holder does not keep it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bcd.core.errors import BcdError
from bcd.core.lock import LOCK_NAME, locked
from bcd.core.settle import Outcome
from tests.core.node_root import Node, make_release, quick_node

ONE = make_release("1.1.0", 11)
TWO = make_release("1.2.0", 12)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """On 1.1.0, 1.0.0 in the other slot."""
    made = quick_node(tmp_path, monkeypatch)
    made.update(ONE)
    return made


def test_while_another_works_a_swap_is_refused_at_once(node: Node) -> None:
    """Nothing is touched, and nobody waits."""
    node.stage(TWO)
    before = node.tree(history=True)
    with locked(node.layout.records_dir, 0.0), pytest.raises(BcdError, match="another bcd process") as caught:
        node.manager().swap(TWO.section, server_time=None, command_id=None)
    assert (caught.value.code, caught.value.retryable) == ("update-in-progress", True)
    assert node.tree(history=True) == before
    node.swap(TWO)
    assert node.runs() == "1.2.0"


OPERATIONS: dict[str, Callable[[Node], object]] = {
    "settle": lambda node: node.manager().settle(),
    "confirm": lambda node: node.manager().confirm(),
    "rollback": lambda node: node.manager().rollback(way="deadline"),
    "clear": lambda node: node.manager().clear_failed(),
    "refused": lambda node: node.manager().note_gateway_refused("busy"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_while_another_works_the_rest_waits_and_then_says_so(
    node: Node, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """They must not be lost to a swap that takes a moment; one that never ends is named."""
    node.swap(TWO)
    before = node.tree(history=True)
    monkeypatch.setattr("bcd.core.manager._LOCK_SECONDS", 0.06)
    with locked(node.layout.records_dir, 0.0), pytest.raises(BcdError, match="another bcd process") as caught:
        OPERATIONS[name](node)
    assert caught.value.code == "update-in-progress"
    assert node.tree(history=True) == before


@pytest.mark.parametrize("kind", ["directory", "link"])
def test_a_lock_that_is_no_file_stops_everything_but_a_reader(node: Node, kind: str) -> None:
    """An `io-error`, not a way around the lock."""
    lock = Path(node.layout.records_dir) / LOCK_NAME
    lock.unlink()
    lock.mkdir() if kind == "directory" else lock.symlink_to("elsewhere")
    node.stage(TWO)
    with pytest.raises(BcdError) as caught:
        node.manager().swap(TWO.section, server_time=None, command_id=None)
    assert caught.value.code == "io-error"
    for operation in OPERATIONS.values():
        with pytest.raises(BcdError) as caught:
            operation(node)
        assert caught.value.code == "io-error"
    assert node.status().problems == ()


def test_settle_waits_for_whoever_is_at_work(node: Node) -> None:
    """A `--clear-failed` at the wrong moment does not cost a start its settle."""
    node.swap(TWO)
    with ThreadPoolExecutor(1) as threads:
        with locked(node.layout.records_dir, 0.0):
            waiting = threads.submit(lambda: node.manager().settle())
            with pytest.raises(TimeoutError):
                waiting.result(0.1)
        assert waiting.result(5).outcome is Outcome.PENDING
