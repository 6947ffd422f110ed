"""Helper: the privileged half, on nodes that run as their own user."""

import os
import stat

from bcd.doctor.check import Registry, Result, fail, ok, skipped
from bcd.doctor.probes import Probes

HELPER_CHECKS = Registry("helper")

_MODE = 0o660


@HELPER_CHECKS.check(
    "socket",
    "the helper's socket is there, and only its group may speak",
    why="The node can neither swap nor confirm without its helper, and whoever else may speak to it is one step closer to "
    "root.",
)
def helper_socket(see: Probes) -> Result:
    """The socket's presence, owner and mode."""
    helper = see.config.helper
    if helper is None:
        return skipped("the node runs as root alone ([helper] is not configured)")
    try:
        found = os.lstat(helper.socket)
    except FileNotFoundError:
        found = None
    if found is None or not stat.S_ISSOCK(found.st_mode):
        return fail(
            f"there is no socket at {helper.socket}, so this node can't update itself",
            f"{helper.socket}: {'missing' if found is None else 'no socket'}",
            hint="systemctl start bcd-helper.service",
        )
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != 0 or mode & ~_MODE:
        return fail(
            f"{helper.socket} may be reached by more than root and its group",
            f"{helper.socket}: uid {found.st_uid}, gid {found.st_gid}, mode {mode:04o}",
            hint="systemctl restart bcd-helper.service, which makes it anew",
        )
    return ok(f"{helper.socket} is root's and its group's alone")
