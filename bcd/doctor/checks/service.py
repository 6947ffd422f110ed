"""Service: whether systemd starts the node, starts the right program, and brings the old one back in a crash loop."""

import os
import shlex
from collections.abc import Iterator
from itertools import zip_longest

from bcd.core.config import DEFAULT_PATH
from bcd.core.units import NODE_UNIT, ROLLBACK_UNIT, rollback_units
from bcd.doctor.check import Registry, Result, fail, note, ok, skipped, warn
from bcd.doctor.checks.slot_words import ago, in_use, is_regular, what_is
from bcd.doctor.probes import Probes

SERVICE_CHECKS = Registry("service")

_LATELY_SECONDS = 24 * 3600
_BURST = 5
_INTERVAL_MICROSECONDS = 600 * 1_000_000
_NO_SYSTEMD = "this machine has no systemd"
_NO_UNITS_YET = "no update has run here yet; the first one writes the crash-loop units"


def _absent(see: Probes) -> str | None:
    """Why there is no unit to look at; None where there is one."""
    if not see.has_systemd:
        return _NO_SYSTEMD
    state = see.unit().get("LoadState", "unknown")
    return None if state == "loaded" else f"there is no {NODE_UNIT} (LoadState={state})"


@SERVICE_CHECKS.check(
    "manager",
    "systemd starts the node",
    why="A release that crashes before it can do anything is swapped back by a systemd unit alone. Without systemd a crash "
    "loop waits for an operator; the deadline's rollback still works when the new binary runs long enough.",
)
def manager(see: Probes) -> Result:
    """No systemd is a note, not a failure."""
    if not see.has_systemd:
        return note(
            "no systemd here: a crash-looping update is not rolled back by itself", f"{see.systemd_directory}: missing"
        )
    why = _absent(see)
    if why is not None:
        return note(f"systemd runs here and does not start bcd: {why}, so nothing ends a crash loop")
    return ok(f"systemd starts the node as {NODE_UNIT}", f"FragmentPath={see.unit().get('FragmentPath', '')}")


@SERVICE_CHECKS.check(
    "exec-start",
    "the unit starts the entrypoint",
    why="An updater that switches one path while the service starts another reports success and changes nothing.",
)
def exec_start(see: Probes) -> Result:
    """The unit's ExecStart against the entrypoint."""
    why = _absent(see)
    if why is not None:
        return skipped(why)
    started = see.unit().get("ExecStart", "")
    program = started.partition("path=")[2].partition(" ;")[0].strip()
    if not program or _place(program) != _place(see.layout.entrypoint):
        return fail(
            f"{NODE_UNIT} starts {program or 'nothing'}, and updates switch {see.layout.entrypoint}: they are refused",
            f"ExecStart={started}",
            hint=f"systemctl edit {NODE_UNIT}, under [Service] an empty ExecStart= and then "
            f"ExecStart={_node_command(see)}; then systemctl restart {NODE_UNIT}",
        )
    return ok(f"{NODE_UNIT} starts {program}", f"ExecStart={started}")


def _place(path: str) -> tuple[str, str]:
    # A directory may have two names (/bin and /usr/bin); the last component must be this very link.
    directory, name = os.path.split(path)
    return os.path.realpath(directory), name


def _node_command(see: Probes) -> str:
    config = () if see.config_path == DEFAULT_PATH else ("--config", see.config_path)
    return shlex.join([see.layout.entrypoint, "node", *config])


@SERVICE_CHECKS.check(
    "active",
    "the service runs",
    why="A stopped service neither updates nor swaps back, and a pending release past its deadline waits for its start.",
)
def active(see: Probes) -> Result:
    """ActiveState, and the result where it failed."""
    why = _absent(see)
    if why is not None:
        return skipped(why)
    unit = see.unit()
    state, sub, result = (unit.get(key, "unknown") for key in ("ActiveState", "SubState", "Result"))
    evidence = f"ActiveState={state} SubState={sub} Result={result}"
    if state in ("active", "reloading"):
        return ok(f"{NODE_UNIT} is {state}", evidence)
    if state == "failed":
        return fail(
            f"{NODE_UNIT} failed ({result})",
            evidence,
            hint=f"journalctl -u {NODE_UNIT} -e; then systemctl reset-failed {NODE_UNIT} && systemctl start {NODE_UNIT}",
        )
    if state in ("activating", "deactivating"):
        return warn(f"{NODE_UNIT} is {state} ({sub}, {result})", evidence, hint=f"journalctl -u {NODE_UNIT} -e")
    return warn(f"{NODE_UNIT} is {state} ({sub})", evidence, hint=f"systemctl start {NODE_UNIT}")


@SERVICE_CHECKS.check(
    "restarts",
    "the service was not restarted after failures in the last day",
    why="Restarts that nobody asked for eat the start limit, at which a pending release is swapped back. One of last month "
    "is no reason to look today.",
)
def restarts(see: Probes) -> Result:
    """NRestarts, since the unit was last started by hand, and when the process that runs was started."""
    why = _absent(see)
    if why is not None:
        return skipped(why)
    count = see.unit().get("NRestarts", "0")
    if count in ("", "0"):
        return ok(f"systemd did not have to restart {NODE_UNIT}")
    times = "once" if count == "1" else f"{count} times"
    started = see.unit().get("ExecMainStartTimestampMonotonic", "")
    evidence = f"NRestarts={count} ExecMainStartTimestamp={see.unit().get('ExecMainStartTimestamp', '')}"
    # Microseconds of CLOCK_MONOTONIC; 0 where it was never started.
    seconds = see.monotonic() - int(started) / 1e6 if started.isdigit() and started != "0" else None
    if seconds is not None and seconds > _LATELY_SECONDS:
        return ok(f"systemd restarted {NODE_UNIT} {times} by itself, the last time {ago(seconds)}", evidence)
    last = "" if seconds is None else f", the last time {ago(max(0.0, seconds))}"
    return warn(
        f"systemd restarted {NODE_UNIT} {times} by itself{last}",
        evidence,
        hint=f"journalctl -u {NODE_UNIT} -p warning -e",
    )


