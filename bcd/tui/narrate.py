"""Narrated mode: one plain sentence a change, for screen readers, serial lines and logs. No screen at all."""

from collections.abc import Callable, Iterator

from bcd.tui.phase import phase_of
from bcd.tui.snapshot import Snapshot

_MARKS_SECONDS = (90, 60, 30, 10)


def narrate(read: Callable[[], Snapshot], pause: Callable[[], None]) -> Iterator[str]:
    """Yield a sentence for what is, then one for each change; `pause` is called between looks."""
    before: Snapshot | None = None
    while True:
        snapshot = read()
        yield from changes(before, snapshot)
        before = snapshot
        pause()


def changes(before: Snapshot | None, now: Snapshot) -> list[str]:
    """The sentences that lead from one snapshot to the next."""
    said = []
    if now.status is None:
        trouble = now.trouble
        return [] if before is not None and before.status is None else [f"{trouble.message}" if trouble else "unknown"]
    status = now.status
    if before is None or before.status is None:
        said.append(f"{now.runs}, release floor {status.floor_words}.")
    elif before.status.current.slot != status.current.slot:
        said.append(f"current is slot {status.current.slot} now: {now.running or 'what it holds is not known'}.")
    sentence = phase_of(now).sentence
    if before is None or phase_of(before).sentence != sentence:
        said.append(f"{sentence[:1].upper()}{sentence[1:]}.")
    if before is not None and before.status is not None and before.status.floor_words != status.floor_words:
        said.append(f"The release floor is {status.floor_words} now.")
    said += _countdown(before, now)
    if before is not None and (before.agent is None) != (now.agent is None):
        said.append("The agent answers." if now.agent is not None else "No agent answers any more.")
    if before is not None and now.agent is not None and before.session[0] != now.session[0]:
        said.append(f"The gateway session is {now.session[0]}.")
    return said


def _countdown(before: Snapshot | None, now: Snapshot) -> list[str]:
    left = None if now.status is None else now.status.left
    if left is None:
        return []
    earlier = None if before is None or before.status is None else before.status.left
    if earlier is None:
        return [f"{int(left.seconds)} seconds left to be welcomed."]
    return [f"{mark} seconds left to be welcomed." for mark in _MARKS_SECONDS if left.seconds <= mark < earlier.seconds]
