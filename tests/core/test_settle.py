"""What a start makes of what it finds: the table of section 7, row by row and in every combination of what it looks at."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import pytest

from bcd.core.links import Slot
from bcd.core.records import PendingRecord
from bcd.core.settle import TABLE, Outcome, Situation, decide, failure_reason
from bcd.core.text import Foreign

SWAP_ID = "0123456789abcdef0123456789abcdef"


def pending_record(
    *,
    new: Slot = "b",
    launched: bool = True,
    refused: str | None = None,
    way: str | None = None,
    said: str | None = None,
    to_version: str = "1.4.1",
) -> PendingRecord:
    """A swap to 1.4.1."""
    return PendingRecord(
        swap_id=SWAP_ID,
        from_version="1.4.0",
        to_version=to_version,
        from_slot="a" if new == "b" else "b",
        to_slot=new,
        sequence=15,
        command_id=None,
        launched=launched,
        swapped_at=1_000,
        deadline=1_120,
        boot_id="boot-1",
        swapped_boottime=50.0,
        refused=refused,
        way=way,
        said=said,
    )


Points = Literal["new", "old", "nowhere"]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What Settle looks at, in words."""

    pending: bool = True
    current: Points = "new"
    confirmed: Literal["this", "another", "none"] = "none"
    launched: bool = True
    marker: bool = False
    seconds_left: float = 60.0
    old_whole: bool = True
    new: Slot = "b"

    def decide(self, old_slot_whole: Callable[[], bool] | None = None) -> Outcome:
        """Ask the table."""
        record = pending_record(new=self.new, launched=self.launched)
        slots: dict[Points, Slot | None] = {"new": record.to_slot, "old": record.from_slot, "nowhere": None}
        confirmed = {"this": SWAP_ID, "another": "f" * 32, "none": None}
        return decide(
            Situation(
                pending=record if self.pending else None,
                current=slots[self.current],
                confirmed_swap_id=confirmed[self.confirmed],
                marker=self.marker,
                seconds_left=self.seconds_left,
                old_slot_whole=old_slot_whole or (lambda: self.old_whole),
            )
        )


ROWS: dict[str, tuple[Facts, Outcome]] = {
    "nothing pending": (Facts(pending=False), Outcome.SETTLED),
    "confirm was cut off": (Facts(confirmed="this"), Outcome.FINISH_CONFIRM),
    "deadline ahead": (Facts(), Outcome.PENDING),
    "deadline passed": (Facts(seconds_left=-1.0), Outcome.ROLL_BACK),
    "never ran": (Facts(current="old", launched=False), Outcome.INTERRUPTED),
    "ran, and went back": (Facts(current="old", marker=True), Outcome.ROLLED_BACK),
    "lost, old slot whole": (Facts(current="nowhere"), Outcome.RESTORE),
    "lost, old slot too": (Facts(current="nowhere", old_whole=False), Outcome.STUCK),
}


@pytest.mark.parametrize(("facts", "outcome"), ROWS.values(), ids=ROWS)
def test_each_row_of_the_table(facts: Facts, outcome: Outcome) -> None:
    """In the rules' order; the same whichever slot is the new one."""
    assert facts.decide() is outcome
    assert replace(facts, new="a").decide() is outcome
    assert [row for row, _ in TABLE] == [expected for _, expected in ROWS.values()]


FIRST_THAT_FITS: dict[str, tuple[Facts, Outcome]] = {
    "a confirmed swap outlives its deadline": (Facts(confirmed="this", seconds_left=-3600.0), Outcome.FINISH_CONFIRM),
    "a confirmed swap outlives a marker": (Facts(confirmed="this", marker=True), Outcome.FINISH_CONFIRM),
    "another swap's confirm is none": (Facts(confirmed="another", seconds_left=-1.0), Outcome.ROLL_BACK),
    "a confirm does not hold on the old slot": (Facts(confirmed="this", current="old"), Outcome.ROLLED_BACK),
    "a confirm does not hold nowhere": (Facts(confirmed="this", current="nowhere"), Outcome.RESTORE),
    "the last instant has passed": (Facts(seconds_left=0.0), Outcome.ROLL_BACK),
    "an instant is left": (Facts(seconds_left=0.001), Outcome.PENDING),
    "a marker does not shorten the deadline": (Facts(marker=True), Outcome.PENDING),
    "an old slot's deadline is no matter": (
        Facts(current="old", launched=False, seconds_left=-9.0),
        Outcome.INTERRUPTED,
    ),
    "launched and no marker still ran": (Facts(current="old"), Outcome.ROLLED_BACK),
    "not launched but marked may have run": (Facts(current="old", launched=False, marker=True), Outcome.ROLLED_BACK),
    "never launched, and lost": (Facts(current="nowhere", launched=False), Outcome.RESTORE),
    "never launched, deadline passed": (Facts(launched=False, seconds_left=-1.0), Outcome.ROLL_BACK),
}


