"""Update: what is pending, what failed, the floor, and what broke in the records."""

import os
import shlex
import stat
from collections.abc import Iterator
from typing import Any

from bcd.core.deadline import WELCOME_SECONDS
from bcd.core.links import SLOTS
from bcd.core.lock import LOCK_NAME
from bcd.core.records import Reading
from bcd.core.status import Problem
from bcd.core.text import clean
from bcd.core.units import NODE_UNIT
from bcd.doctor.check import Registry, Result, fail, note, ok, skipped, unknown, warn
from bcd.doctor.checks.slot_words import NOT_IN_USE, ago, in_use, restart
from bcd.doctor.probes import Probes
from bcd.node.client import SOCKET_NAME

UPDATE_CHECKS = Registry("update")

_DAY_SECONDS = 24 * 3600
_LONG_DAYS = 90
_EXPIRY_DAYS = 14
_SIGN_ANEW = (
    "nothing to do on this node; where its rollout is not done by then, sign the release anew with a later expiresAt"
)
_STEP_SECONDS = 5


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
        yield _problem(see, problem)
    for path in status.aside:
        name = shlex.quote(path)
        yield fail(
            f"a broken record was moved aside to {path}, and nobody has looked at it yet",
            f"{path}: {_size(path)}",
            hint=f"less {name}; compare it with {see.command('update')}; then rm {name}",
        )
    for directory in dict.fromkeys((status.layout.slots_dir, status.layout.records_dir)):
        if os.path.isdir(directory):
            os.listdir(directory)  # where the names can't be listed, nobody knows whether one was moved aside
    if not status.problems and not status.aside:
        yield ok("every record reads")


def _problem(see: Probes, problem: Problem) -> Result:
    if problem.state == "unreadable":
        return unknown(f"could not be told: {problem.what}: {problem.why}", hint=see.command("doctor", root=True))
    return fail(
        f"{problem.what} is broken: {problem.why}",
        f"{problem.what}: {_size(problem.what)}",
        hint=f"{restart(see)}: its start moves the record aside, after which doctor says what to do with it",
    )


def _untold(see: Probes, path: str, reading: Reading[Any]) -> Result | None:
    """The finding of a check whose record can't be read; None where it can. Broken is not empty (field report 38)."""
    if reading.state == "unreadable":
        return unknown(f"could not be told: {path}: {reading.why}", hint=see.command("doctor", root=True))
    if reading.state == "corrupt":
        return unknown(f"could not be told: {path} is broken (update.records)")
    return None


@UPDATE_CHECKS.check(
    "pending",
    "no update waits for its welcome",
    why="A pending update is swapped back when no gateway welcomes it in time. Past its deadline somebody should have.",
)
def pending(see: Probes) -> Result:
    """Required by the rules: warn about a pending update; fail when it is overdue and nobody rolled back."""
    status = see.status
    untold = _untold(see, status.layout.pending_record, status.pending)
    if untold is not None:
        return untold
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
            hint=f"{restart(see)}: its start settles it",
        )
    if left.seconds > 0:
        return warn(
            f"{update.to_version} waits in slot {update.to_slot} for its welcome, {int(left.seconds)} s left",
            *evidence,
            hint=f"wait, it is confirmed or swapped back by itself: {see.command('doctor', '--wait', '130s')}",
        )
    return fail(
        f"{update.to_version} is overdue by {int(-left.seconds)} s and nobody swapped back",
        *evidence,
        hint=f"{restart(see)}: its start swaps back",
    )


