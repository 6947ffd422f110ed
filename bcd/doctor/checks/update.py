"""Update: what is pending, what failed, the floor, and what broke in the records."""

import os
from collections.abc import Iterator

from bcd.core.links import SLOTS
from bcd.core.lock import LOCK_NAME
from bcd.core.text import raw
from bcd.doctor.check import Registry, Result, fail, note, ok, skipped, unknown, warn
from bcd.doctor.probes import Probes

UPDATE_CHECKS = Registry("update")

_DAY_SECONDS = 24 * 3600


@UPDATE_CHECKS.check(
    "records",
    "every record reads",
    why="The records hold the floor, what failed and what is pending. A broken one is moved aside and never guessed at; "
    "until an operator looked, a floor may rest on less evidence than it had.",
)
def records(see: Probes) -> Iterator[Result]:
    """Unreadable, broken, and moved aside."""
    status = see.status
    for problem in status.problems:
        if problem.state == "unreadable":
            yield unknown(f"could not be told: {problem.what}: {problem.why}", hint="sudo bcd doctor")
        else:
            yield fail(
                f"{problem.what} is broken: {problem.why}",
                f"{problem.what}: {problem.why}",
                hint="restart the agent, which moves it aside and goes on without it",
            )
    for path in status.aside:
        yield fail(
            f"a broken record was moved aside to {path}, and nobody has looked at it yet",
            f"{path}: {_size(path)}",
            hint=f"look at it, compare with `bcd update`, then rm {path}",
        )
    if not status.problems and not status.aside:
        yield ok("every record reads")


@UPDATE_CHECKS.check(
    "pending",
    "no update waits for its welcome",
    why="A pending update is swapped back when no gateway welcomes it in time. Past its deadline somebody should have.",
)
def pending(see: Probes) -> Result:
    """Required by the rules: warn about a pending update; fail when it is overdue and nobody rolled back."""
    status = see.status
    if status.pending.state == "unreadable":
        return unknown(f"could not be told: {status.pending.why}", hint="sudo bcd doctor")
    update, left = status.pending.value, status.left
    if update is None or left is None:
        return ok("no update is pending")
    evidence = (
        f"{status.layout.pending_record}: swapped at {update.swapped_at}, deadline {update.deadline}",
        f"{status.layout.current}: {status.current.target}",
    )
    if status.current.slot != update.to_slot:
        return warn(
            f"the update to {update.to_version} is not settled yet, and what ran before is current",
            *evidence,
            hint="start the agent: its start settles it",
        )
    if left.seconds > 0:
        return warn(
            f"{update.to_version} waits in slot {update.to_slot} for its welcome, {int(left.seconds)} s left",
            *evidence,
            hint="wait: it is confirmed or swapped back by itself (bcd doctor --wait 130s)",
        )
    return fail(
        f"{update.to_version} is overdue by {int(-left.seconds)} s and nobody swapped back",
        *evidence,
        hint="start the agent (systemctl start bcd.service): its start swaps back",
    )


@UPDATE_CHECKS.check(
    "clocks",
    "both clocks give a pending update the same time",
    why="Within one boot the boot clock decides, so a stepped wall clock changes nothing; where they part, somebody "
    "stepped it.",
)
def clocks(see: Probes) -> Result:
    """Wall clock against boot clock over a pending swap."""
    left = see.status.left
    if left is None:
        return skipped("no update is pending")
    if not left.same_boot:
        return note("the update was swapped in before this boot, so the wall clock decides its deadline")
    apart = left.wall_seconds - left.seconds
    if abs(apart) > 5:
        return warn(
            f"the wall clock was stepped by about {-int(apart)} s since the swap; the boot clock decides",
            f"left by boot clock {left.seconds:.0f} s, by wall clock {left.wall_seconds:.0f} s",
            hint="chronyc tracking, or timedatectl timesync-status",
        )
    return ok("wall clock and boot clock agree")


