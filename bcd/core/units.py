"""The crash-loop units, as text: what systemd must know to bring the old binary back without any bcd or Python.

Two files with our marker in their first line, and the rollback script beside the slots (spec/self-update.md section 9):

    bcd-rollback.service            runs the script, which does the rest
    <unit>.d/50-bcd-rollback.conf   the start limit, and what happens at it

Measured on systemd 252: at the start limit `Result` keeps the last crash's word (`exit-code`), so it can't tell one
crash from the limit; `SubState` is `failed` only when no restart is to come, and the script asks for that. From 254 on
`OnFailure=` would fire at every crash; `RestartMode=direct` keeps it for the limit. `Restart=always`, since a release
that ends at once with status 0 is no better than one that crashes; stopping the service still stops it.
"""

import os
from importlib import resources
from typing import NamedTuple

from bcd.core.layout import Layout

SYSTEMD_DIRECTORY = "/run/systemd/system"
"""There only while systemd manages this machine's services."""
UNIT_DIRECTORY = "/etc/systemd/system"
NODE_UNIT = "bcd.service"
ROLLBACK_UNIT = "bcd-rollback.service"
MARKER = "# Written by bcd, which writes it anew when it differs. Changes of yours belong into a drop-in of your own."
DIRECT_SINCE = 254
"""The first systemd that knows `RestartMode=direct`."""


class UnitFile(NamedTuple):
    """A file as this version writes it."""

    path: str
    text: str
    mode: int
    marked: bool
    """Whether it lies among the operator's own units, and so has to carry our marker to be ours."""


def rollback_units(
    layout: Layout, *, unit: str, systemd_version: int, directory: str = UNIT_DIRECTORY
) -> tuple[UnitFile, ...]:
    """The files for a node that `unit` starts under a systemd of that version.

    Paths with blanks or what systemd expands are escaped as its unit files want it.
    """
    script = os.path.join(layout.slots_dir, "bcd-rollback.sh")
    words = " ".join(_word(word) for word in (script, layout.slots_dir, layout.records_dir, unit))
    rollback = f"""{MARKER}
[Unit]
Description=Swap bcd back after a crash loop
ConditionPathExists={_path(os.path.join(layout.records_dir, "upgrade.json"))}
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStart=/bin/sh {words}
"""
    direct = "RestartMode=direct\n" if systemd_version >= DIRECT_SINCE else ""
    limit = f"""{MARKER}
[Unit]
StartLimitIntervalSec=600
StartLimitBurst=5
OnFailure={ROLLBACK_UNIT}

[Service]
Restart=always
{direct}"""
    return (
        UnitFile(script, rollback_script(), 0o755, marked=False),
        UnitFile(os.path.join(directory, ROLLBACK_UNIT), rollback, 0o644, marked=True),
        UnitFile(os.path.join(directory, f"{unit}.d", "50-bcd-rollback.conf"), limit, 0o644, marked=True),
    )


def rollback_script() -> str:
    """The rollback script's text."""
    return resources.files("bcd.core").joinpath("rollback.sh").read_text(encoding="utf-8")


def _word(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if any(c in word for c in " \t'\"\\;") else escaped


def _path(path: str) -> str:
    return path.replace("%", "%%")
