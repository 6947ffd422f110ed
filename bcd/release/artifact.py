"""A file of a release, as the manifest lists it: looked at, measured and hashed."""

import os
import stat
from hashlib import sha256

from bcd.core.acceptance import ARTIFACT_LIMIT_BYTES
from bcd.core.binary import HEADER_BYTES, check_header
from bcd.core.errors import Refusal, UsageError
from bcd.core.manifest import Artifact

_CHUNK_BYTES = 1_048_576


def artifact_of(platform: str, path: str) -> Artifact:
    """The manifest's entry for the file at `path`, named as it is.

    Raises:
        UsageError: `bad-artifact`, no node would take this file.
    """
    try:
        # O_NONBLOCK: a FIFO in its place must hang nobody.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _bad(path, "is no regular file")
            digest, size = sha256(), 0
            while chunk := file.read(_CHUNK_BYTES):
                if not size:
                    _check_header(path, chunk[:HEADER_BYTES], platform)
                digest.update(chunk)
                size += len(chunk)
                if size > ARTIFACT_LIMIT_BYTES:
                    raise _bad(path, f"has more than the {ARTIFACT_LIMIT_BYTES} bytes allowed")
    except (OSError, ValueError) as error:
        raise _bad(path, f"can't be read: {getattr(error, 'strerror', None) or 'no name of a file'}") from error
    if not size:
        raise _bad(path, "is empty")
    return Artifact(name=os.path.basename(path), platform=platform, sha256=digest.hexdigest(), size=size)


def _check_header(path: str, header: bytes, platform: str) -> None:
    # What other systems' programs look like is not core's to know.
    if not platform.startswith("linux-"):
        return
    try:
        check_header(header, platform)
    except Refusal as refusal:
        found = refusal.message.partition(" is ")[2].partition(";")[0]
        raise _bad(path, f"is {found}, not a program for {platform}") from refusal


def _bad(path: str, what: str) -> UsageError:
    return UsageError("bad-artifact", f"{path} {what}", "name the built program, as --artifact PLATFORM=FILE")
