"""Running `bcd doctor` as a process of its own on the self-test's node."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from bcd.core.clock import ManualClock, SystemClock
from bcd.doctor.selftest.root import Root
from tests.commands.running import NOBODY, TIMEOUT_SECONDS, Done, Runner

_AS_NOBODY = f"""
import difflib, importlib, json, os, pkgutil, shlex, ssl, subprocess, tempfile, tomllib, traceback, urllib.request
import psutil, truststore, websockets.client
import bcd.cli, bcd.commands.doctor, bcd.commands.root, bcd.core, bcd.doctor, bcd.node.client, bcd.node.frames
for package in (bcd.core, bcd.doctor):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
bcd.core.units.rollback_script()
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
from bcd.cli import entry; entry()
"""
"""All is imported first: the interpreter may live where only root can read, as pyenv's does."""


class Doctor:
    """Runs `bcd doctor` on a node."""

    def __init__(self, root: Root, home: Path) -> None:
        self.root = root
        self.runner = Runner(home)

    def arguments(self, *args: str) -> list[str]:
        """What comes after `bcd`."""
        return ["doctor", "--config", f"{self.root.home}/etc/config.toml", *args]

    def __call__(self, *args: str, env: Mapping[str, str] | None = None) -> Done:
        """Run it to its end."""
        return self.runner(*self.arguments(*args), env=env)

    def as_nobody(self, *args: str) -> Done:
        """Run it as a user who owns nothing there: nobody where the tests are root's, else this user."""
        if os.geteuid() != 0:
            return self(*args)
        done = subprocess.run(
            [sys.executable, "-c", _AS_NOBODY, *self.arguments(*args)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            env=self.runner.environ(),
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def shell(self, script: str, *args: str) -> Done:
        """Run a bash script in which `$BCD` is the command."""
        return self.runner.shell(script, *self.arguments(*args))

    def on_terminal(self, *args: str, env: Mapping[str, str] | None = None) -> Done:
        """Run it with a terminal as its stdout."""
        return self.runner.on_terminal(*self.arguments(*args), env=env)

    @contextmanager
    def running(self, *args: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Have it run meanwhile."""
        process = subprocess.Popen(
            self.runner.command(*self.arguments(*args)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.runner.environ(),
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def finish(process: "subprocess.Popen[bytes]") -> Done:
    """Wait for its end."""
    stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    return Done(process.returncode, stdout.decode(), stderr.decode())


@contextmanager
def node_on_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Root]:
    """A healthy node where programs may be executed and everybody may look, by this machine's real clocks."""
    monkeypatch.setenv("TMPDIR", tempfile.gettempdir())
    clock = SystemClock()
    with Root() as root:
        root.machine.clock = ManualClock(time.time(), clock.boottime(), clock.boot_id())
        yield root
