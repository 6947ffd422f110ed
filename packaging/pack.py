"""Make the bcd binary: one executable file with CPython, bcd and all it needs (docs/decisions/0008-the-binary.md).

The file is the launcher (an ELF program with CPython linked in), then the shared objects of the extension modules, each
at a page's start, then a zip of compiled modules. Same tree, same tools, same stamp: the same bytes.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from contents import TREE, PackError, compiled, modules
from licences import licences
from objects import glibc_wanted, launcher, shared_objects

_PAGE_BYTES = 4096
_EARLIEST = (1980, 1, 1, 0, 0, 0)
_STORED = re.compile(r"(encodings/.*|bundle_(boot|index))\.pyc$")
"""Read before the module that inflates can be loaded."""


def main() -> int:
    """Pack, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=TREE / "dist" / "bcd", metavar="FILE")
    output: Path = parser.parse_args().output
    try:
        stamp = _stamp()
        data = pack(stamp)
        output.parent.mkdir(parents=True, exist_ok=True)
        unfinished = output.with_name(output.name + ".tmp")
        unfinished.write_bytes(data)
        unfinished.chmod(0o755)
        unfinished.rename(output)
        beside = output.with_name(output.name + ".licences.txt")
        beside.write_text(licences(), encoding="utf-8")
    except PackError as error:
        print(f"binary: {error}", file=sys.stderr)
        return 1
    print(f"binary: {output}, {len(data) / 2**20:.1f} MiB, wants glibc {glibc_wanted(output.read_bytes())} or newer")
    return 0


def _stamp() -> str:
    """The source of `bcd._stamp`. Version and build time come from the tree, the sequence from whoever releases."""
    from bcd import __version__  # noqa: PLC0415  # the tree's, which is on the path
    from bcd.core.versions import is_version  # noqa: PLC0415

    version = os.environ.get("BCD_RELEASE_VERSION", __version__)
    if not is_version(version):
        raise PackError(f"BCD_RELEASE_VERSION is {version!r}; set it to a semantic version, as 1.4.0")
    sequence = os.environ.get("BCD_RELEASE_SEQUENCE", "0")
    if not re.fullmatch(r"0|[1-9][0-9]{0,15}", sequence):
        raise PackError(f"BCD_RELEASE_SEQUENCE is {sequence!r}; set it to the release's number, 1 or more")
    fakehw = os.environ.get("BCD_FAKEHW", "") == "1"
    return f"VERSION = {version!r}\nSEQUENCE = {sequence}\nBUILT_AT = {_built_at()}\nFAKEHW = {fakehw}\n"


def _built_at() -> int:
    told = os.environ.get("SOURCE_DATE_EPOCH")
    if told is None:
        asked = subprocess.run(
            ["git", "-C", str(TREE), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False
        )
        told = asked.stdout.strip()
    if not re.fullmatch(r"[0-9]{1,15}", told):
        raise PackError("the build time is not known: set SOURCE_DATE_EPOCH (Unix seconds), or build from a checkout")
    return int(told)


def pack(stamp: str) -> bytes:
    """The whole file."""
    with tempfile.TemporaryDirectory(prefix="bcd-pack-") as directory:
        work = Path(directory)
        body = bytearray(launcher(work))
        extensions, libraries = shared_objects(work)
        index: dict[str, dict[str, object]] = {"EXTENSIONS": {}, "LIBRARIES": {}}
        for table, objects in (("EXTENSIONS", extensions), ("LIBRARIES", libraries)):
            for name in sorted(objects):
                data, wanted = objects[name]
                body.extend(bytes(-len(body) % _PAGE_BYTES))
                index[table][name] = ((len(body), len(data)), wanted)
                body.extend(data)
        files = dict(modules())
        source = "".join(f"{table} = {index[table]!r}\n" for table in index)
        files["bundle_index.pyc"] = compiled(source.encode(), "bundle_index.py")
        files["bcd/_stamp.pyc"] = compiled(stamp.encode(), "bcd/_stamp.py")
        packed = work / "packed"
        packed.write_bytes(body)
        with zipfile.ZipFile(packed, "a") as archive:
            for name in sorted(files):
                how = zipfile.ZIP_STORED if _STORED.match(name) else zipfile.ZIP_DEFLATED
                archive.writestr(zipfile.ZipInfo(name, _EARLIEST), files[name], how, 9)
        return packed.read_bytes()


if __name__ == "__main__":
    sys.path.insert(1, str(TREE))
    sys.exit(main())
