"""From this process into whatever the entrypoint leads to now: same arguments, same environment, same pid.

Through the entrypoint, never through the path of the running file: that one names the old slot (field report 18).
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import NoReturn

_PACKED_PREFIXES = ("_PYI_", "_MEI")
"""What a packed binary's boot loader sets for itself: inherited, the next binary would look into the old one."""


def restart_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for the next binary: this one's, less what a packed binary added for itself."""
    kept = {name: value for name, value in environ.items() if not name.startswith(_PACKED_PREFIXES)}
    for name in ("LD_LIBRARY_PATH", "LIBPATH"):
        original = kept.pop(f"{name}_ORIG", None)
        if original is not None:
            kept[name] = original
        elif any(key.startswith(_PACKED_PREFIXES) for key in environ):
            kept.pop(name, None)
    return kept


def exec_entrypoint(entrypoint: str) -> NoReturn:
    """Become the entrypoint's program. Returns only by raising OSError, when that could not be done."""
    for stream in (sys.stdout, sys.stderr):
        # A log that nobody reads any more, or a full disk under it, must not pass for a program that can't be started:
        # that would roll a good release back, and fail it for good.
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os.execve(entrypoint, [entrypoint, *sys.argv[1:]], restart_environment(os.environ))  # noqa: S606  # the point of it
