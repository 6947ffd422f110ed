"""Looking as a user who owns nothing there: for what may not be looked at, which root never meets.

The process forks: the child gives root up, looks, and tells its findings through a pipe. Threads of the parent are not
in the child, and the child touches nothing that they could have locked.
"""

import json
import os
import pwd
import select
import signal
import time
import warnings
from collections.abc import Callable

from bcd.doctor.finding import Finding, Level

_NOBODY = 65534
_SECONDS = 30.0


def look_as_nobody(look: Callable[[], tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """Call `look` in a child of the user `nobody`, and return what it found.

    Raises:
        OSError: the child did not answer.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns of any fork beside threads; why it is safe here is said above.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _answer(writing, look)
    os.close(writing)
    try:
        findings = json.loads(_read(reading))
    except ValueError as error:
        raise OSError("the child that looks as nobody did not answer") from error
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return tuple(
        Finding(id=id_, level=Level(level), message=message, evidence=tuple(evidence), hint=hint)
        for id_, level, message, evidence, hint in findings
    )


def _answer(writing: int, look: Callable[[], tuple[Finding, ...]]) -> None:
    # os._exit whatever happens: from here on nothing of the parent's may run a second time.
    try:
        user, group = _nobody()
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
        told = [(f.id, f.level.value, f.message, f.evidence, f.hint) for f in look()]
        data = json.dumps(told).encode()
        while data:
            data = data[os.write(writing, data) :]
        os._exit(0)
    finally:
        os._exit(1)


def _nobody() -> tuple[int, int]:
    try:
        found = pwd.getpwnam("nobody")
    except KeyError:
        return _NOBODY, _NOBODY
    return found.pw_uid, found.pw_gid


def _read(reading: int) -> bytes:
    data, until = b"", time.monotonic() + _SECONDS
    while select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
        chunk = os.read(reading, 65536)
        if not chunk:
            break
        data += chunk
    return data
