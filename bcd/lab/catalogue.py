"""The releases that a person can push to a running lab, good and bad, by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from bcd.core.errors import UsageError
from bcd.lab.behaviour import SILENT, Behaviour, refuse
from bcd.lab.packing import EXITS_AT_ONCE, NOT_A_PROGRAM, PROGRAM_OF_ANOTHER_MACHINE
from bcd.lab.releases import GOOD, Recipe, Release
from bcd.lab.spoiling import Spoiling
from bcd.lab.world import INSTALLED_SEQUENCE, World

_DAY_SECONDS = 24 * 60 * 60
_CUT_BYTES = 100_000
_SLOW_BYTES_A_SECOND = 40_000


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One kind of release."""

    name: str
    outcome: str
    """What the rules make of it."""
    recipe: Recipe = GOOD
    behaviour: Behaviour | None = None
    """How the gateway treats that version, where not with a welcome."""
    older: bool = False
    """Whether it is older than what was installed; else it is newer than everything before."""


OFFERS = (
    Offer(name="good", outcome="runs and is confirmed"),
    Offer(
        name="slow",
        outcome=f"comes at {_SLOW_BYTES_A_SECOND // 1000} kB/s, then is confirmed",
        recipe=Recipe(spoiling=Spoiling(bytes_per_second=_SLOW_BYTES_A_SECOND)),
    ),
    Offer(
        name="cut",
        outcome="its download is cut once and resumed, then it is confirmed",
        recipe=Recipe(spoiling=Spoiling(cut_after=_CUT_BYTES, answers=1)),
    ),
    Offer(
        name="too-long",
        outcome="is tried again and again: its file is a byte too long",
        recipe=Recipe(spoiling=Spoiling(surplus=b"\n")),
    ),
    Offer(
        name="wrong-bytes",
        outcome="is tried again and again: its file has another digest",
        recipe=Recipe(wrong_bytes=True),
    ),
    Offer(name="signed-by-one", outcome="is refused: one signature of two", recipe=Recipe(signers=(0,))),
    Offer(name="signed-by-strangers", outcome="is refused: no pinned key signed it", recipe=Recipe(strangers=True)),
    Offer(name="expired", outcome="is refused: expired yesterday", recipe=Recipe(expires_in=-_DAY_SECONDS)),
    Offer(name="below-floor", outcome="is refused: older than what was installed", older=True),
    Offer(
        name="wrong-machine",
        outcome="is refused: a program for another machine",
        recipe=Recipe(file=PROGRAM_OF_ANOTHER_MACHINE),
    ),
    Offer(name="never-welcomed", outcome="is swapped back after 120 s: the gateway keeps silent", behaviour=SILENT),
    Offer(
        name="turned-away",
        outcome="is swapped back after 120 s: the gateway refuses it",
        behaviour=refuse("this version is not wanted here"),
    ),
    Offer(
        name="exits-at-once",
        outcome="is swapped back at the start limit, by a script without Python",
        recipe=Recipe(program=EXITS_AT_ONCE),
    ),
    Offer(
        name="not-a-program",
        outcome="is swapped back at once: it cannot be executed",
        recipe=Recipe(file=NOT_A_PROGRAM),
    ),
)
AGAIN = "again"
"""In the place of an offer's name: what was pushed last, once more."""


class Shop:
    """Makes what is asked for from the catalogue, each time as a version that was never there before."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._made = 0
        self._last: Release | None = None

    def make(self, name: str, *, node: str) -> Release:
        """Publish the release called `name` for `node` and have the gateway treat it as it is meant to.

        Raises:
            UsageError: `unknown-release`, or `nothing-pushed` for `again` before anything else.
        """
        if name == AGAIN:
            if self._last is None:
                raise UsageError("nothing-pushed", "nothing was pushed yet", "push another release first")
            return self._last
        offer = next((offer for offer in OFFERS if offer.name == name), None)
        if offer is None:
            raise _unknown(name, [*(offer.name for offer in OFFERS), AGAIN])
        self._made += 1
        version = f"1.3.{self._made}" if offer.older else f"1.4.{self._made}"
        sequence = INSTALLED_SEQUENCE - 1 if offer.older else INSTALLED_SEQUENCE + self._made
        self._last = self._world.publisher.publish(version, sequence, shelf=node, recipe=offer.recipe)
        if offer.behaviour is not None:
            self._world.gateway.behave(node, offer.behaviour, version=version)
        return self._last


def _unknown(name: str, names: Sequence[str]) -> UsageError:
    near = get_close_matches(name, names, 1, 0.0)[0]
    return UsageError("unknown-release", f"no release is called {name}", f"did you mean {near}? See `bcd lab releases`")
