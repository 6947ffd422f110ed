"""What the binary carries of machine code: the launcher with CPython in it, extension modules and their libraries."""

import os
import re
import shlex
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from contents import TREE, PackError, distribution_files

_NO_EXTENSIONS = re.compile(
    r"_?(test|xx|tkinter|curses|sqlite3|gdbm|dbm|readline|nis|ossaudiodev|crypt|spwd|audioop|lsprof|uuid)"
)
_OF_THE_SYSTEM = re.compile(r"(ld-linux.*|libc|libm|libdl|libpthread|librt|libutil|libresolv)\.so(\.\d+)*$")
"""What every system with glibc has; `glibc_wanted` tells the oldest one that will do."""

Objects = dict[str, tuple[bytes, list[str]]]
"""Shared objects by name: the file, and the sonames of the libraries that it wants first."""


def launcher(work: Path) -> bytes:
    """Compile the launcher, with the interpreter that runs this linked in.

    Raises:
        PackError: something to compile with is missing, or the interpreter would need more than glibc.
    """
    told = sysconfig.get_config_var
    library = Path(told("LIBPL")) / f"libpython{told('LDVERSION')}.a"
    include = Path(sysconfig.get_path("include"))
    if not library.is_file() or not (include / "Python.h").is_file():
        raise PackError(
            f"Python's static library and headers are not here ({library}, {include}/Python.h); "
            "on Debian and Ubuntu: apt-get install python3-dev"
        )
    program = work / "launcher"
    command = [
        *shlex.split(os.environ.get("CC", "cc")),
        "-O2", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-fPIE", "-pie", "-Wall", "-Wextra", "-Werror",
        f"-ffile-prefix-map={TREE}=.",
        f"-I{include}", str(TREE / "packaging" / "launcher.c"), "-o", str(program),
        "-Wl,--export-dynamic", "-Wl,--build-id=none", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,--as-needed", "-s",
        "-Wl,--whole-archive", str(library), "-Wl,--no-whole-archive",
        *_link_flags(), "-ldl", "-lm", "-lpthread",
    ]  # fmt: skip
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise PackError("there is no C compiler (cc); on Debian and Ubuntu: apt-get install gcc libc6-dev") from error
    if ran.returncode != 0:
        raise PackError(f"the launcher does not compile:\n{ran.stderr[-3000:]}")
    strangers = [name for name in _needed(program) if not _OF_THE_SYSTEM.match(name)]
    if strangers:
        raise PackError(f"this Python's library wants {', '.join(strangers)}; use a Python that was built without")
    return program.read_bytes()


def _link_flags() -> list[str]:
    """The interpreter's own, without the directories of this machine, which would be written into the program."""
    flags = shlex.split(" ".join(str(sysconfig.get_config_var(name) or "") for name in ("LIBS", "SYSLIBS", "MODLIBS")))
    return [flag for flag in flags if flag.startswith("-l")]


def shared_objects(work: Path) -> tuple[Objects, Objects]:
    """Extension modules by name and libraries by soname, each with the libraries that it wants."""
    extensions: Objects = {}
    libraries: Objects = {}
    for name, path in _extensions():
        extensions[name] = (_stripped(path, work), _wanted(path, libraries))
    return extensions, libraries


def _extensions() -> Iterator[tuple[str, Path]]:
    for path in sorted((Path(sysconfig.get_path("stdlib")) / "lib-dynload").glob("*.so")):
        name = path.name.partition(".")[0]
        if not _NO_EXTENSIONS.match(name):
            yield name, path
    for inside, path in distribution_files():
        if inside.suffix == ".so":
            yield ".".join([*inside.parts[:-1], inside.name.partition(".")[0]]), path


def _wanted(path: Path, libraries: Objects) -> list[str]:
    """Add to `libraries` what `path` needs, and return their sonames."""
    wanted = [name for name in _needed(path) if not _OF_THE_SYSTEM.match(name)]
    missing = [name for name in wanted if name not in libraries]
    if missing:
        said = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=True).stdout
        found = dict(re.findall(r"^\s*(\S+) => (/\S+)", said, re.MULTILINE))
        for name in missing:
            if name not in found:
                raise PackError(f"{path.name} wants {name}, which is not on this machine")
            library = Path(found[name]).resolve()
            libraries[name] = (library.read_bytes(), [])
            libraries[name] = (library.read_bytes(), _wanted(library, libraries))
    return wanted


def _needed(path: Path) -> list[str]:
    said = subprocess.run(["readelf", "--dynamic", str(path)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said)


def _stripped(path: Path, work: Path) -> bytes:
    copy = work / "stripped.so"
    subprocess.run(["strip", "--strip-unneeded", "-o", str(copy), str(path)], check=True)
    return copy.read_bytes()


def glibc_wanted(data: bytes) -> str:
    """The newest version of glibc that anything in the file asks for."""
    found = {(int(a), int(b)) for a, b in re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)", data)}
    return ".".join(str(part) for part in max(found))
