"""The real binary for tests: made once a run, or the one that `BCD_TEST_BINARY` names; and variants of it."""

import fcntl
import importlib.util
import io
import marshal
import os
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

TREE = Path(__file__).parent.parent.parent
SEQUENCE = 14
BUILT_AT = 1_790_000_000
EXITS_AT_ONCE = "raise SystemExit(1)\n"


def made(directory: Path) -> Path:
    """The binary, made in `directory`, which the workers of one run share, by whoever comes first."""
    told = os.environ.get("BCD_TEST_BINARY")
    if told:
        return Path(told)
    path = directory / "packed" / "bcd"
    with (directory / "packing.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            environ = os.environ | {"BCD_RELEASE_SEQUENCE": str(SEQUENCE), "SOURCE_DATE_EPOCH": str(BUILT_AT)}
            command = [sys.executable, str(TREE / "packaging/pack.py"), "--output", str(path)]
            ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, ran.stderr
    return path


def variant(binary: bytes, *, version: str, sequence: int, first: str = "", fakehw: bool = True) -> bytes:
    """The binary as another release; `first` is source that runs in the place of the binary's first Python."""
    stamp = f"VERSION = {version!r}\nSEQUENCE = {sequence}\nBUILT_AT = {BUILT_AT}\nFAKEHW = {fakehw}\n"
    changed = io.BytesIO(binary)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each name is there twice, and the last one counts
        with zipfile.ZipFile(changed, "a") as archive:
            archive.writestr("bcd/_stamp.pyc", _compiled(stamp, "bcd/_stamp.py"))
            if first:
                archive.writestr("bundle_boot.pyc", _compiled(first, "bundle_boot.py"))
    return changed.getvalue()


def with_power_cuts() -> str:
    """The binary's first Python, with the lab's power cut armed by the environment (`bcd.lab.binary`)."""
    boot, entry = (TREE / "packaging/bundle_boot.py").read_text(), "from bcd.cli import entry"
    assert entry in boot
    return boot.replace(
        entry,
        "from pathlib import Path\n"
        "from bcd.lab.binary import FAULT_FILE_VARIABLE, cut_power_by\n"
        "if FAULT_FILE_VARIABLE in os.environ:\n"
        "    cut_power_by(Path(os.environ[FAULT_FILE_VARIABLE]))\n"
        f"{entry}",
    )


def _compiled(source: str, name: str) -> bytes:
    code = compile(source, name, "exec", dont_inherit=True)
    header = importlib.util.MAGIC_NUMBER + (0b01).to_bytes(4, "little") + importlib.util.source_hash(source.encode())
    return header + marshal.dumps(code)