@SERVICE_CHECKS.check(
    "start-limit",
    "five failed starts in 600 s are the limit",
    why="The start limit is what a crash loop is told by. A looser one leaves the node without a session for longer, a "
    "tighter one swaps a good release back over two restarts.",
)
def start_limit(see: Probes) -> Result:
    """StartLimitBurst and StartLimitIntervalSec as the rules say."""
    why = _unwritten(see)
    if why is not None:
        return skipped(why)
    unit = see.unit()
    burst, interval = unit.get("StartLimitBurst", ""), _microseconds(unit.get("StartLimitIntervalUSec", ""))
    evidence = f"StartLimitBurst={burst} StartLimitIntervalUSec={unit.get('StartLimitIntervalUSec', '')}"
    if burst == str(_BURST) and interval == _INTERVAL_MICROSECONDS:
        return ok("five failed starts in 600 s are the limit", evidence)
    return warn(
        "the start limit is not five in 600 s, so a crash loop is told later or earlier than the rules say",
        evidence,
        hint=f"systemctl edit {NODE_UNIT}, under [Unit] StartLimitIntervalSec=600 and StartLimitBurst=5; look for a drop-in "
        f"that says otherwise: systemctl cat {NODE_UNIT}",
    )


def _unwritten(see: Probes) -> str | None:
    """As `_absent`, and also where our units are still to be written: by the first update."""
    why = _absent(see)
    return why if why is not None or in_use(see) else _NO_UNITS_YET


@SERVICE_CHECKS.check(
    "crash-loop-rollback",
    "a crash loop starts the rollback unit",
    why="When a new release can't run at all, only this unit brings the old one back.",
)
def crash_loop_rollback(see: Probes) -> Result:
    """OnFailure wired, and the rollback unit there and able to do its work."""
    why = _unwritten(see)
    if why is not None:
        return skipped(why)
    on_failure = see.unit().get("OnFailure", "").split()
    if ROLLBACK_UNIT not in on_failure:
        return warn(
            f"{NODE_UNIT} does not start {ROLLBACK_UNIT} on failure: a crash-looping update is not rolled back",
            f"OnFailure={' '.join(on_failure)}",
            hint=f"systemctl daemon-reload; where that does not help: systemctl edit {NODE_UNIT}, under [Unit] "
            f"OnFailure={ROLLBACK_UNIT}",
        )
    rollback = see.unit(ROLLBACK_UNIT)
    if rollback.get("LoadState") != "loaded":
        return fail(
            f"{NODE_UNIT} starts {ROLLBACK_UNIT} on failure, and there is no such unit",
            f"LoadState={rollback.get('LoadState', 'unknown')}",
            hint=f"ls -l {shlex.quote(os.path.join(see.unit_directory, ROLLBACK_UNIT))}; systemctl daemon-reload; where it "
            "is missing, the next update writes it",
        )
    if rollback.get("NeedDaemonReload") == "yes" or see.unit().get("NeedDaemonReload") == "yes":
        return warn(
            "a unit changed on disk after systemd read it, so a crash loop may not be rolled back",
            *(
                f"{name}: NeedDaemonReload={see.unit(name).get('NeedDaemonReload')}"
                for name in (NODE_UNIT, ROLLBACK_UNIT)
            ),
            hint="systemctl daemon-reload",
        )
    return ok(f"a crash loop starts {ROLLBACK_UNIT}")


@SERVICE_CHECKS.check(
    "units",
    "the rollback units are those that this version writes",
    why="Each update writes them anew where they differ. An old or edited one may bring nothing back in a crash loop.",
)
def units(see: Probes) -> Iterator[Result]:
    """Drift of what lies on the disk from what this version writes."""
    why = _unwritten(see)
    if why is not None:
        yield skipped(why)
        return
    version = see.systemd_version
    files = rollback_units(see.layout, unit=NODE_UNIT, systemd_version=version, directory=see.unit_directory)
    drifted = False
    for file in files:
        found = _text(file.path)
        if found == file.text:
            continue
        drifted = True
        what = f"is {what_is(file.path)}" if found is None else "differs from what this version writes"
        yield warn(
            f"{file.path} {what}, so a crash loop may not be rolled back",
            _first_difference(found or "", file.text),
            hint="the next update writes it anew"
            + ("" if found is None else f"; what is there now: cat {shlex.quote(file.path)}"),
        )
    if not drifted:
        yield ok("the rollback units are those that this version writes", *(file.path for file in files))


def _text(path: str) -> str | None:
    if not is_regular(path):
        return None
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _first_difference(found: str, wanted: str) -> str:
    pairs = zip_longest(found.splitlines(), wanted.splitlines(), fillvalue="(nothing)")
    return next((f"there: {one}; to be: {two}" for one, two in pairs if one != two), "only the end of the file differs")


_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


def _microseconds(span: str) -> int | None:
    """A systemd time span (`10min`, `1min 30s`) in microseconds; None where it is none."""
    total = 0
    for word in span.split():
        digits = word.rstrip("abcdefghijklmnopqrstuvwxyz")
        unit = word[len(digits) :]
        if not digits.isdigit() or unit not in _UNITS:
            return None
        total += int(digits) * _UNITS[unit]
    return total if span else None
