"""Stands in for systemd: starts a node, restarts it when it fails, and at the start limit runs the rollback script.

It keeps to what the units of spec/self-update.md section 9 make systemd do: Restart=on-failure, a short RestartSec,
5 starts in 600 s, then `bcd-rollback.service`, which runs only while an update is pending, resets the count and starts
the node again. An exec in place is no start and a clean exit is no failure.
"""

import importlib.resources
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bcd.lab.leash import start_on_leash
from bcd.lab.startlimit import StartLimit

RESTART_SECONDS = 0.2
_STOP_SECONDS = 10.0
"""From SIGTERM to SIGKILL."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """What is supervised: `bcd.service` and `bcd-rollback.service` in one."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    slots: Path
    records: Path
    log: Path
    """What the program and the supervisor say is added to this file."""
    name: str = "the entrypoint"
    """What is started, for people."""
    uid: int | None = None
    """The user, and the group of the same number, as which it runs; None for the lab's own."""
    rolls_back: bool = True
    """Whether the start limit has the rollback script run."""


class Supervisor:
    """Supervises one unit. Every method may be called from any thread."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._limit = StartLimit()
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._retired = False
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        """Starts so far, restarts included."""
        self.rollbacks = 0
        """Runs of the rollback script."""
        self.tell: Callable[[str], None] = lambda _: None
        """Called, in a thread of the supervisor's, with each thing that it does."""

    @property
    def active(self) -> bool:
        """Whether the node runs or is about to be restarted."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def pid(self) -> int | None:
        """The node's process, None while there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def start(self) -> None:
        """Start the node; nothing happens when it is active already, or retired."""
        with self._lock:
            if self._retired or self.active:
                return
            self._wanted.set()
            # One thread for as long as the unit is active: the node's life hangs on it (see `leash`).
            self._thread = threading.Thread(target=self._supervise, name="supervisor", daemon=True)
            self._thread.start()

    def kill(self) -> None:
        """End the node's process with SIGKILL, as a crash would: it is restarted, as far as the start limit lets it."""
        with self._lock:
            self._signal(signal.SIGKILL)

    def restart(self) -> None:
        """End the node in order and start it, its start limit forgotten: `systemctl reset-failed` and `restart`."""
        self.stop()
        self._limit.reset()
        self.start()

    def stop(self) -> None:
        """End the node in order (SIGTERM) and leave it stopped."""
        self._end(signal.SIGTERM)

    def power_off(self) -> None:
        """End the node at once (SIGKILL) and leave it stopped."""
        self._end(signal.SIGKILL)

    def retire(self) -> None:
        """End the node at once, and have it never start again, whoever is just about to start it."""
        with self._lock:
            self._retired = True
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        with self._lock:
            self._wanted.clear()
            self._signal(how)
        thread = self._thread
        if thread is not None:
            thread.join(_STOP_SECONDS)
            if thread.is_alive():
                self._signal(signal.SIGKILL)
                thread.join()

    def _signal(self, how: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(how)

    def _supervise(self) -> None:
        with open(self._unit.log, "ab", buffering=0) as log:
            while self._wanted.is_set():
                if not self._limit.allows(time.monotonic()):
                    self._say(log, "start limit hit: 5 starts in 600 s")
                    if not self._unit.rolls_back or not self._roll_back(log):
                        return
                    self._limit.reset()
                    continue
                self._run_once(log)
                if not self._wanted.is_set():
                    return
                time.sleep(RESTART_SECONDS)

    def _run_once(self, log: IO[bytes]) -> int:
        """Start the node and wait for its end; its status, negative for a signal."""
        with self._lock:
            if not self._wanted.is_set():
                return 0
            self.starts += 1
            self._say(log, f"start {self.starts} of {self._unit.name}")
            self._process = start_on_leash(
                self._unit.argv,
                environment=self._unit.environment,
                directory=self._unit.directory,
                log=log,
                uid=self._unit.uid,
            )
        status = self._process.wait()
        self._say(log, f"it ended with {_worded(status)}")
        return status

    def _roll_back(self, log: IO[bytes]) -> bool:
        """What `bcd-rollback.service` does; whether the node is to be started again."""
        record = self._unit.records / "upgrade.json"
        try:
            pending = '"state":"swapped"' in record.read_text(encoding="utf-8", errors="replace")
        except OSError:
            pending = False
        if not pending or not (self._unit.slots / "previous").is_symlink():
            self._say(log, "no update is pending, so there is nothing to roll back: the node stays down")
            return False
        self.rollbacks += 1
        script = importlib.resources.files("bcd.core").joinpath("rollback.sh").read_bytes()
        # On standard input: the script lies where it is installed, which may be no file at all.
        done = subprocess.run(
            ["/bin/sh", "-s", "--", os.fspath(self._unit.slots), os.fspath(self._unit.records)],
            input=script,
            stdout=log,
            stderr=log,
            check=False,
        )
        self._say(log, f"the rollback script ended with {_worded(done.returncode)}")
        return done.returncode == 0

    def _say(self, log: IO[bytes], what: str) -> None:
        log.write(f"supervisor: {what}\n".encode())
        self.tell(what)


def _worded(status: int) -> str:
    return f"status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"
