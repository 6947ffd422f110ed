"""What a start of the agent makes of what it finds: the table of spec/self-update.md section 7, as data.

A pure decision over one `Situation`. It looks at where `current` points, never at the version that a process claims:
a binary with a wrong stamp must not settle itself. The first row that fits holds.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from bcd.core.links import Slot
from bcd.core.records import PendingRecord


class Outcome(Enum):
    """What is to be done."""

    SETTLED = "settled"
    """Nothing is pending."""
    FINISH_CONFIRM = "finish-confirm"
    """The confirm was cut off after its record: remove `upgrade.json`."""
    PENDING = "pending"
    """Launched; arm the timer for what is left."""
    ROLL_BACK = "roll-back"
    """The deadline passed: go back now."""
    INTERRUPTED = "interrupted"
    """The new binary provably never ran: nothing was learned about it."""
    ROLLED_BACK = "rolled-back"
    """It is back on the old slot: record the failure."""
    RESTORE = "restore"
    """`current` is lost, the old slot is whole: point it there, then as rolled back."""
    STUCK = "stuck"
    """`current` is lost and so is the old slot: touch nothing."""


class Situation(NamedTuple):
    """What Settle looks at."""

    pending: PendingRecord | None
    current: Slot | None
    """The slot that `current` names and whose file is there; None otherwise."""
    confirmed_swap_id: str | None
    marker: bool
    """Whether `rolled-back` stands beside the record."""
    seconds_left: float
    old_slot_whole: Callable[[], bool]
    """Whether the old slot's file hashes to its record; asked only where it decides."""

    @property
    def on_new(self) -> bool:
        """`current` is the pending slot."""
        return self.pending is not None and self.current == self.pending.to_slot

    @property
    def on_old(self) -> bool:
        """`current` is the slot that ran before."""
        return self.pending is not None and self.current == self.pending.from_slot

    @property
    def confirmed(self) -> bool:
        """`update.json` carries this very swap."""
        return self.pending is not None and self.confirmed_swap_id == self.pending.swap_id

    @property
    def never_ran(self) -> bool:
        """The new binary provably never ran."""
        return self.pending is not None and not self.pending.launched and not self.marker


TABLE: tuple[tuple[Outcome, Callable[[Situation], bool]], ...] = (
    (Outcome.SETTLED, lambda s: s.pending is None),
    (Outcome.FINISH_CONFIRM, lambda s: s.on_new and s.confirmed),
    (Outcome.PENDING, lambda s: s.on_new and s.seconds_left > 0),
    (Outcome.ROLL_BACK, lambda s: s.on_new),
    (Outcome.INTERRUPTED, lambda s: s.on_old and s.never_ran),
    (Outcome.ROLLED_BACK, lambda s: s.on_old),
    (Outcome.RESTORE, lambda s: s.old_slot_whole()),
    (Outcome.STUCK, lambda _: True),
)


def decide(situation: Situation) -> Outcome:
    """The first row that fits."""
    return next(outcome for outcome, fits in TABLE if fits(situation))


def failure_reason(pending: PendingRecord, *, marker: bool) -> str:
    """Why a release that was rolled back failed, as a sentence for people (section 7).

    It tells apart a gateway that never answered, one that answered and refused, and a binary that did not run.
    """
    bcd = f"bcd {pending.to_version}"
    if pending.way == "exec":
        return f"{bcd} could not be started: {pending.said or 'the exec failed'}"
    if pending.way == "restored":
        return f"{bcd} was given up: `current` led neither to it nor to what ran before"
    if pending.way is None and marker:
        # Only the crash loop's script goes back without a word in the record.
        if pending.launched:
            return f"{bcd} kept crashing before a gateway welcomed it"
        return f"{bcd} did not run: it failed at every start"
    if pending.refused:
        return f"{bcd} was refused by the gateway until its deadline: {pending.refused}"
    if not pending.launched:
        return f"{bcd} did not run before its deadline"
    return f"{bcd} was not welcomed by a gateway before its deadline"
