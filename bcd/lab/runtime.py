"""The Python that a split lab's binaries run by: one that the node's user can reach.

The lab's own interpreter often lies in a home directory that is closed to others, with everything that bcd depends on.
Then the lab gets a copy in its own directory, which is root's and for everybody to read: the interpreter, its standard
library, and what bcd requires, found by the metadata of what is installed.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bcd.core.errors import HostError

_LEFT_OUT = shutil.ignore_patterns(
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "lib2to3",
    "ensurepip",
    "site-packages",
    "dist-packages",
    "config-*",
)
_PROBE = "import cryptography.hazmat.bindings._rust, click, msgspec, psutil, rich, truststore, urllib3, websockets"
_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """An interpreter and what has to be in its environment."""

    interpreter: str = sys.executable
    environment: Mapping[str, str] = field(default_factory=dict)

    def run_as(self, uid: int, program: str, *arguments: str, seconds: float) -> "subprocess.CompletedProcess[str]":
        """Run a few lines of Python as a user of no group but its own.

        Raises:
            OSError: it could not be started.
            subprocess.TimeoutExpired: it took longer than `seconds`.
        """
        return subprocess.run(
            [self.interpreter, "-s", "-B", "-c", program, *arguments],
            user=uid,
            group=uid,
            extra_groups=(),
            cwd="/",
            env={"PATH": os.defpath, **self.environment},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )


def runtime_for(uid: int, directory: Path) -> Runtime:
    """This interpreter where the user `uid` can run it, else a copy of it, made in `directory`.

    Raises:
        HostError: `no-interpreter`, neither can be run by that user.
    """
    own = Runtime()
    if _fault(own, uid) is None:
        return own
    copied = _copy(directory)
    fault = _fault(copied, uid)
    if fault is not None:
        raise HostError(
            "no-interpreter",
            f"the node's user can run neither {sys.executable} nor a copy of it: {fault}",
            "install bcd with an interpreter outside of home directories, /usr/bin/python3 for one",
        )
    return copied


def _fault(runtime: Runtime, uid: int) -> str | None:
    try:
        done = runtime.run_as(uid, _PROBE, seconds=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it ended at once"])[-1]


def _copy(directory: Path) -> Runtime:
    library = directory / sys.platlibdir / f"python{sys.version_info.major}.{sys.version_info.minor}"
    for source in dict.fromkeys(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")):
        shutil.copytree(source, library, ignore=_LEFT_OUT, dirs_exist_ok=True)
    packages = directory / "packages"
    for distribution in _required("bcd"):
        for file in distribution.files or ():
            found = Path(str(distribution.locate_file(file)))
            if ".." not in file.parts and found.is_file():
                target = packages / Path(*file.parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(found, target)
    interpreter = directory / "bin" / "python3"
    interpreter.parent.mkdir()
    shutil.copy(os.path.realpath(getattr(sys, "_base_executable", sys.executable)), interpreter)
    shared = directory / "shared"
    shared.mkdir()
    for name in _shared_libraries():
        shutil.copy(name, shared)
    # By PYTHONPATH, since a distribution's Python may look for packages elsewhere than in site-packages.
    environment = {"PYTHONHOME": str(directory), "PYTHONPATH": str(packages), "LD_LIBRARY_PATH": str(shared)}
    return Runtime(interpreter=str(interpreter), environment=environment)


def _required(name: str, seen: set[str] | None = None) -> Iterator[importlib.metadata.Distribution]:
    """What is installed of the requirements of `name`, and of theirs."""
    seen = set() if seen is None else seen
    for requirement in importlib.metadata.requires(name) or ():
        found = re.match(r"[A-Za-z0-9._-]+", requirement)
        if found is None or "extra ==" in requirement:
            continue
        required = re.sub(r"[-_.]+", "-", found[0]).lower()
        if required in seen:
            continue
        seen.add(required)
        try:
            distribution = importlib.metadata.distribution(required)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform
        yield distribution
        yield from _required(required, seen)


def _shared_libraries() -> set[str]:
    """The interpreter's own library, where it is one of its own."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        return {path for line in maps if "/libpython" in line for path in [line.split(maxsplit=5)[-1].strip()]}
