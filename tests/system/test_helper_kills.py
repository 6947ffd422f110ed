"""A real node that does not let itself be ended, once root went back."""

import signal
import time

import pytest

from tests.helper.attacker import Attacker, started
from tests.helper.attacks_orders import do
from tests.helper.world import World, roots_directory, why_not

pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]


def test_a_node_that_ignores_its_end_is_killed() -> None:
    """Ten seconds later; the helper serves meanwhile."""

    def sit(node: Attacker) -> str:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        do(node, "swap")
        do(node, "settle")
        node.so_far()
        time.sleep(35)
        return "was not ended"

    with roots_directory() as root:
        world = World(root)
        world.start()
        try:
            with started(world, sit) as running:
                running.wait_for_word()
                world.age(130)
                time.sleep(5)
                world.serves()
                assert running.reap() == -signal.SIGKILL
            assert world.state() == "back"
            world.serves()
        finally:
            world.end()
