"""What this build is: the stamp that release builds and the lab's binaries carry (spec/self-update.md section 1).

The stamp is the module `bcd._stamp`, written into a binary when it is packed; a source checkout has none.
"""

import os
from importlib import import_module
from typing import NamedTuple

from bcd import __version__

PRODUCT = "bcd"


class Build(NamedTuple):
    """A build's stamp."""

    version: str
    sequence: int
    """The release sequence; 0 where the build is no release."""
    built_at: int
    """Unix seconds; 0 where unknown. No clock of this machine can truly read less."""
    fakehw: bool
    """Simulated hardware: writes no systemd units and lets clear text through."""


def this_build() -> Build:
    """The running binary's stamp."""
    try:
        stamp = import_module("bcd._stamp")
    except ModuleNotFoundError:
        return Build(__version__, 0, 0, fakehw=False)
    return Build(str(stamp.VERSION), int(stamp.SEQUENCE), int(stamp.BUILT_AT), fakehw=bool(stamp.FAKEHW))


_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "armv7l": "arm"}


def this_platform() -> str:
    """This machine as a manifest names it: os-arch, `linux-amd64`."""
    uname = os.uname()
    return f"{uname.sysname.lower()}-{_ARCHITECTURES.get(uname.machine, uname.machine.lower())}"
