"""The systems that machines are made of: this one, and a newer Debian that is fetched once and kept outside of the tree.

The two differ in what `OnFailure=` means beside `Restart=` (from systemd 254 on it fires at every failure).
"""

import fcntl
import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

CACHE = Path(os.environ.get("BCD_SYSTEM_CACHE", "/var/cache/bcd-tests"))
_SUITE = "trixie"
_PACKAGES = "systemd,systemd-sysv,dbus,python3,ca-certificates"
"""python3 for its libraries: the lab's interpreter is bound in."""
_FETCH_SECONDS = 900


class Base(NamedTuple):
    """A root file system to boot a machine on."""

    name: str
    suite: str | None
    """None: the root of this very system."""


HOST = Base("host", None)
NEWER = Base(_SUITE, _SUITE)
BASES = (HOST, NEWER)


class Unavailable(Exception):
    """The base can't be had here; says why."""


@functools.cache
def root_of(base: Base) -> Path:
    """The base's directory, fetched where it is missing.

    Raises:
        Unavailable: there is no debootstrap, or it failed (offline, say).
    """
    if base.suite is None:
        return Path("/")
    CACHE.mkdir(parents=True, exist_ok=True)
    place = CACHE / base.suite
    with (CACHE / f"{base.suite}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes want it at once
        if not place.is_dir():
            _fetch(base.suite, place)
    return place


def _fetch(suite: str, place: Path) -> None:
    if shutil.which("debootstrap") is None:
        raise Unavailable(f"{suite} needs debootstrap (the package debootstrap)")
    unfinished = place.with_name(f"{suite}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    command = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", suite, str(unfinished)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{suite} was not there after {_FETCH_SECONDS} s") from None
    if ran.returncode:
        said = [line for line in ran.stdout.splitlines() if line.startswith("E:")] or ["it failed"]
        raise Unavailable(f"debootstrap {suite}: {said[-1]}")
    unfinished.rename(place)
