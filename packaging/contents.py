"""What the binary carries of Python: every module of the standard library, of bcd, and of what bcd runs with.

Whole packages by the lock file, and no search for imports: what is imported only on a bad day has to be there too.
"""

import importlib.metadata
import importlib.util
import marshal
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
_NO_MODULES = re.compile(
    r"(test|tests|idlelib|tkinter|turtle|turtledemo|lib2to3|ensurepip|venv|distutils|pydoc_data|sqlite3|curses|dbm|"
    r"site-packages|config-.*|__phello__|antigravity|this)(/|\.py$)"
)
"""Python's own tests and tools, and what wants libraries that no node should get with bcd."""
_NO_DATA = {".so", ".pyi", ".pyc", ".c", ".h"}
_NO_FILES = {"py.typed", "RECORD", "INSTALLER", "direct_url.json", "REQUESTED"}
_UNCHECKED_HASH_PYC = (0b01).to_bytes(4, "little")
"""The header flag (PEP 552) of compiled code that is loaded as it is, without a look at any source."""


class PackError(Exception):
    """The binary can't be made here; says why and what to do."""


def modules() -> Iterator[tuple[str, bytes]]:
    """Every module and data file by its name in the zip."""
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        name = path.relative_to(library).as_posix()
        if not _NO_MODULES.match(name) and "/test" not in name and "/idle_test" not in name:
            yield name + "c", compiled(path.read_bytes(), name)
    for inside, path in distribution_files():
        yield from _module(inside.as_posix(), path)
    for path in sorted((TREE / "bcd").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path.name != "_stamp.py":
            yield from _module(path.relative_to(TREE).as_posix(), path)
    boot = TREE / "packaging" / "bundle_boot.py"
    yield "bundle_boot.pyc", compiled(boot.read_bytes(), boot.name)


def _module(name: str, path: Path) -> Iterator[tuple[str, bytes]]:
    if path.suffix == ".py":
        yield name + "c", compiled(path.read_bytes(), name)
    elif path.suffix not in _NO_DATA and path.name not in _NO_FILES:
        yield name, path.read_bytes()


def distributions() -> list[importlib.metadata.Distribution]:
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


def distribution_files() -> Iterator[tuple[Path, Path]]:
    """Every file of the packages that bcd runs with: its place beneath `site-packages`, and its path."""
    for distribution in distributions():
        for file in sorted(distribution.files or (), key=str):
            inside = Path(file)
            if ".." not in inside.parts and "__pycache__" not in inside.parts:
                yield inside, Path(str(distribution.locate_file(file)))


def compiled(source: bytes, name: str) -> bytes:
    """A module's `.pyc`; tracebacks call its file `name`."""
    code = compile(source, name, "exec", dont_inherit=True)
    header = importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH_PYC + importlib.util.source_hash(source)
    return header + marshal.dumps(code)
