"""Make the bcd binary: one executable file with CPython, bcd and all it needs (docs/decisions/0007-the-binary.md).

The file is the launcher (an ELF program with CPython linked in), then the shared objects of the extension modules, each
at a page's start, then a zip of compiled modules. Same tree, same tools, same stamp: the same bytes.
"""

import argparse
import importlib.metadata
import importlib.util
import marshal
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
PAGE = 4096
# Not carried: tests and tools of Python itself; what wants libraries that no node should get with bcd.
NO_MODULES = re.compile(
    r"(test|tests|idlelib|tkinter|turtle|turtledemo|lib2to3|ensurepip|venv|distutils|pydoc_data|sqlite3|curses|dbm|"
    r"site-packages|config-.*|__phello__|antigravity|this)(/|\.py$)"
)
NO_EXTENSIONS = re.compile(
    r"_?(test|xx|tkinter|curses|sqlite3|gdbm|dbm|readline|nis|ossaudiodev|crypt|spwd|audioop|lsprof|uuid)"
)
# What every glibc system has; the oldest one that will do is told by `glibc_wanted`.
OF_THE_SYSTEM = re.compile(r"(ld-linux.*|libc|libm|libdl|libpthread|librt|libutil|libresolv)\.so(\.\d+)*$")
_UNCHECKED_HASH_PYC = (0b01).to_bytes(4, "little")
_EARLIEST = (1980, 1, 1, 0, 0, 0)
# Read before the module that inflates can be loaded.
_STORED = re.compile(r"(encodings/.*|bundle_(boot|index))\.pyc$")


class PackError(Exception):
    """The binary can't be made here; says why and what to do."""


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
        licences = output.with_name(output.name + ".licences.txt")
        licences.write_text(_licences(), encoding="utf-8")
    except PackError as error:
        print(f"binary: {error}", file=sys.stderr)
        return 1
    print(f"binary: {output}, {len(data) / 2**20:.1f} MiB, wants glibc {_glibc_wanted(output.read_bytes())} or newer")
    return 0


def _stamp() -> str:
    """The source of `bcd._stamp`. Version and build time come from the tree, the sequence from whoever releases."""
    from bcd import __version__  # noqa: PLC0415  # the tree's, which is on the path

    version = os.environ.get("BCD_RELEASE_VERSION", __version__)
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
        body = bytearray(_launcher(work))
        extensions, libraries = _shared_objects(work)
        index: dict[str, dict[str, object]] = {"EXTENSIONS": {}, "LIBRARIES": {}}
        for table, objects in (("EXTENSIONS", extensions), ("LIBRARIES", libraries)):
            for name in sorted(objects):
                data, wanted = objects[name]
                body.extend(bytes(-len(body) % PAGE))
                index[table][name] = ((len(body), len(data)), wanted)
                body.extend(data)
        files = dict(_modules())
        source = "".join(f"{table} = {index[table]!r}\n" for table in index)
        files["bundle_index.pyc"] = _compiled(source.encode(), "bundle_index.py")
        files["bcd/_stamp.pyc"] = _compiled(stamp.encode(), "bcd/_stamp.py")
        packed = work / "packed"
        packed.write_bytes(body)
        with zipfile.ZipFile(packed, "a") as archive:
            for name in sorted(files):
                how = zipfile.ZIP_STORED if _STORED.match(name) else zipfile.ZIP_DEFLATED
                archive.writestr(zipfile.ZipInfo(name, _EARLIEST), files[name], how, 9)
        return packed.read_bytes()


def _launcher(work: Path) -> bytes:
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
    strangers = [name for name in _needed(program) if not OF_THE_SYSTEM.match(name)]
    if strangers:
        raise PackError(f"this Python's library wants {', '.join(strangers)}; use a Python that was built without")
    return program.read_bytes()


def _link_flags() -> list[str]:
    """The interpreter's own, without the directories of this machine, which would be written into the program."""
    flags = shlex.split(" ".join(str(sysconfig.get_config_var(name) or "") for name in ("LIBS", "SYSLIBS", "MODLIBS")))
    return [flag for flag in flags if flag.startswith("-l")]


def _shared_objects(work: Path) -> tuple[dict[str, tuple[bytes, list[str]]], dict[str, tuple[bytes, list[str]]]]:
    """Extension modules by name and libraries by soname, each with the libraries that it wants."""
    extensions = {}
    libraries: dict[str, tuple[bytes, list[str]]] = {}
    for name, path in _extensions():
        extensions[name] = (_stripped(path, work), _wanted(path, libraries))
    return extensions, libraries


