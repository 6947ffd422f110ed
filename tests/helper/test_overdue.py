"""A real node that swaps and never executes what it swapped in: root goes back and ends it."""

import signal
import time

from tests.helper.attacker import Attacker, attack, started, wait_until
from tests.helper.attacks_orders import do
from tests.helper.test_attacks import begin, check
from tests.helper.world import World


def test_a_node_that_never_executes_its_release_is_ended_and_back(running_world: World) -> None:
    """Five seconds after its deadline; what the next start settles is the failure."""
    world = running_world
    before = begin(world, "updated")

    def sit(node: Attacker) -> str:
        assert do(node, "swap") == "done"
        assert do(node, "settle") == "pending"
        node.so_far()
        time.sleep(30)
        return "was not ended"

    with started(world, sit) as running:
        running.wait_for_word()
        world.serves()
        assert world.state() == "swapped"
        world.age(130)
        wait_until(lambda: world.state_is("back"))
        assert running.reap() == -signal.SIGTERM
    told = attack(world, lambda node: str(do(node, "settle")))
    assert told.outcome == "rolled-back"
    check(world, before, told, "failed")
    assert "was not welcomed by a gateway before its deadline" in world.json("update.json")["failed"][0]["reason"]


def test_a_node_that_went_while_its_release_is_overdue_is_back_too(running_world: World) -> None:
    """There is nobody to end."""
    world = running_world
    before = begin(world, "swapped")
    world.age(130)
    wait_until(lambda: world.state_is("back"))
    check(world, before, attack(world, lambda node: str(do(node, "settle"))), "failed")