@UPDATE_CHECKS.check(
    "clocks",
    "both clocks give a pending update the same time",
    why="Within one boot the boot clock decides, so a stepped wall clock changes nothing; where they part, somebody "
    "stepped it.",
)
def clocks(see: Probes) -> Result:
    """Wall clock against boot clock over a pending swap."""
    status = see.status
    update, left = status.pending.value, status.left
    if update is None or left is None:
        return _untold(see, status.layout.pending_record, status.pending) or skipped("no update is pending")
    if not left.same_boot:
        return note("the update was swapped in before this boot, so the wall clock decides its deadline")
    by_wall = update.deadline - see.clock.wall()
    by_boot = update.swapped_boottime + WELCOME_SECONDS - see.clock.boottime()
    ahead = by_boot - by_wall
    if abs(ahead) > _STEP_SECONDS:
        return warn(
            f"the wall clock was stepped {'forward' if ahead > 0 else 'back'} by {abs(ahead):.0f} s since the swap; the "
            "deadline goes by the boot clock and is right",
            f"left by the boot clock {by_boot:.0f} s, by the wall clock {by_wall:.0f} s",
            hint="find out who set it: chronyc tracking, or timedatectl timesync-status",
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
    untold = _untold(see, see.layout.update_record, see.status.update)
    if untold is not None:
        yield untold
        return
    for failed in update.failed if update is not None else ():
        yield warn(
            f"{failed.version} failed here and is refused: {failed.reason}",
            f"{see.layout.update_record}: {failed.version}, sequence {failed.sequence}, at {failed.at}",
            # Quoted, since whoever named the version wrote what an operator will paste.
            hint=f"when its cause is mended: {see.command('update', '--clear-failed', failed.version, root=True)}",
        )
    if update is None or not update.failed:
        yield ok("no version failed here")


@UPDATE_CHECKS.check(
    "floor",
    "what runs is not below the floor",
    why="Below its floor a node accepts nothing, not even what it runs: a reinstall of that release would be refused.",
)
def floor(see: Probes) -> Iterator[Result]:
    """The floor against what runs."""
    status = see.status
    recorded = "nothing" if status.update.value is None else str(status.update.value.sequence)
    evidence = [
        f"{status.layout.update_record}: {recorded}",
        f"[update] release_sequence: {status.config.update.release_sequence}",
        f"built into this bcd: {status.build.sequence}",
        *(
            f"slot {slot}: {record.version}, sequence {record.sequence or 'unknown'}"
            for slot in SLOTS
            if (record := status.record(slot)) is not None
        ),
    ]
    running = status.record(status.current.slot)
    if running is not None and 0 < running.sequence < status.floor:
        yield warn(
            f"{running.version} runs, whose sequence {running.sequence} is below the floor of {status.floor}",
            *evidence,
            hint=f"roll out a release whose sequence is {status.floor} or more",
        )
    if status.floor_known:
        yield ok(f"the floor is {status.floor}", *evidence)
        return
    untold = _untold(see, status.layout.update_record, status.update)
    yield untold or unknown(
        f"could not be told whether the floor is more than {status.floor}: {status.layout.update_record} is missing, and "
        f"{status.layout.slots_record} says nothing",
        *evidence,
    )


@UPDATE_CHECKS.check(
    "last-confirm",
    "a release was confirmed in the last 90 days",
    why="A node that was left out of rollouts for months is found by this line before it is found by an attacker.",
)
def last_confirm(see: Probes) -> Result:
    """Time since the last confirm."""
    untold = _untold(see, see.layout.update_record, see.status.update)
    if untold is not None:
        return untold
    update = see.status.update.value
    if update is None or update.confirmed is None:
        return note("no release was ever confirmed here")
    confirmed = update.confirmed
    release = f"{confirmed.version} (sequence {confirmed.sequence})"
    seconds = see.clock.wall() - confirmed.at
    if seconds < -_DAY_SECONDS:
        return note(f"{release} was confirmed in what is this clock's future: one of them was wrong")
    said = f"{release} was confirmed {ago(max(0.0, seconds))}"
    return note(f"{said}, and nothing since") if seconds > _LONG_DAYS * _DAY_SECONDS else ok(said)


@UPDATE_CHECKS.check(
    "release-expiry",
    "the release that runs can still be rolled out",
    why="A manifest's expiry stops nothing that a node holds: what runs goes on running, a pending update is confirmed and a "
    "rollback works. But no node that lacks the release takes it any more afterwards, so a rollout that is not done by "
    "then stops. A release that expired after its rollout is as it should be.",
)
def release_expiry(see: Probes) -> Result:
    """The expiry of the current slot's release, a pending one included, by the manifest that it was staged by."""
    if not in_use(see):
        return skipped(NOT_IN_USE)
    status = see.status
    untold = _untold(see, status.layout.slots_record, status.slots)
    if untold is not None:
        return untold
    slot = status.current.slot
    record = status.record(slot)
    if slot is None or record is None:
        return skipped("the current slot has no record (slots.links, slots.digests)")
    if record.expires_at is None:
        return skipped(f"the record of {record.version} says no expiry: it was adopted, or staged by an older bcd")
    # By the rules' own clock, but for the gateway's time, which only the agent hears.
    seconds = record.expires_at - max(see.clock.wall(), see.build.built_at)
    evidence = f"{status.layout.slots_record}: slot {slot}, {record.version} expires at {record.expires_at}"
    if seconds > _EXPIRY_DAYS * _DAY_SECONDS:
        return ok(f"{record.version} can be rolled out for {int(seconds / _DAY_SECONDS)} more days", evidence)
    update = status.pending.value
    if update is not None and update.to_slot == slot:
        # Between the swap and the welcome: this node is in the midst of a rollout, and the next ones are turned away.
        when = f"in {_span(seconds)}" if seconds > 0 else "by now"
        return note(
            f"{record.version} is pending here, and its manifest expires {when}: nodes that come after it refuse it",
            evidence,
            hint=_SIGN_ANEW,
        )
    if seconds <= 0:
        return ok(f"{record.version} expired {ago(-seconds)}; it goes on running, and no other node takes it", evidence)
    return note(
        f"the manifest of {record.version} expires in {_span(seconds)}: no node that lacks it takes it after that",
        evidence,
        hint=_SIGN_ANEW,
    )


def _span(seconds: float) -> str:
    return ago(seconds).removesuffix(" ago")


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
    holder = _holder(see, found.st_ino)
    if holder is None:
        return ok("nobody holds the update lock")
    return warn(
        f"the update lock is held by {holder}: an update is at work, or hangs",
        f"{path}: locked",
        hint=f"look again in a minute: {see.command('doctor', '--only', 'update.lock')}; still held, look at that process",
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
        return _no_agent(see)
    # `version` is Foreign where an agent said it; both sides as they are shown.
    running, current = clean(str(live.get("version"))), clean(str(see.status.version))
    if running != current:
        what = f"the current slot holds {current}" if in_use(see) else f"this bcd is {current}"
        return warn(
            f"the agent runs {running}, and {what}",
            f"{os.path.join(see.layout.data_dir, SOCKET_NAME)}: pid {live.get('pid')}",
            hint=restart(see),
        )
    error = live.get("error")
    doing = f"the agent runs {running} and is {live.get('phase')}"
    return note(f"{doing}; its last trouble: {error}") if error else ok(doing)


def _no_agent(see: Probes) -> Result:
    path = os.path.join(see.layout.data_dir, SOCKET_NAME)
    try:
        is_there = stat.S_ISSOCK(os.lstat(path).st_mode)
    except FileNotFoundError:
        is_there = False
    if is_there and not os.access(path, os.W_OK, effective_ids=True):
        return unknown(f"could not be told: this user may not ask {path}", hint=see.command("doctor", root=True))
    start = f"systemctl start {NODE_UNIT}" if see.has_systemd else see.command("node")
    return warn(
        "no agent answers on its socket, so nothing updates this node and nothing swaps back",
        f"{path}: {'no answer' if is_there else 'missing'}",
        hint=start,
    )


def _holder(see: Probes, inode: int) -> str | None:
    with open(os.path.join(see.proc_directory, "locks"), encoding="utf-8", errors="replace") as file:
        for line in file:
            words = line.split()
            if words[1:2] == ["FLOCK"] and words[5].endswith(f":{inode}"):
                return f"process {words[4]}"
    return None


def _size(path: str) -> str:
    try:
        found = os.lstat(path)
    except OSError:
        return "gone"
    return f"{found.st_size} bytes" if stat.S_ISREG(found.st_mode) else "no regular file"
