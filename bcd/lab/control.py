"""Speaking to a running lab from another shell: a Unix socket in its directory, one JSON line each way.

Asked: `{"push": NAME, "by_command": bool}`. Answered: `{"said": TEXT}`, or `{"code": …, "message": …, "hint": …}` when it
is refused. Only the lab's own user may speak (the socket's mode is 0600).
"""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bcd.core.errors import UsageError

_NAME = "lab.sock"
_LINE_LIMIT_BYTES = 64 * 1024
_SECONDS = 30.0

Push = Callable[[str, bool], str]
"""Pushes the release of this name, by command or by section, and says what was done. Raises UsageError."""


class ControlSocket:
    """The lab's end. Listens from the moment it is made until `close`; one request at a time."""

    def __init__(self, directory: Path, push: Push) -> None:
        self._push = push
        self._path = directory / _NAME
        self._socket = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            with _reachable(directory) as path:
                self._socket.bind(path)
        finally:
            os.umask(before)
        self._socket.listen()
        self._thread = threading.Thread(target=self._serve, name="lab-control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(_SECONDS)
                connection.sendall(json.dumps(self.answer(_read_line(connection))).encode() + b"\n")

    def answer(self, line: bytes) -> dict[str, str]:
        """Do what a line asks; what is answered."""
        try:
            asked = json.loads(line)
            return {"said": self._push(str(asked["push"]), bool(asked["by_command"]))}
        except UsageError as error:
            return {"code": error.code, "message": error.message, "hint": error.hint}
        except (ValueError, KeyError, TypeError):
            return {"code": "bad-request", "message": "the lab does not understand the request", "hint": ""}


def ask_to_push(directory: Path, name: str, *, by_command: bool) -> str:
    """Ask the lab in `directory` to push a release; what it says it did.

    Raises:
        UsageError: `no-lab`, or what the lab answers.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection, _reachable(directory) as path:
            connection.settimeout(_SECONDS)
            connection.connect(path)
            connection.sendall(json.dumps({"push": name, "by_command": by_command}).encode() + b"\n")
            answer = json.loads(_read_line(connection))
    except (OSError, ValueError) as error:
        raise UsageError("no-lab", f"no lab is running in {directory}", "start one with `bcd lab up`") from error
    if "said" not in answer:
        raise UsageError(str(answer.get("code")), str(answer.get("message")), str(answer.get("hint")))
    return str(answer["said"])


@contextmanager
def _reachable(directory: Path) -> Iterator[str]:
    """The socket's path, short enough for a socket's address however long the directory's is."""
    handle = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{_NAME}"
    finally:
        os.close(handle)


def _read_line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n") and len(line) < _LINE_LIMIT_BYTES:
        chunk = connection.recv(_LINE_LIMIT_BYTES)
        if not chunk:
            break
        line += chunk
    return line
