"""The releases that a person can push to a running lab, good and bad, by name."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from bcd.core.errors import UsageError
from bcd.lab.behaviour import SILENT, Behaviour, refuse
from bcd.lab.labnode import LabNode
from bcd.lab.packing import EXITS_AT_ONCE, NOT_A_PROGRAM, PROGRAM_OF_ANOTHER_MACHINE
from bcd.lab.releases import GOOD, Recipe, Release
from bcd.lab.spoiling import Spoiling
from bcd.lab.world import INSTALLED_SEQUENCE, World

_DAY_SECONDS = 24 * 60 * 60
_CUT_BYTES = 100_000
_SLOW_BYTES_A_SECOND = 40_000


class Ending(Enum):
    """What becomes of a release here, by the rules."""

    CONFIRMED = "confirmed"
    SWAPPED_BACK = "swapped back"
    REFUSED = "refused"
    RETRIED = "tried again and again"


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One kind of release."""

    name: str
    ending: Ending
    outcome: str
    """What the rules make of it."""
    watch: str
    """Where that can be seen, in one sentence."""
    recipe: Recipe = GOOD
    behaviour: Behaviour | None = None
    """How the gateway treats that version, where not with a welcome."""
    older: bool = False
    """Whether it is older than what was installed; else it is newer than everything before."""


OFFERS = (
    Offer(
        name="good",
        ending=Ending.CONFIRMED,
        outcome="runs and is confirmed",
        watch="Within seconds current moves to the other slot, a gateway welcomes it, and the floor rises.",
    ),
    Offer(
        name="slow",
        ending=Ending.CONFIRMED,
        outcome=f"comes at {_SLOW_BYTES_A_SECOND // 1000} kB/s, then is confirmed",
        watch="Overview shows the download's bar, rate and time to go; the old version runs meanwhile.",
        recipe=Recipe(spoiling=Spoiling(bytes_per_second=_SLOW_BYTES_A_SECOND)),
    ),
    Offer(
        name="cut",
        ending=Ending.CONFIRMED,
        outcome="its download is cut once and resumed, then it is confirmed",
        watch="The release server is asked twice: the second time from the byte where the first was cut.",
        recipe=Recipe(spoiling=Spoiling(cut_after=_CUT_BYTES, answers=1)),
    ),
    Offer(
        name="exits-at-once",
        ending=Ending.SWAPPED_BACK,
        outcome="is swapped back at the start limit, by a script without Python",
        watch="The supervisor starts it until the start limit, some seconds in all, then the script moves current back.",
        recipe=Recipe(program=EXITS_AT_ONCE),
    ),
    Offer(
        name="not-a-program",
        ending=Ending.SWAPPED_BACK,
        outcome="is swapped back at once: it cannot be executed",
        watch="current moves and is back within a second or two; Failed says why.",
        recipe=Recipe(file=NOT_A_PROGRAM),
    ),
    Offer(
        name="never-welcomed",
        ending=Ending.SWAPPED_BACK,
        outcome="is swapped back after 120 s: the gateway keeps silent",
        watch="The countdown on top: at its end the agent itself moves current back, and the version is failed here.",
        behaviour=SILENT,
    ),
    Offer(
        name="turned-away",
        ending=Ending.SWAPPED_BACK,
        outcome="is swapped back after 120 s: the gateway refuses it",
        watch="It says hello again and again and gets a bye each time, until the countdown ends.",
        behaviour=refuse("this version is not wanted here"),
    ),
    Offer(
        name="signed-by-one",
        ending=Ending.REFUSED,
        outcome="is refused: one signature of two",
        watch="The release server is not even asked: the manifest is judged first.",
        recipe=Recipe(signers=(0,)),
    ),
    Offer(
        name="signed-by-strangers",
        ending=Ending.REFUSED,
        outcome="is refused: no pinned key signed it",
        watch="The keys in the manifest do not count, only those that the node pins.",
        recipe=Recipe(strangers=True),
    ),
    Offer(
        name="expired",
        ending=Ending.REFUSED,
        outcome="is refused: expired yesterday",
        watch="Its signatures are good; its day is over.",
        recipe=Recipe(expires_in=-_DAY_SECONDS),
    ),
    Offer(
        name="below-floor",
        ending=Ending.REFUSED,
        outcome="is refused: older than what was installed",
        watch="However well it is signed, there is no way down below the floor.",
        older=True,
    ),
    Offer(
        name="wrong-machine",
        ending=Ending.REFUSED,
        outcome="is refused: a program for another machine",
        watch="It is downloaded and looked at, and neither swapped in nor executed.",
        recipe=Recipe(file=PROGRAM_OF_ANOTHER_MACHINE),
    ),
    Offer(
        name="too-long",
        ending=Ending.RETRIED,
        outcome="is tried again and again: its file is a byte too long",
        watch="Each download is thrown away and the pause grows; push another release to end it.",
        recipe=Recipe(spoiling=Spoiling(surplus=b"\n")),
    ),
    Offer(
        name="wrong-bytes",
        ending=Ending.RETRIED,
        outcome="is tried again and again: its file has another digest",
        watch="Not one of its bytes is kept or run; push another release to end it.",
        recipe=Recipe(wrong_bytes=True),
    ),
)
AGAIN = "again"
"""In the place of an offer's name: what was pushed last, once more."""


class Shop:
    """Makes what is asked for from the catalogue, each time as a version that was never there before.

    Any thread may ask.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = threading.Lock()
        self._made = 0
        self._last: Release | None = None

    def push(self, name: str, node: LabNode, *, by_command: bool) -> str:
        """Make the release called `name` and tell `node` of it, by a command or by the section; what was done.

        Raises:
            UsageError: as `make` does.
            LabClosed: the lab has ended.
        """
        with self._lock:
            release = self.make(name, node=node.name)
            if by_command:
                node.command(release)
            else:
                node.push(release)
        how = "a command asks for" if by_command else "the section names"
        return f"{how} {release.version} (sequence {release.sequence})"

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