def _extensions() -> Iterator[tuple[str, Path]]:
    for path in sorted((Path(sysconfig.get_path("stdlib")) / "lib-dynload").glob("*.so")):
        name = path.name.partition(".")[0]
        if not NO_EXTENSIONS.match(name):
            yield name, path
    for inside, path in _distribution_files():
        if inside.suffix == ".so":
            yield ".".join([*inside.parts[:-1], inside.name.partition(".")[0]]), path


def _wanted(path: Path, libraries: dict[str, tuple[bytes, list[str]]]) -> list[str]:
    """Add to `libraries` what `path` needs, and return their sonames."""
    wanted = [name for name in _needed(path) if not OF_THE_SYSTEM.match(name)]
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
    # The interpreter's own carry debug information and this machine's paths; those of wheels are finished products.
    if "site-packages" in path.parts:
        return path.read_bytes()
    copy = work / "stripped.so"
    subprocess.run(["strip", "--strip-unneeded", "-o", str(copy), str(path)], check=True)
    return copy.read_bytes()


def _modules() -> Iterator[tuple[str, bytes]]:
    """Every module and data file by its name in the zip."""
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        name = path.relative_to(library).as_posix()
        if not NO_MODULES.match(name) and "/test" not in name and "/idle_test" not in name:
            yield name + "c", _compiled(path.read_bytes(), name)
    for inside, path in _distribution_files():
        yield from _module(inside.as_posix(), path)
    for path in sorted((TREE / "bcd").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path.name != "_stamp.py":
            yield from _module(path.relative_to(TREE).as_posix(), path)
    boot = TREE / "packaging" / "bundle_boot.py"
    yield "bundle_boot.pyc", _compiled(boot.read_bytes(), boot.name)


def _module(name: str, path: Path) -> Iterator[tuple[str, bytes]]:
    if path.suffix == ".py":
        yield name + "c", _compiled(path.read_bytes(), name)
    elif path.suffix not in {".so", ".pyi", ".pyc", ".c", ".h"} and path.name not in {"py.typed", "RECORD", "INSTALLER"}:
        yield name, path.read_bytes()


def _distributions() -> list[importlib.metadata.Distribution]:
    """What bcd runs with, by the lock file: nothing that merely happens to be in the environment."""
    locked = re.findall(r"^([a-z0-9._-]+)==(\S+)", (TREE / "requirements" / "runtime.txt").read_text(), re.MULTILINE)
    found = []
    for name, version in sorted(locked):
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            raise PackError(f"{name} is not in this environment; remove .venv and run make again") from None
        if distribution.version != version:
            raise PackError(f"{name} is {distribution.version} here, and {version} in requirements/runtime.txt")
        found.append(distribution)
    return found


def _distribution_files() -> Iterator[tuple[Path, Path]]:
    for distribution in _distributions():
        for file in sorted(distribution.files or (), key=str):
            inside = Path(file)
            if ".." not in inside.parts and "__pycache__" not in inside.parts:
                yield inside, Path(str(distribution.locate_file(file)))


def _compiled(source: bytes, name: str) -> bytes:
    code = compile(source, name, "exec", dont_inherit=True)
    header = importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH_PYC + importlib.util.source_hash(source)
    return header + marshal.dumps(code)


def _licences() -> str:
    """The licence texts of everything that is in the file."""
    texts = [f"bcd\n\n{(TREE / 'LICENSE').read_text(encoding='utf-8')}"]
    python = Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"
    if python.is_file():
        texts.append(f"Python {sys.version.split()[0]}\n\n{python.read_text(encoding='utf-8')}")
    for distribution in _distributions():
        found = [
            str(distribution.locate_file(file))
            for file in sorted(distribution.files or (), key=str)
            if re.search(r"\.dist-info/.*(LICEN[CS]E|COPYING|NOTICE)", str(file))
        ]
        body = "\n\n".join(Path(path).read_text(encoding="utf-8", errors="replace") for path in found)
        told = distribution.metadata.get("License-Expression") or distribution.metadata.get("License") or "unknown"
        texts.append(f"{distribution.name} {distribution.version} ({told})\n\n{body}")
    texts.extend(_system_licences())
    return f"\n{'=' * 100}\n".join(texts)


def _system_licences() -> Iterator[str]:
    """The licences of the system's libraries that are carried, as Debian keeps them."""
    for package in ("libssl3", "libssl3t64", "libffi8", "zlib1g", "libbz2-1.0", "liblzma5", "libgcc-s1", "libexpat1"):
        path = Path("/usr/share/doc") / package / "copyright"
        if path.is_file():
            yield f"{package}\n\n{path.read_text(encoding='utf-8', errors='replace')}"


def _glibc_wanted(data: bytes) -> str:
    """The newest version of glibc that anything in the file asks for."""
    found = {(int(a), int(b)) for a, b in re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)", data)}
    return ".".join(str(part) for part in max(found))


if __name__ == "__main__":
    sys.path.insert(0, str(TREE))
    sys.exit(main())
