"""What must hold before root's half starts: no place that it trusts can be changed by anybody but root (section 10).

The attack: the node, taken over, owns a directory on the way to the slots, the entrypoint, root's configuration or the
socket, and puts another in its place between root's check and root's use. So the helper looks at every step of every
way, links resolved one by one, and at each file of ours in the slots directory, which an earlier owner may still hold.
"""

import os
import pwd
import shlex
import stat
from typing import NamedTuple

from bcd.core.config import Config
from bcd.core.errors import NotPermitted, UsageError
from bcd.core.layout import Layout
from bcd.core.wayin import Step, way_to


class NodeUser(NamedTuple):
    """Who may speak beside root."""

    name: str
    uid: int
    gid: int


def require_root(config: Config) -> None:
    """The helper is root's.

    Raises:
        NotPermitted: `needs-root`.
        UsageError: `no-helper`, the configuration has no `[helper]`.
    """
    if config.helper is None:
        raise UsageError(
            "no-helper",
            f"{config.path} has no table [helper], so the node keeps its own records and needs no helper",
            "add [helper] with node_user, or run `bcd node` as root without a helper",
        )
    if os.geteuid() != 0:
        raise NotPermitted("needs-root", "the helper runs as root", "systemctl start bcd-helper.service")


def find_node_user(config: Config) -> NodeUser:
    """The user that `[helper] node_user` names; a number is a uid, with the group of the same number.

    Raises:
        UsageError: `bad-config`, there is none of that name, or it is root.
    """
    name = "" if config.helper is None else config.helper.node_user
    hint = "set [helper] node_user to the user that bcd.service runs as"
    is_number = name.isascii() and name.isdecimal()
    try:
        found = pwd.getpwuid(int(name)) if is_number else pwd.getpwnam(name)
        user = NodeUser(found.pw_name, found.pw_uid, found.pw_gid)
    except (KeyError, OverflowError):
        if not is_number or not 0 < int(name) < 2**32 - 1:
            raise UsageError("bad-config", f"{config.path}: there is no user {name!r}", hint) from None
        user = NodeUser(name, int(name), int(name))
    if user.uid == 0:
        raise UsageError("bad-config", f"{config.path}: [helper] node_user is root", hint)
    return user


def require_safe_places(config: Config, layout: Layout) -> None:
    """Slots and entrypoint lie outside `data_dir`, and everything on the way to what root trusts is root's alone.

    Raises:
        UsageError: `unsafe-place`, with the very directory or file and the command that mends it.
    """
    socket = "" if config.helper is None else config.helper.socket
    data_dir = os.path.realpath(layout.data_dir)
    for key, place in (("[update] slots_dir", layout.slots_dir), ("[update] entrypoint", layout.entrypoint)):
        # Both as it is written and as it resolves: a link at the entrypoint itself must not lead its place elsewhere.
        real = os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place))
        for inside, of in ((real, data_dir), (os.path.realpath(place), data_dir), (place, layout.data_dir)):
            if os.path.commonpath([inside, of]) == of:
                raise UsageError(
                    "unsafe-place",
                    f"{key} {place} lies inside data_dir {layout.data_dir}, which is the node's",
                    f"set {key} to a place of root's in {config.path}",
                )
    directories = (layout.slots_dir, layout.records_dir, os.path.dirname(layout.entrypoint), os.path.dirname(socket))
    for place in dict.fromkeys((*directories, os.path.join(os.getcwd(), config.path))):
        _require_root_alone(place)
    _require_own_files(layout.slots_dir)


def _require_root_alone(place: str) -> None:
    try:
        for step in way_to(place):
            if not step.is_roots_alone:
                raise _unsafe(step, place)
    except OSError as error:
        raise UsageError(
            "unsafe-place", f"the way to {place} can't be looked at: {error.strerror}: {error.filename}", "mend it"
        ) from error


def _require_own_files(slots_dir: str) -> None:
    try:
        names = sorted(os.listdir(slots_dir))
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError("unsafe-place", f"{slots_dir} can't be looked at: {error.strerror}", "mend it") from error
    for name in names:
        path = os.path.join(slots_dir, name)
        try:
            found = os.lstat(path)
        except FileNotFoundError:  # a temporary name of another bcd's, just now
            continue
        step = Step(path, found.st_uid, found.st_mode)
        if not step.is_roots_alone:
            raise _unsafe(step, slots_dir)


def _unsafe(step: Step, place: str) -> UsageError:
    name, mode = shlex.quote(step.path), stat.S_IMODE(step.mode)
    if stat.S_ISREG(step.mode):
        # A new file: whoever could write the old one may hold it open for writing, whatever its owner and mode are now.
        fresh = shlex.quote(f"{step.path}.mended")
        mend = f"install -m {mode & 0o755:04o} {name} {fresh} && mv -f {fresh} {name}"
    elif stat.S_ISLNK(step.mode):
        mend = f"chown -h root:root {name}"
    else:
        mend = f"chown root:root {name} && chmod go-w {name}" if step.uid != 0 else f"chmod go-w {name}"
    return UsageError(
        "unsafe-place",
        f"{step.path}, on the way to {place}, is not root's alone (uid {step.uid}, mode {mode:04o}): "
        "whoever may write it chooses what root starts",
        mend,
    )