@pytest.mark.parametrize(("facts", "outcome"), FIRST_THAT_FITS.values(), ids=FIRST_THAT_FITS)
def test_the_first_row_that_fits_holds(facts: Facts, outcome: Outcome) -> None:
    """Where two rows could be read to fit."""
    assert facts.decide() is outcome


def by_hand(facts: Facts) -> Outcome:
    """Section 7 once more, read from its right to its left: outcomes first, as an if-chain that knows no table."""
    if not facts.pending:
        return Outcome.SETTLED
    if facts.current == "nowhere":
        return Outcome.RESTORE if facts.old_whole else Outcome.STUCK
    if facts.current == "old":
        provably_never_ran = not facts.launched and not facts.marker
        return Outcome.INTERRUPTED if provably_never_ran else Outcome.ROLLED_BACK
    if facts.confirmed == "this":
        return Outcome.FINISH_CONFIRM
    return Outcome.ROLL_BACK if facts.seconds_left <= 0 else Outcome.PENDING


def every_situation() -> list[Facts]:
    """The whole product of what is looked at."""
    points: list[Points] = ["new", "old", "nowhere"]
    confirms: list[Literal["this", "another", "none"]] = ["this", "another", "none"]
    booleans, seconds, slots = [True, False], [120.0, 0.001, 0.0, -0.001, -1e9], ["a", "b"]
    return [
        Facts(
            pending=p,
            current=c,
            confirmed=k,
            launched=n,
            marker=m,
            seconds_left=s,
            old_whole=w,
            new="a" if t == "a" else "b",
        )
        for p, c, k, n, m, s, w, t in product(booleans, points, confirms, booleans, booleans, seconds, booleans, slots)
    ]


def test_every_situation_ends_as_the_rules_read_by_hand_say() -> None:
    """All of them, with no exception and none left out; every outcome comes up."""
    situations = every_situation()
    assert len(situations) == 2 * 3 * 3 * 2 * 2 * 5 * 2 * 2
    assert [facts.decide() for facts in situations] == [by_hand(facts) for facts in situations]
    assert {facts.decide() for facts in situations} == set(Outcome)


def test_the_old_slot_is_hashed_only_where_that_decides() -> None:
    """A start with a whole `current` does not read 512 MiB."""

    def must_not_be_asked() -> bool:
        raise AssertionError

    for facts in every_situation():
        if facts.pending and facts.current == "nowhere":
            continue
        facts.decide(must_not_be_asked)


# The reason -----------------------------------------------------------------------------------------------------------

REASONS: dict[str, tuple[PendingRecord, bool, str]] = {
    "deadline, nobody answered": (
        pending_record(way="deadline"), True, "bcd 1.4.1 was not welcomed by a gateway before its deadline",
    ),
    "late start, nobody answered": (
        pending_record(way="late-start"), True, "bcd 1.4.1 was not welcomed by a gateway before its deadline",
    ),
    "deadline, refused": (
        pending_record(way="deadline", refused="busy"),
        True,
        "bcd 1.4.1 was refused by the gateway until its deadline: busy",
    ),
    "late start, refused": (
        pending_record(way="late-start", refused="unknown node"),
        True,
        "bcd 1.4.1 was refused by the gateway until its deadline: unknown node",
    ),
    "late start, never launched": (
        pending_record(way="late-start", launched=False), True, "bcd 1.4.1 did not run before its deadline",
    ),
    "crash loop, launched": (pending_record(), True, "bcd 1.4.1 kept crashing before a gateway welcomed it"),
    "crash loop, never launched": (
        pending_record(launched=False), True, "bcd 1.4.1 did not run: it failed at every start",
    ),
    "crash loop, refused before": (
        pending_record(refused="busy"), True, "bcd 1.4.1 kept crashing before a gateway welcomed it",
    ),
    "exec failed": (
        pending_record(way="exec", launched=False, said="Exec format error"),
        True,
        "bcd 1.4.1 could not be started: Exec format error",
    ),
    "exec failed without a word": (
        pending_record(way="exec", launched=False), True, "bcd 1.4.1 could not be started: the exec failed",
    ),
    "moved back by hand": (pending_record(), False, "bcd 1.4.1 was not welcomed by a gateway before its deadline"),
    "lost, never launched": (pending_record(launched=False), False, "bcd 1.4.1 did not run before its deadline"),
}  # fmt: skip


@pytest.mark.parametrize(("pending", "marker", "reason"), REASONS.values(), ids=REASONS)
def test_a_failures_reason_is_a_sentence_for_people(pending: PendingRecord, marker: bool, reason: str) -> None:
    """It tells apart who never answered, who refused and with what words, and what did not run."""
    assert failure_reason(pending, marker=marker) == reason


def test_a_reason_repeats_no_control_character() -> None:
    """What the gateway said, and even the version, come from outside (C06)."""
    attack = Foreign("\x1b]52;c;eA==\x07")
    for pending in (
        pending_record(way="deadline", refused=attack),
        pending_record(way="exec", said=attack),
        pending_record(to_version=attack),
    ):
        reason = failure_reason(pending, marker=True)
        assert reason.isprintable()
        assert "\\x1b]52" in reason
