"""Every attack of the tables against a real helper: what it is told, what of root's has changed, and that root still serves."""

import re
from itertools import permutations
from pathlib import Path

import pytest

from tests.helper import attacks_crowds, attacks_orders, attacks_staging, attacks_words
from tests.helper.attack import Attack
from tests.helper.attacker import Told, attack, started
from tests.helper.attacks_orders import RULES, inorder
from tests.helper.page import PAGE, page
from tests.helper.world import World

TABLES = (*attacks_staging.ATTACKS, *attacks_words.ATTACKS, *attacks_orders.ATTACKS)


def check(world: World, before: dict[str, object], told: Told, ends: str) -> None:
    """Root's half is what the rules say, nothing of it was told, and it serves."""
    secret = world.secret.decode()
    after = world.tree()
    if ends:
        assert world.state() in ends.split("|"), told
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        assert all(name.startswith("lib/bcd/") for name in changed), changed
    else:
        assert after == before, {n for n in before.keys() | after.keys() if before.get(n) != after.get(n)}
    assert secret not in told.heard
    assert "root:" not in told.heard
    for name, entry in after.items():
        assert name == "secret" or world.secret not in entry.content, name
    log = world.log.read_text(errors="replace")
    assert secret not in log
    assert "Traceback" not in log, log
    assert "\x1b" not in log
    assert world.helper.poll() is None
    world.serves()


def begin(world: World, start: str) -> dict[str, object]:
    """The disk as an attack finds it."""
    world.reset(start)
    return dict(world.tree())


@pytest.mark.parametrize("one", TABLES, ids=lambda one: one.name)
def test_the_node_gains_nothing_by(running_world: World, one: Attack) -> None:
    """It is told what the table says; files, links, floor, slots, owners and modes are exactly what they should be."""
    world = running_world
    before = begin(world, one.start)
    try:
        if one.prepare is not None:
            one.prepare(world)
            before = dict(world.tree())
        told = attack(world, one.play)
        check(world, before, told, one.ends)
        assert told.outcome in one.outcome.split("|")
    finally:
        attacks_staging.cleaned(world)


@pytest.mark.parametrize("one", attacks_crowds.ATTACKS, ids=lambda one: one.name)
def test_others_are_served_beside(running_world: World, one: Attack) -> None:
    """While the attacker is at it, root is answered within a second."""
    world = running_world
    before = begin(world, one.start)
    with started(world, one.play) as running:
        running.wait_for_word()
        world.serves()
        told = running.ended()
    check(world, before, told, one.ends)
    assert told.outcome in one.outcome.split("|")


@pytest.mark.parametrize("first", RULES["swapped"])
def test_every_order_of_what_a_node_may_ask_ends_as_the_rules_say(running_world: World, first: str) -> None:
    """Swap, settle, confirm and both rollbacks, any four of them, from a pending swap on."""
    world = running_world
    for order in permutations(RULES["swapped"], 4):
        if order[0] != first:
            continue
        before, state, said = begin(world, "swapped"), "swapped", []
        for request in order:
            answer, state = RULES[state][request]
            said.append(answer)
        told = attack(world, inorder(*order))
        assert told.outcome == " ".join(said), order
        check(world, before, told, state)


def test_the_page_of_attacks_is_made_from_these_tables() -> None:
    """`python -m tests.helper.page` writes it anew."""
    assert Path(PAGE).read_text() == page()


def test_no_two_attacks_have_one_name() -> None:
    """Sixty at the least, each told apart."""
    names = [one.name for one in (*TABLES, *attacks_crowds.ATTACKS)]
    assert len(set(names)) == len(names) > 60
    assert all(re.fullmatch(r"[^|\n]{5,90}", name) for name in names)
