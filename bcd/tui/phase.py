"""Where an update is: the stations of the rail, decided from what the disk and the agent say. Pure.

The disk comes first: what is swapped in and waits is known without any agent; what is being fetched only the agent knows.
"""

from dataclasses import dataclass
from typing import Literal

from bcd.tui.snapshot import Snapshot

STATIONS = ("checked", "downloaded", "staged", "swapped", "welcomed")
"""What an update passes, in order."""

Tone = Literal["quiet", "working", "waiting", "good", "bad"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """Where an update is."""

    passed: int
    """How many of `STATIONS` are behind it."""
    at: str
    """The one it is at, as a word for the rail; empty at rest."""
    sentence: str
    """What happens, in one sentence."""
    tone: Tone


def phase_of(snapshot: Snapshot) -> Phase:
    """Decide where the update is."""
    status = snapshot.status
    if status is None:
        return Phase(passed=0, at="", sentence="the configuration can't be read", tone="bad")
    pending, left = status.pending.value, status.left
    if pending is not None and left is not None:
        if status.current.slot is None:
            sentence = f"{pending.to_version} is pending, and current names neither slot: bcd doctor says more"
            return Phase(passed=3, at="broken", sentence=sentence, tone="bad")
        if status.current.slot != pending.to_slot:
            sentence = f"{pending.to_version} was swapped back and is settled at the agent's next start"
            return Phase(passed=3, at="swapped back", sentence=sentence, tone="bad")
        if left.seconds > 0:
            sentence = f"{pending.to_version} runs from slot {pending.to_slot} and waits for a gateway's welcome"
            return Phase(passed=4, at="waiting", sentence=sentence, tone="waiting")
        sentence = f"{pending.to_version} is overdue and nobody has swapped back yet"
        return Phase(passed=4, at="overdue", sentence=sentence, tone="bad")
    target, word = snapshot.agent_target, snapshot.agent_phase
    working = {
        "checking": (0, "checking", f"{target} is being checked"),
        "downloading": (1, "downloading", f"{target} is being downloaded"),
        "staging": (2, "staging", f"{target} is being put into the other slot"),
        "swapped": (4, "restarting", f"{target} is swapped in; the agent restarts into it"),
        "waiting": (0, "retrying", f"{target} could not be had yet and is tried again"),
    }
    if word in working:
        passed, at, sentence = working[word]
        return Phase(passed=passed, at=at, sentence=sentence, tone="working")
    return _at_rest(snapshot)


def _at_rest(snapshot: Snapshot) -> Phase:
    status = snapshot.status
    update = None if status is None else status.update.value
    if status is not None and status.update.state in ("unreadable", "corrupt"):
        sentence = f"what happened here is not known: the update record is {status.update.state}"
        return Phase(passed=0, at="", sentence=sentence, tone="bad")
    if update is None or (update.confirmed is None and not update.failed):
        return Phase(passed=0, at="", sentence="no update has run here yet", tone="quiet")
    last_failed = update.failed[-1] if update.failed else None
    confirmed = update.confirmed
    if last_failed is not None and (confirmed is None or last_failed.at >= confirmed.at):
        return Phase(passed=0, at="", sentence=f"the last update failed: {last_failed.reason}", tone="bad")
    assert confirmed is not None  # noqa: S101  # one of the two is there
    sentence = f"{confirmed.version} was welcomed and is confirmed"
    return Phase(passed=len(STATIONS), at="", sentence=sentence, tone="good")
