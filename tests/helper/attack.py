"""What an attack is, for the tables in `tests.helper.attacks_*`."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.helper.attacker import Attacker
from tests.helper.world import World

Play = Callable[[Attacker], dict[str, Any] | str]


class Attack(NamedTuple):
    """One attack, its outcome, and what of root's it may change."""

    name: str
    """A few words; the reference page lists them."""
    play: Play
    """In a process of the node's user; its last answer, or a word of its own."""
    outcome: str
    """`ok`, an error's code, or the word; several with a bar between."""
    start: str = "updated"
    """See `World.reset`."""
    ends: str = ""
    """The states (`World.state`) it may end in, a bar between; empty: not a byte of root's has changed."""
    prepare: Callable[[World], None] | None = None
    """What root did before."""
