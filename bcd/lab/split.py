"""A lab that runs split: the node under a throw-away user, `bcd helper` as root beside it.

The user is a number that nobody has: no entry in the user database, no process, so that nothing of this machine is its
to read but what is everybody's. The number comes from the range that systemd gives to users for a while (DynamicUser=).
The directory must be root's alone all the way, as the helper demands: a temporary one is made where that is so.
"""

import grp
import os
import pwd
import random
import shlex
import shutil
import sys
from pathlib import Path

from bcd.core.errors import NotPermitted, UsageError
from bcd.core.wayin import way_to

FIRST_UID, LAST_UID = 61184, 65519
PLACE = Path("/var/lib")
"""Where a temporary lab is made: /tmp is everybody's, which the helper refuses."""
_PATH_LIMIT_BYTES = 60
"""What leaves room for a node's socket in the 108 bytes of a socket's address."""


def require_root() -> None:
    """Only root can start a process as another user.

    Raises:
        NotPermitted: `needs-root`, with the command.
    """
    if os.geteuid() != 0:
        program = shutil.which(sys.argv[0]) or sys.argv[0]
        command = shlex.join(["sudo", os.path.abspath(program), *sys.argv[1:]])
        raise NotPermitted("needs-root", "a split lab has a helper, which runs as root", command)
    os.umask(0o022)  # root's own may hide from the node's user what it is to read


def draw_user() -> int:
    """The number, for uid and gid alike, of a user that nobody is."""
    taken = {uid for entry in Path("/proc").glob("[0-9]*") if (uid := _owner(entry)) is not None}
    drawn = random.sample(range(FIRST_UID, LAST_UID + 1), LAST_UID + 1 - FIRST_UID)
    return next(number for number in drawn if number not in taken and not _has_entry(number))


def _owner(entry: Path) -> int | None:
    try:
        return entry.stat().st_uid
    except OSError:
        return None  # it has ended


def _has_entry(number: int) -> bool:
    for look in (pwd.getpwuid, grp.getgrgid):
        try:
            look(number)
        except KeyError:
            continue
        return True
    return False


def require_place(directory: Path) -> None:
    """A directory that the helper accepts, as far as it exists.

    Raises:
        UsageError: `bad-directory`.
    """
    hint = "name one of root's with --dir, /var/lib/bcd-lab for one, or none"
    for step in way_to(str(directory)):
        if not step.is_roots_alone:
            raise UsageError(
                "bad-directory",
                f"{directory} can't be a split lab's: {step.path} is not root's alone, and the helper would not start",
                hint,
            )
    if len(os.fsencode(directory)) > _PATH_LIMIT_BYTES:
        raise UsageError(
            "bad-directory",
            f"{directory} is longer than the {_PATH_LIMIT_BYTES} bytes that leave room for a socket's name",
            hint,
        )
