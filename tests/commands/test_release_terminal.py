"""Passphrases and the yes, typed on a real terminal: nothing is echoed, and the echo comes back however it ends."""

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.publishing import PASSPHRASE, Desk
from tests.commands.running import TIMEOUT_SECONDS, Runner

_ENTRY = """
import fcntl, os, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from bcd.cli import entry
entry()
"""


class Typist:
    """`bcd` in a session of its own, whose terminal a person types on."""

    def __init__(self, run: Runner, *args: str) -> None:
        self.master, slave = pty.openpty()
        self.slave = slave
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ENTRY, *args], stdin=slave, stdout=slave, stderr=slave, env=run.environ()
        )
        self.seen = ""

    def wait_for(self, text: str) -> None:
        """Read until `text` has been shown since the last answer."""
        until = time.monotonic() + TIMEOUT_SECONDS
        while text not in self.seen:
            assert select.select([self.master], [], [], max(0.0, until - time.monotonic()))[0], self.seen
            self.seen += os.read(self.master, 65_536).decode()

    def type(self, line: str, after: str) -> None:
        """Type a line once `after` is shown and, for a secret, the echo is off."""
        self.wait_for(after)
        self.seen = ""
        while "passphrase" in after and self.echoes():
            time.sleep(0.005)
        os.write(self.master, line.encode() + b"\n")

    def echoes(self) -> bool:
        """Whether the terminal shows what is typed."""
        return bool(termios.tcgetattr(self.slave)[3] & termios.ECHO)

    def end(self) -> int:
        """How it ended; the rest of what was shown is in `seen`."""
        status = self.process.wait(TIMEOUT_SECONDS)
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65_536).decode()
        return status

    def close(self) -> None:
        """Take the terminal away."""
        self.process.kill()
        self.process.wait()
        for handle in (self.master, self.slave):
            os.close(handle)


@pytest.fixture
def desk(home: Path) -> Desk:
    (home / "desk").mkdir()
    return Desk(home / "desk")


@pytest.fixture
def typists(run: Runner) -> Iterator[list[Typist]]:
    made: list[Typist] = []
    yield made
    for typist in made:
        typist.close()


def start(typists: list[Typist], run: Runner, *args: str) -> Typist:
    typists.append(Typist(run, *args))
    return typists[-1]


def test_a_passphrase_is_typed_twice_and_never_shown(desk: Desk, run: Runner, typists: list[Typist]) -> None:
    typist = start(typists, run, "release", "keygen", "dora", "--directory", str(desk.home))
    typist.type(PASSPHRASE, "passphrase for the new key dora: ")
    typist.type(PASSPHRASE, "the same again: ")
    assert (typist.end(), PASSPHRASE in typist.seen, typist.echoes()) == (0, False, True)
    assert (desk.home / "dora.key").exists()


def test_two_passphrases_that_differ_make_no_key(desk: Desk, run: Runner, typists: list[Typist]) -> None:
    before = desk.snapshot()
    typist = start(typists, run, "release", "keygen", "dora", "--directory", str(desk.home))
    typist.type(PASSPHRASE, "passphrase for the new key dora: ")
    typist.type(PASSPHRASE + "!", "the same again: ")
    assert (typist.end(), "(bad-passphrase)" in typist.seen) == (2, True)
    assert desk.snapshot() == before


def test_signing_asks_for_a_yes_and_lets_a_passphrase_be_mistyped(
    desk: Desk, run: Runner, typists: list[Typist]
) -> None:
    desk.publish(1)
    typist = start(typists, run, "release", "sign", str(desk.manifest), str(desk.home / "alice.key"))
    typist.wait_for("sequence 15")
    typist.type("y", "[y/N] ")
    typist.type("wrong words", "passphrase for ")
    typist.type(PASSPHRASE, "passphrase for ")
    assert (typist.end(), "bob, alice" in typist.seen) == (0, True)


@pytest.mark.parametrize("answer", ["", "n", "yep"])
def test_whatever_is_no_yes_is_a_no(answer: str, desk: Desk, run: Runner, typists: list[Typist]) -> None:
    desk.publish(0)
    before = desk.snapshot()
    typist = start(typists, run, "release", "sign", str(desk.manifest), str(desk.home / "bob.key"))
    typist.type(answer, "[y/N] ")
    assert (typist.end(), "(not-confirmed)" in typist.seen) == (2, True)
    assert desk.snapshot() == before


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_whatever_ends_the_question_gives_the_terminal_its_echo_back(
    number: signal.Signals, status: int, desk: Desk, run: Runner, typists: list[Typist]
) -> None:
    before = desk.snapshot()
    typist = start(typists, run, "release", "keygen", "dora", "--directory", str(desk.home))
    typist.wait_for("passphrase for the new key dora: ")
    while typist.echoes():
        time.sleep(0.005)
    typist.process.send_signal(number)
    assert (typist.end(), typist.echoes()) == (status, True)
    assert "Traceback" not in typist.seen
    assert desk.snapshot() == before