@UPDATE_CHECKS.check(
    "failed-versions",
    "no version failed here",
    why="A version that failed is refused here until an operator clears it, so a rollout stops at this node.",
)
def failed_versions(see: Probes) -> Iterator[Result]:
    """Required by the rules: warn about each failed version."""
    update = see.status.update.value
    if see.status.update.state == "unreadable":
        yield unknown(f"could not be told: {see.status.update.why}", hint="sudo bcd doctor")
        return
    for failed in update.failed if update is not None else ():
        yield warn(
            f"{failed.version} failed here and is refused: {failed.reason}",
            f"{see.layout.update_record}: {failed.version}, sequence {failed.sequence}, at {failed.at}",
            hint=f"when its cause is mended: bcd update --clear-failed {failed.version}",
        )
    if update is None or not update.failed:
        yield ok("no version failed here")


@UPDATE_CHECKS.check(
    "floor",
    "what runs is not below the floor",
    why="Below its floor a node accepts nothing, not even what it runs: a reinstall of that release would be refused.",
)
def floor(see: Probes) -> Iterator[Result]:
    """The floor against the running build and the other slot."""
    status = see.status
    if status.update.state == "unreadable":
        yield unknown(f"could not be told: {status.update.why}", hint="sudo bcd doctor")
        return
    evidence = f"floor {status.floor}: {status.layout.update_record}, [update] release_sequence, the build's sequence"
    for slot in SLOTS:
        record = status.record(slot)
        if record is None or record.sequence == 0 or record.sequence >= status.floor:
            continue
        held = f"{status.layout.slots_record}: slot {slot} has {record.version}, sequence {record.sequence}"
        if slot == status.current.slot:
            yield warn(
                f"{record.version} runs, whose sequence {record.sequence} is below the floor of {status.floor}",
                evidence,
                held,
                hint="roll out a release whose sequence is not below the floor",
            )
        else:
            yield note(
                f"slot {slot} holds {record.version}, below the floor: it can't be gone back to by an update", held
            )
    yield ok(f"the floor is {status.floor}", evidence)


@UPDATE_CHECKS.check(
    "last-confirm",
    "when a release was confirmed last",
    why="A node that was left out of rollouts for months is found by this line before it is found by an attacker.",
)
def last_confirm(see: Probes) -> Result:
    """Time since the last confirm."""
    update = see.status.update.value
    if update is None or update.confirmed is None:
        return note("no release was ever confirmed here")
    days = int((see.clock.wall() - update.confirmed.at) / _DAY_SECONDS)
    return note(f"{update.confirmed.version} was confirmed {days} days ago, sequence {update.confirmed.sequence}")


@UPDATE_CHECKS.check(
    "lock",
    "nobody holds the update lock",
    why="Swap, settle, confirm and rollback take it for seconds. One that keeps it holds up all others.",
)
def lock(see: Probes) -> Result:
    """Who holds it; the kernel frees a dead holder's."""
    path = os.path.join(see.layout.records_dir, LOCK_NAME)
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return ok("no update has run here, so there is no lock")
    # The kernel's own list, not the lock: one taken for an instant only would turn a swap away, and it is its owner's alone.
    holder = _holder(found.st_ino)
    if holder is None:
        return ok("nobody holds the update lock")
    return warn(
        f"the update lock is held by {holder}: an update is at work, or hangs",
        f"{path}: locked",
        hint="run bcd doctor again in a minute; when it is still held, look at that process",
    )


@UPDATE_CHECKS.check(
    "agent",
    "the agent answers",
    why="Without a running agent nothing is downloaded, confirmed or swapped back.",
)
def agent(see: Probes) -> Result:
    """The live state's socket, and what the agent waits for."""
    live = see.live
    if live is None:
        return warn(
            "no agent answers on its socket, so nothing updates this node and nothing swaps back",
            f"{os.path.join(see.layout.data_dir, 'node.sock')}: no answer",
            hint="systemctl start bcd.service, or start `bcd node`",
        )
    running, current = raw(str(live.get("version"))), raw(see.status.version)
    if running != current:
        return warn(
            f"the agent runs {live.get('version')}, and the current slot holds {see.status.version}",
            hint="restart the agent: systemctl restart bcd.service",
        )
    error = live.get("error")
    doing = f"the agent runs {live.get('version')} and is {live.get('phase')}"
    return note(f"{doing}; its last trouble: {error}") if error else ok(doing)


def _holder(inode: int) -> str | None:
    with open("/proc/locks", encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
                return f"process {words[4]}"
    return None


def _size(path: str) -> str:
    try:
        return f"{os.lstat(path).st_size} bytes"
    except OSError:
        return "gone"
