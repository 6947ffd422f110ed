"""A fault of bcd's own: said in a sentence, with the traceback in a file for whoever mends it."""

import os
import sys
import tempfile
import traceback

from bcd.core.build import this_build
from bcd.core.text import clean


def report_crash(error: BaseException) -> None:
    """Say on stderr that bcd failed, and where its traceback is."""
    where = _keep(error)
    name = type(error).__name__
    sentence = f"bcd: a fault in bcd itself: {name}: {clean(str(error), 300)} (internal-error)"
    advice = f"the details are in {where}; report them" if where else "set BCD_DEBUG=1 for the details; report them"
    sys.stderr.write(f"{sentence}\n  try: {advice} with `bcd version` ({this_build().version})\n")
    if os.environ.get("BCD_DEBUG"):
        traceback.print_exception(error)


def _keep(error: BaseException) -> str | None:
    try:
        handle, path = tempfile.mkstemp(prefix="bcd-crash-", suffix=".txt")
        with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            traceback.print_exception(error, file=file)
    except OSError:
        return None
    return path
