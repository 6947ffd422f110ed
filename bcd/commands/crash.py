"""What nothing else caught: a fault of bcd's own, said in a sentence, with the traceback in a file for whoever mends it."""

import errno
import os
import stat
import tempfile
import traceback
from contextlib import suppress

from bcd.commands.streams import print_error, say
from bcd.core.build import this_build
from bcd.core.errors import HostError
from bcd.core.exits import ExitStatus
from bcd.core.text import clean

_PREFIX, _SUFFIX = "bcd-crash-", ".txt"
_KEPT = 8
"""How many of a user's tracebacks are kept, the newest."""
_LIMIT_BYTES = 256 * 1024
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def report_fault(error: Exception) -> ExitStatus:
    """Say on stderr that bcd failed, and where its traceback is; or that stdout can't be written, which is no fault."""
    # Core lets no OSError out, and one that names no file comes of a stream: the disk is full where stdout goes.
    if isinstance(error, OSError) and error.filename is None and error.errno in _UNWRITABLE:
        sentence = f"the output could not be written: {error.strerror}"
        print_error(HostError("io-error", sentence, "look at where standard output goes"))
        return ExitStatus.PROBLEM
    where = _keep(error)
    said = f"bcd: a fault in bcd itself: {type(error).__name__}: {clean(str(error), 300)} (internal-error)"
    advice = f"the details are in {where}; report them" if where else "set BCD_DEBUG=1 for the details; report them"
    lines = [said, f"  try: {advice} with `bcd version` ({this_build().version})"]
    if os.environ.get("BCD_DEBUG"):
        lines += [clean(line) for part in traceback.format_exception(error) for line in part.splitlines()]
    say(lines)
    return ExitStatus.CRASH


def _keep(error: BaseException) -> str | None:
    text = "".join(traceback.format_exception(error)).encode(errors="backslashreplace")
    try:
        handle, path = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX)
        with open(handle, "wb") as file:
            file.write(text[:_LIMIT_BYTES])
    except OSError:
        return None
    _forget_old(os.path.dirname(path))
    return path


def _forget_old(directory: str) -> None:
    # A service that crashes at each of its starts must not fill the disk with the same story. What is not ours, or is
    # no file, is left alone: everybody may put names into /tmp.
    found = []
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX):
                with suppress(OSError):
                    kept = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(kept.st_mode) and kept.st_uid == os.geteuid():
                        found.append((kept.st_mtime_ns, entry.path))
    for _, path in sorted(found)[:-_KEPT]:
        with suppress(OSError):
            os.unlink(path)
