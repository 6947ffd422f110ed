"""Running `bcd` as a process of its own, as a script, a terminal or another user would."""

import os
import pty
import re
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
NOBODY = 65534
TIMEOUT_SECONDS = 20.0
"""No command here takes a second; one that takes this long hangs."""

_ENTRY = "from bcd.cli import entry; entry()"
_AS_NOBODY = f"""
import difflib, importlib, os, pkgutil, shlex, socket, tempfile, tomllib, traceback
import bcd.cli, bcd.commands.root, bcd.core, bcd.node.client
for module in ("agent", "check", "clear", "crash", "history", "logs", "show"):
    importlib.import_module(f"bcd.commands.{{module}}")
for module in pkgutil.iter_modules(bcd.core.__path__):
    importlib.import_module(f"bcd.core.{{module.name}}")
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
{_ENTRY}
"""
"""All is imported first: the interpreter may live where only root can read, as pyenv's does."""

_SGR = re.compile(r"\x1b\[[0-9;]*m")
_SAID = re.compile(r"^bcd: .+ \(([a-z]+(?:-[a-z]+)*)\)$", re.MULTILINE)


class Done(NamedTuple):
    """How a command ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def code(self) -> str:
        """The error's code. A command that failed says exactly one, and what to do about it."""
        codes = _SAID.findall(self.stderr)
        assert len(codes) == 1, self.stderr
        lines = self.stderr.splitlines()
        assert any(line.startswith("  try: ") and len(line) > len("  try: ") for line in lines), self.stderr
        return str(codes[0])

    @property
    def hint(self) -> str:
        """What an error advises."""
        return next(line for line in self.stderr.splitlines() if line.startswith("  try: ")).removeprefix("  try: ")


class Runner:
    """Runs `bcd` in a known environment, with temporary files where a crash's report would be seen."""

    def __init__(self, home: Path) -> None:
        self.temporary = home / "tmp"
        self.temporary.mkdir()
        self.temporary.chmod(0o1777)
        self._environ = {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PATH": os.environ.get("PATH", os.defpath),
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.temporary),
            **{name: value for name, value in os.environ.items() if name.startswith("COVERAGE")},
        }

    def environ(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a run, with `env` over it."""
        return {**self._environ, **(env or {})}

    def command(self, *args: str) -> list[str]:
        """What starts `bcd`."""
        return [sys.executable, "-c", _ENTRY, *args]

    def __call__(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        user: int | None = None,
        stdin: bytes | None = b"",
        cwd: Path | None = None,
    ) -> Done:
        """Run `bcd` to its end. `user` drops to that uid where the tests are root's."""
        command = self.command(*args)
        if user is not None and os.geteuid() == 0:
            command = [sys.executable, "-c", _AS_NOBODY, *args]
        done = subprocess.run(
            command, input=stdin, capture_output=True, timeout=TIMEOUT_SECONDS, env=self.environ(env), cwd=cwd
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def shell(self, script: str, *args: str, env: Mapping[str, str] | None = None) -> Done:
        """Run a bash script in which `$BCD` is the command with `args`."""
        line = shlex.join(self.command(*args))
        done = subprocess.run(
            ["bash", "-c", script.replace("$BCD", line)],
            input=b"",
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            env=self.environ(env),
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def on_terminal(self, *args: str, env: Mapping[str, str] | None = None) -> Done:
        """Run `bcd` with a real terminal as its stdout; what it draws is `stdout`, line ends made plain."""
        master, slave = pty.openpty()
        try:
            process = subprocess.Popen(
                self.command(*args),
                stdin=slave,
                stdout=slave,
                stderr=subprocess.PIPE,
                env=self.environ({"TERM": "xterm-256color", **(env or {})}),
            )
        finally:
            os.close(slave)
        try:
            drawn = _drawn(master)
            _, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
        finally:
            os.close(master)
            process.kill()
        return Done(process.returncode, drawn.decode().replace("\r\n", "\n"), stderr.decode())

    def crashed(self) -> bool:
        """Whether any run so far had a fault of bcd's own to report."""
        return any(self.temporary.iterdir())


def _drawn(master: int) -> bytes:
    drawn = b""
    until = time.monotonic() + TIMEOUT_SECONDS
    while select.select([master], [], [], max(0.0, until - time.monotonic()))[0]:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # EIO: the last one to hold the terminal is gone
            return drawn
        if not chunk:
            return drawn
        drawn += chunk
    raise TimeoutError(drawn)


def without_colour(text: str) -> str:
    """`text` without its SGR sequences."""
    return _SGR.sub("", text)


def acting_on_a_terminal(text: str) -> list[str]:
    """The characters of `text` that a terminal may act on or hide behind, newlines apart; SGR is one of them."""
    return [character for character in text if character != "\n" and not character.isprintable()]
