"""Host: the machine underneath."""

import os
import shlex
import subprocess
from collections.abc import Iterator

from bcd.doctor.check import Registry, Result, note, ok, skipped, unknown, warn
from bcd.doctor.probes import Probes, why_it_did_not_run

HOST_CHECKS = Registry("host")

_MIB = 1024 * 1024
_LEAST_MEMORY_BYTES = 128 * _MIB
_FULL_PERCENT = 95
_SUPPORTED = ("linux-amd64", "linux-arm64")


@HOST_CHECKS.check(
    "clock-synchronised",
    "the clock is kept right",
    why="Manifests and certificates expire by the clock.",
)
def clock_synchronised(see: Probes) -> Result:
    """What systemd's timedated says."""
    if not see.has_systemd:
        return skipped("this machine has no systemd to ask")
    try:
        ran = see.run(["timedatectl", "show", "--property=NTPSynchronized", "--value"], see.timeout_seconds)
    except FileNotFoundError:
        return skipped("timedatectl is not installed")
    except (OSError, subprocess.TimeoutExpired) as error:
        return unknown(f"could not be told: timedatectl did not answer: {why_it_did_not_run(error)}")
    answer = ran.stdout.strip()
    if answer == "yes":
        return ok("the clock is synchronised", "NTPSynchronized=yes")
    if answer == "no":
        return warn(
            "the clock is not synchronised", "NTPSynchronized=no", hint="timedatectl set-ntp true; or install chrony"
        )
    said = next(iter((ran.stderr.strip() or answer).splitlines()), "nothing")
    return unknown(
        f"could not be told: timedatectl ended with {ran.status}",
        f"it said: {said}",
        hint="timedatectl timesync-status",
    )


@HOST_CHECKS.check(
    "memory",
    "there is memory for an update",
    why="Old and new binary do not run at once, but a download and a start need some room; a machine that is out of it kills "
    "the new binary and swaps it back.",
)
def memory(see: Probes) -> Result:
    """What the kernel says is available."""
    see.doing("asking for the free memory")
    available = see.available_memory()
    evidence = f"{available // _MIB} MiB available"
    if available < _LEAST_MEMORY_BYTES:
        return warn(
            f"only {available // _MIB} MiB of memory are available, and an update wants {_LEAST_MEMORY_BYTES // _MIB}",
            evidence,
            hint="ps aux --sort=-rss | head",
        )
    return ok(f"{available // _MIB} MiB of memory are available", evidence)


@HOST_CHECKS.check(
    "disk",
    "the disks that bcd writes to are not nearly full",
    why="Whether the next update fits is slots.room's to say; this is for whoever wants to know before that. What fills a "
    "disk is seldom bcd, and a full one takes its records, its log and everybody else's with it.",
)
def disk(see: Probes) -> Iterator[Result]:
    """Free space of each place that is written to, by psutil."""
    good = []
    standing = [_standing(path) for path in (see.layout.data_dir, see.layout.slots_dir)]
    for place in {os.stat(place).st_dev: place for place in reversed(standing)}.values():
        see.doing(f"asking how full the disk of {place} is")
        free, used_percent = see.free_disk(place)
        evidence = f"{place}: {free // _MIB} MiB free, {used_percent:.0f} % in use"
        if used_percent >= _FULL_PERCENT:
            yield note(
                f"the disk of {place} is {used_percent:.0f} % full, {free // _MIB} MiB are free",
                evidence,
                hint=shlex.join(["df", "-h", place]),
            )
        else:
            good.append(evidence)
    if good:
        yield ok("there is free disk where bcd writes", *good)


def _standing(path: str) -> str:
    """`path`, or the nearest directory above it that exists."""
    while not os.path.exists(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


@HOST_CHECKS.check(
    "platform",
    "releases are made for this platform",
    why="A release without a file for this platform is refused (no-artifact).",
)
def platform(see: Probes) -> Result:
    """What this machine is, as manifests name it."""
    if see.platform in _SUPPORTED:
        return ok(f"this is {see.platform}")
    return note(f"this is {see.platform}: make sure that releases have a file for it")
