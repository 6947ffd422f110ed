"""The whole of bcd as one executable file, stamped as a release: the lab's binaries.

A binary is a zip of compiled modules behind a few lines of shell, so that the kernel can run it, any number of
stamped variants can be made in milliseconds, and no compiler is needed. Dependencies are those of the interpreter that
runs the lab. Same stamp, same bytes.
"""

import importlib.util
import marshal
import shlex
import sys
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import bcd
from bcd.core.errors import UsageError
from bcd.lab.runtime import Runtime

RUNS_BCD = "from bcd.lab.binary import run\nrun()\n"
EXITS_AT_ONCE = "raise SystemExit(1)\n"
"""A program that ends with status 1 before any of bcd's code runs."""
NOT_A_PROGRAM = b"This was to be a program.\n"
"""A file that no kernel executes."""
PROGRAM_OF_ANOTHER_MACHINE = b"\x7fELF\x02\x02\x01" + bytes(9) + b"\x00\x02\x00\x16\x00\x00\x00\x01" + bytes(40)
"""The header of a program for the s390x, which no lab runs on."""

_LAUNCHER = """#!/bin/sh
{exports}exec {interpreter} -s -B /proc/self/fd/9 "$0" "$@" 9<"$0"
"""
# Why through an open file: an update replaces the very name that a running process was started by, and Python loads
# modules when they are first wanted. By name it would load them from the new release into the old process.
# Why -s: in a split lab root runs it too, and loads nothing from a home directory.
# Why 9: systemd passes a service's sockets from 3 on.
# Why a shell: a shebang line holds one argument, no spaces, and on older kernels 127 bytes.

_UNCHECKED_HASH_PYC = (0b01).to_bytes(4, "little")
"""The header flag (PEP 552) of compiled code that is loaded as it is, without a look at any source."""
_EARLIEST = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """What a binary claims to be (see `bcd.core.build`)."""

    version: str
    sequence: int
    built_at: int
    """Unix seconds."""
    fakehw: bool = True
    """Whether it leaves systemd alone, and lets clear text through."""
    main: str = RUNS_BCD
    """The source of its `__main__`: what runs before anything else does."""


class Packer:
    """bcd's own source, compiled once, made into any number of binaries."""

    def __init__(self, runtime: Runtime | None = None) -> None:
        """Compile the package that is running; the binaries are to run by `runtime`, or by this interpreter.

        Raises:
            UsageError: `no-source`: this bcd is itself packed, so there is nothing to make binaries from.
        """
        package = Path(bcd.__file__).parent
        if not package.is_dir() or getattr(sys, "frozen", False):
            raise UsageError(
                "no-source",
                "this bcd is a packed binary; the lab makes its releases from bcd's source",
                "run the lab from an installed source tree: pip install -e . && bcd lab tour",
            )
        runtime = runtime or Runtime()
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in runtime.environment.items())
        self._launcher = _LAUNCHER.format(exports=exports, interpreter=shlex.quote(runtime.interpreter)).encode()
        self._files = dict(_package_files(package))

    def pack(self, stamp: Stamp) -> bytes:
        """The executable file of one release."""
        stamped = (
            f"VERSION = {stamp.version!r}\nSEQUENCE = {stamp.sequence}\nBUILT_AT = {stamp.built_at}\n"
            f"FAKEHW = {stamp.fakehw}\n"
        )
        files = {
            **self._files,
            "__main__.pyc": _compiled(stamp.main.encode(), "__main__.py"),
            "bcd/_stamp.pyc": _compiled(stamped.encode(), "bcd/_stamp.py"),
        }
        packed = BytesIO(self._launcher)
        packed.seek(0, 2)
        with zipfile.ZipFile(packed, "a") as archive:
            for name in sorted(files):
                archive.writestr(zipfile.ZipInfo(name, _EARLIEST), files[name], zipfile.ZIP_DEFLATED)
        return packed.getvalue()


def _package_files(package: Path) -> list[tuple[str, bytes]]:
    """Every file of the package by its name in the zip: modules compiled, the rest (rollback.sh, styles) as it is."""
    files = []
    for path in sorted(package.rglob("*")):
        inside = path.relative_to(package.parent)
        name = inside.as_posix()
        cached = any(part == "__pycache__" or part.startswith(".") for part in inside.parts)
        if cached or not path.is_file() or name == "bcd/_stamp.py":
            continue
        if path.suffix == ".py":
            files.append((name + "c", _compiled(path.read_bytes(), name)))
        else:
            files.append((name, path.read_bytes()))
    return files


def _compiled(source: bytes, name: str) -> bytes:
    code = compile(source, name, "exec", dont_inherit=True)
    header = importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH_PYC + importlib.util.source_hash(source)
    return header + marshal.dumps(code)
