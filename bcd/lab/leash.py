"""Starting a child that cannot outlive the lab, whatever ends the lab.

The accident: a lab that is killed with SIGKILL, or whose terminal goes away, leaves nodes running that nobody knows of.
Linux can bind a child's life to its parent's (PR_SET_PDEATHSIG), and the bond survives an exec. It is set by a first
program of a few lines, in the child: between fork and exec of a process with threads, Python code may deadlock.

The bond is to the *thread* that starts the child. So that thread has to live as long as the child is to.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

EXEC_FAILED = 203
"""The exit status when the program could not be executed: systemd's 203/EXEC."""

_FIRST = """
import ctypes, os, signal, sys
parent, uid, path, *arguments = sys.argv[1:]
if uid:
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(parent):
    sys.exit(0)
try:
    os.execv(path, arguments)
except OSError as error:
    print(f"{path}: {error.strerror}", file=sys.stderr)
    sys.exit(203)
"""
# The user comes first, since the kernel forgets the bond with a change of user.
# The parent is compared because it may have died before the bond was made: then nobody would send the signal.


def start_on_leash(
    argv: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: IO[bytes], uid: int | None = None
) -> "subprocess.Popen[bytes]":
    """Start `argv` (its first element is the program's path) with both output streams on `log`.

    With `uid` it runs as the user and the group of that number, without any other group.

    It gets a session of its own, so a Ctrl-C at the lab's terminal reaches the lab alone, which ends it in order.
    """
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _FIRST, str(os.getpid()), "" if uid is None else str(uid), argv[0], *argv],
        env=dict(environment),
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
