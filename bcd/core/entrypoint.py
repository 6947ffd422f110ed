"""The entrypoint: what lies where the service starts bcd, and whether it may be switched (section 6, adopt).

    plain file            adopted: its bytes go into a slot, a link takes its place
    link to our `current` switched already
    anything else         `unsafe-entrypoint`, touched by nobody

A chain of links that ends at ours is somewhere else too: each hop of it can be moved by whoever owns it.
"""

import os
import shlex
import stat
from enum import Enum

from bcd.core.errors import Refusal
from bcd.core.layout import Layout
from bcd.core.links import CURRENT, read_link

_OTHERS_MAY_WRITE = 0o022


class EntrypointKind(Enum):
    """What may be done with it."""

    LINKED = "linked"
    ADOPTABLE = "adoptable"


def inspect_entrypoint(layout: Layout, *, as_root: bool) -> EntrypointKind:
    """Say what the entrypoint is.

    Args:
        layout: the node's paths.
        as_root: whether only a file that is root's alone may be adopted.

    Raises:
        Refusal: `unsafe-entrypoint`, with what it is and the command that mends it.
    """
    path = layout.entrypoint
    try:
        found = os.lstat(path)
    except OSError as error:
        raise _unsafe(f"{path} can't be looked at: {error.strerror}", "install bcd there") from error
    if stat.S_ISLNK(found.st_mode):
        return _inspect_link(layout)
    if not stat.S_ISREG(found.st_mode):
        raise _unsafe(f"{path} is neither a file nor a link", "install bcd there")
    if found.st_size == 0 or not found.st_mode & 0o111:
        raise _unsafe(f"{path} is no program: empty or not executable", "install bcd there")
    if as_root and (found.st_uid != 0 or found.st_mode & _OTHERS_MAY_WRITE):
        # The attack: whoever may write the file would have root install and start it.
        raise _unsafe(
            f"{path} is not root's alone (uid {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o})",
            f"chown root:root {shlex.quote(path)} && chmod 0755 {shlex.quote(path)}",
        )
    return EntrypointKind.ADOPTABLE


def _inspect_link(layout: Layout) -> EntrypointKind:
    path = layout.entrypoint
    target = os.readlink(path)
    directory, name = os.path.split(os.path.join(os.path.dirname(path), target))
    mend = f"{shlex.join(['ln', '-sfn', layout.current, path])}, or set [update] entrypoint to what the service starts"
    if name != CURRENT or os.path.realpath(directory) != os.path.realpath(layout.slots_dir):
        raise _unsafe(f"{path} is a link to {target}, not to {layout.current}", mend)
    current = read_link(layout.slots_dir, CURRENT)
    if current.slot is None or not os.path.isfile(layout.current):
        raise _unsafe(f"{path} leads to {layout.current}, which leads to no slot's file", "install bcd there")
    return EntrypointKind.LINKED


def _unsafe(what: str, hint: str) -> Refusal:
    return Refusal("unsafe-entrypoint", f"the entrypoint can't be switched: {what}", hint)
