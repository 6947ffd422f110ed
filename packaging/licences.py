"""The licence texts of everything that is in the binary, as one file that goes beside it."""

import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from contents import TREE, distributions

_SYSTEM_PACKAGES = ("libssl3", "libssl3t64", "libffi8", "zlib1g", "libbz2-1.0", "liblzma5", "libgcc-s1")
"""Debian's packages of the libraries that are carried."""


def licences() -> str:
    """The licence texts of everything that is in the file."""
    texts = [f"bcd\n\n{(TREE / 'LICENSE').read_text(encoding='utf-8')}"]
    python = Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"
    if python.is_file():
        texts.append(f"Python {sys.version.split()[0]}\n\n{python.read_text(encoding='utf-8')}")
    for distribution in distributions():
        found = [
            str(distribution.locate_file(file))
            for file in sorted(distribution.files or (), key=str)
            if re.search(r"\.dist-info/.*(LICEN[CS]E|COPYING|NOTICE)", str(file))
        ]
        body = "\n\n".join(Path(path).read_text(encoding="utf-8", errors="replace") for path in found)
        told = (
            distribution.metadata.json.get("license_expression")
            or distribution.metadata.json.get("license")
            or "unknown"
        )
        texts.append(f"{distribution.name} {distribution.version} ({told})\n\n{body}")
    texts.extend(_systemlicences())
    return f"\n{'=' * 100}\n".join(texts)


def _systemlicences() -> Iterator[str]:
    """The licences of the system's libraries that are carried, as Debian keeps them."""
    for package in _SYSTEM_PACKAGES:
        path = Path("/usr/share/doc") / package / "copyright"
        if path.is_file():
            yield f"{package}\n\n{path.read_text(encoding='utf-8', errors='replace')}"
