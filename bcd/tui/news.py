"""What became different between two snapshots, as one sentence each and the screen to look at. Pure but for one memory.

Told from what changed and not from what is, so each is said once. Said to who looked elsewhere; the screens in
`shown_on` show it by themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bcd.core.records import Failed, PendingRecord
from bcd.core.text import raw
from bcd.tui.snapshot import Snapshot

Severity = Literal["information", "warning", "error"]
_AT_WORK = ("checking", "downloading", "staging")
_RESTARTS = ("staging", "swapped")


@dataclass(frozen=True, kw_only=True, slots=True)
class News:
    """One change."""

    text: str
    severity: Severity
    look_at: str
    """The screen that shows more."""
    shown_on: tuple[str, ...]
    """The screens on which this is plain already."""


class NewsDesk:
    """Tells what changed; remembers whether the agent's absence was told, and which rollbacks were."""

    def __init__(self) -> None:
        self._told_gone = False
        self._told_back: set[str] = set()

    def between(self, before: Snapshot | None, now: Snapshot) -> tuple[News, ...]:
        """The news that lead from one snapshot to the next; none from nothing, and none of a broken configuration."""
        if before is None or before.status is None or now.status is None:
            return tuple(_of_the_configuration(before, now))
        return (
            *_of_the_update(before, now),
            *self._ends(before, now),
            *_of_records(before, now),
            *self._agent(before, now),
        )

    def _ends(self, before: Snapshot, now: Snapshot) -> Iterator[News]:
        """A rollback and the failure that it is noted as, which may come later, are one piece of news."""
        failures = {raw(entry.version): entry for entry in _new_failures(before, now)}
        back = _swapped_back(before, now)
        if back is not None:
            version = raw(back.to_version)
            why = failures.pop(version, None)
            if why is None:
                self._told_back.add(version)
            text = f"{back.to_version} was rolled back: {back.from_version} runs again"
            text += "" if why is None else f" ({why.reason})"
            yield News(text=text, severity="error", look_at="failed", shown_on=("overview",))
        for version, entry in failures.items():
            if version in self._told_back:
                self._told_back.discard(version)
                continue
            text = f"{entry.version} failed here: {entry.reason}"
            yield News(text=text, severity="error", look_at="failed", shown_on=("failed", "overview"))

    def _agent(self, before: Snapshot, now: Snapshot) -> Iterator[News]:
        if before.agent is not None and now.agent is None:
            # The agent that restarts into what was swapped in, or back, is away for a moment: that is the update, told already.
            restarts = _pending_swap(now) != _pending_swap(before) or _slot(now) != _slot(before)
            if before.agent_phase not in _RESTARTS and not restarts:
                self._told_gone = True
                yield _overview("no agent answers any more", "warning")
        elif before.agent is None and now.agent is not None and self._told_gone:
            self._told_gone = False
            yield _overview("the agent answers again", "information")


def _of_the_configuration(before: Snapshot | None, now: Snapshot) -> Iterator[News]:
    if before is not None and before.status is not None and now.trouble is not None:
        yield _overview(now.trouble.message, "error")


def _of_the_update(before: Snapshot, now: Snapshot) -> Iterator[News]:
    was, phase = before.agent_phase, now.agent_phase
    if phase in _AT_WORK and (was not in _AT_WORK or before.agent_target != now.agent_target):
        yield _overview(f"an update to {now.agent_target} began", "information")
    if phase == "staging" != was:
        yield _overview(f"{now.agent_target} is downloaded and is being staged", "information")
    assert before.status is not None  # noqa: S101  # asked by the caller
    assert now.status is not None  # noqa: S101
    pending = now.status.pending.value
    if pending is not None and _pending_swap(before) != _pending_swap(now) and now.status.left is not None:
        left = max(0, int(now.status.left.seconds))
        yield _overview(f"{pending.to_version} is swapped in and waits for its welcome: {left} s left", "warning")
    update, update_before = now.status.update.value, before.status.update.value
    confirmed = None if update is None else update.confirmed
    if confirmed is not None and (update_before is None or update_before.confirmed_swap != confirmed.swap_id):
        yield _overview(f"{confirmed.version} was welcomed and is confirmed", "information")


def _swapped_back(before: Snapshot, now: Snapshot) -> PendingRecord | None:
    """What waited before, where `current` has gone back to what ran before it."""
    if before.status is None or now.status is None:
        return None
    earlier = before.status.pending.value
    if earlier is None or not now.status.current.slot == earlier.from_slot != before.status.current.slot:
        return None
    return earlier


def _new_failures(before: Snapshot, now: Snapshot) -> Iterator[Failed]:
    if before.status is None or before.status.update.value is None:
        return  # unreadable until now: nothing of it is new
    known = {(raw(entry.version), entry.at) for entry in _failed(before)}
    yield from (entry for entry in _failed(now) if (raw(entry.version), entry.at) not in known)


def _of_records(before: Snapshot, now: Snapshot) -> Iterator[News]:
    if before.status is None or now.status is None:
        return
    known = {(problem.what, problem.state) for problem in before.status.problems}
    for problem in now.status.problems:
        if (problem.what, problem.state) not in known:
            text = f"{problem.what} is {problem.state}: {problem.why}"
            yield News(text=text, severity="error", look_at="doctor", shown_on=("overview",))
    for path in now.status.aside:
        if path not in before.status.aside:
            text = f"a broken record was moved aside: {path}"
            yield News(text=text, severity="error", look_at="doctor", shown_on=("overview",))


def _failed(snapshot: Snapshot) -> tuple[Failed, ...]:
    update = None if snapshot.status is None else snapshot.status.update.value
    return () if update is None else update.failed


def _pending_swap(snapshot: Snapshot) -> str | None:
    pending = None if snapshot.status is None else snapshot.status.pending.value
    return None if pending is None else pending.swap_id


def _slot(snapshot: Snapshot) -> str | None:
    return None if snapshot.status is None else snapshot.status.current.slot


def _overview(text: str, severity: Severity) -> News:
    return News(text=text, severity=severity, look_at="overview", shown_on=("overview",))
