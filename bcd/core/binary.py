"""Whether a file can be a program of this machine, by its first bytes (field report 32).

A native binary of another machine would be found out only by the crash loop; here it is refused before the swap. A
script is let through: its interpreter is not ours to judge.
"""

import struct
import sys

from bcd.core.errors import Refusal

HEADER_BYTES = 20

_ELF_MACHINES = {"amd64": 62, "arm64": 183, "386": 3, "arm": 40}
_FOREIGN_FORMATS = {
    b"MZ": "Windows",
    b"\xcf\xfa\xed\xfe": "macOS",
    b"\xce\xfa\xed\xfe": "macOS",
    b"\xca\xfe\xba\xbe": "macOS",
}
_CLASS_64 = 2


def check_header(header: bytes, platform: str) -> None:
    """Look at a file's first `HEADER_BYTES` bytes.

    Args:
        header: those bytes, fewer where the file is shorter.
        platform: this machine's, os-arch.

    Raises:
        Refusal: `wrong-platform-binary`.
    """
    for magic, system in _FOREIGN_FORMATS.items():
        if header.startswith(magic):
            raise _wrong(f"a program for {system}", platform)
    if not header.startswith(b"\x7fELF"):
        return
    expected = _ELF_MACHINES.get(platform.partition("-")[2])
    if len(header) < HEADER_BYTES:
        raise _wrong("a torn ELF file", platform)
    order = "<" if sys.byteorder == "little" else ">"
    (machine,) = struct.unpack_from(f"{order}H", header, 18)
    if expected is not None and machine != expected:
        raise _wrong(f"an ELF file for machine {machine}", platform)
    if expected in (62, 183) and header[4] != _CLASS_64:
        raise _wrong("a 32-bit ELF file", platform)


def _wrong(what: str, platform: str) -> Refusal:
    return Refusal(
        "wrong-platform-binary",
        f"the downloaded file is {what}; this machine is {platform}",
        "publish a release with the right file for this platform",
    )
