"""Root's half killed in each step of what the node asked for, and started anew: Settle knows what it finds."""

import signal
from pathlib import Path

import pytest

from tests.helper.attacker import Attacker, attack
from tests.helper.attacks_orders import do
from tests.helper.test_attacks import begin, check
from tests.helper.world import World

CUT = (
    ("staged", "updated", ("swap",), "settled", "updated"),
    ("recorded", "updated", ("swap",), "interrupted", "updated"),
    ("previous-linked", "updated", ("swap",), "interrupted", "updated"),
    ("current-linked", "updated", ("swap",), "pending", "swapped"),
    ("launched", "swapped", ("settle",), "pending", "swapped"),
    ("floor-raised", "swapped", ("confirm",), "finish-confirm", "confirmed"),
    ("confirmed", "swapped", ("confirm",), "settled", "confirmed"),
    ("rollback-marked", "swapped", ("exec",), "pending", "swapped"),
    ("rollback-linked", "swapped", ("exec",), "rolled-back", "failed"),
    ("failure-recorded", "swapped", ("exec", "settle"), "rolled-back", "failed"),
    ("settled", "swapped", ("exec", "settle"), "settled", "failed"),
)
"""Step, start, what is asked until it is reached, what the next settle says, where that ends."""


@pytest.mark.parametrize(("step", "start", "asked", "says", "ends"), CUT, ids=str)
def test_a_helper_killed_at(world: World, step: str, start: str, asked: tuple[str, ...], says: str, ends: str) -> None:
    """The client hears nothing; the helper that is started next serves, and the next start of the node is settled."""

    def play(node: Attacker) -> str:
        return [str(do(node, one)) for one in asked][-1]

    before = begin(world, start)
    world.start(script=(str(Path(__file__).parent / "dying.py"), step))
    told = attack(world, play)
    assert told.outcome == "closed"
    assert world.helper.wait(10) == -signal.SIGKILL
    world.start()
    settled = attack(world, lambda node: str(do(node, "settle")))
    assert settled.outcome == says
    if step in ("staged", "recorded", "previous-linked"):
        # The other slot holds the release already, in its place or not yet: only what runs counts.
        assert world.json("slots.json")["b"]["version"] == "1.1.0"
        assert attack(world, lambda node: str(do(node, "swap"))).outcome == "done"
        ends = "swapped"
    elif step == "rollback-marked":
        (world.slots / "rolled-back").unlink()  # left beside a record that is still good: the next rollback's
    check(world, before, settled, ends)
