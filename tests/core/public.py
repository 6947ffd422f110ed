"""Looking as somebody else: a directory that anyone may enter, and doing something without root's rights."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def public_directory() -> Iterator[Path]:
    """Gone afterwards. pytest's own directories are closed to others."""
    made = Path(tempfile.mkdtemp(prefix="bcd-test-"))
    made.chmod(0o755)
    try:
        yield made
    finally:
        shutil.rmtree(made)


@contextmanager
def as_nobody() -> Iterator[None]:
    """As a user without rights; whoever is no root stays who they are."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
