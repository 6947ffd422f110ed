"""Helper: the privileged half, on nodes that run as their own user."""

import errno
import os
import stat

from bcd.core.errors import HostError
from bcd.doctor.check import Registry, Result, fail, note, ok, skipped, unknown
from bcd.doctor.probes import Probes

HELPER_CHECKS = Registry("helper")

_MODE = 0o660
_ALONE = "the node runs as root alone ([helper] is not configured)"


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
        return skipped(_ALONE)
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


@HELPER_CHECKS.check(
    "answers",
    "the helper answers, and speaks this version's protocol",
    why="A helper that hangs, or is too old or too new for the node, confirms and rolls back nothing that the node asks for.",
)
def answers(see: Probes) -> Result:
    """Ask it which version it is."""
    if see.config.helper is None:
        return skipped(_ALONE)
    try:
        info = see.helper
    except HostError as error:
        return _no_answer(see, error)
    return ok(f"the helper answers (bcd {info.version}, protocol {info.protocol})")


@HELPER_CHECKS.check(
    "version",
    "the helper is of the version that the node runs",
    why="An update replaces the node alone: the helper goes on with the binary that it was started with, and so with its "
    "faults, until somebody restarts it.",
)
def version(see: Probes) -> Result:
    """Its own version against the current slot's."""
    if see.config.helper is None:
        return skipped(_ALONE)
    try:
        helper = see.helper.version
    except HostError:
        return skipped("the helper does not answer (helper.answers says why)")
    runs, pending = see.status.version, see.status.pending.value
    if helper == runs:
        return ok(f"helper and node are both bcd {runs}")
    if pending is not None:
        return ok(f"the helper is bcd {helper}, and the update to {pending.to_version} is not confirmed yet")
    return note(
        f"the helper still runs bcd {helper}, the node bcd {runs}",
        hint=f"{'' if see.euid == 0 else 'sudo '}systemctl restart bcd-helper.service",
    )


def _no_answer(see: Probes, error: HostError) -> Result:
    number = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
    if number == errno.ENOENT:
        return skipped("there is no socket to ask (helper.socket says more)")
    if number in (errno.EACCES, errno.EPERM):
        return unknown(
            "this user may not ask the helper",
            hint=see.command("doctor", "--only", "helper.*", root=True),
        )
    return fail(error.message, hint="systemctl restart bcd-helper.service")
