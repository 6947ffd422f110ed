"""The lock that swap, settle, confirm, rollback and clear take (spec/self-update.md sections 6 and 7).

`flock` on an open file: the kernel frees it when its holder dies, however it dies (field report 21). Its owner's alone:
whoever may read a file may lock it, and any user of the machine could hold up a confirm until its deadline.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bcd.core.durable import host_error
from bcd.core.errors import HostError

LOCK_NAME = "update.lock"
_POLL_SECONDS = 0.05


@contextmanager
def locked(records_dir: str, wait_seconds: float) -> Iterator[None]:
    """Hold the update lock.

    Raises:
        HostError: `update-in-progress`, another holder kept it for `wait_seconds`; `io-error`, it can't be opened.
    """
    path = os.path.join(records_dir, LOCK_NAME)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise host_error(error, "take the update lock") from error
    try:
        until = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise HostError(
                        "update-in-progress",
                        "another bcd process is working on an update here",
                        "wait for it to finish; `bcd update` shows where it is",
                    ) from None
                time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)
