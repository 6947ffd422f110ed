"""The agent's live state, followed over one connection: for a console that is left open, and must cost next to nothing.

The agent sends its whole state again for each change, so a look that finds nothing new costs one system call. An agent
that hangs keeps its connections: one is trusted for a few seconds, then a new one must be answered.
"""

import json
import os
import socket
import time
from contextlib import suppress

from bcd.node.client import SOCKET_NAME, made_safe

_TRUSTED_SECONDS = 10.0
_ANSWER_SECONDS = 0.4
_LINE_LIMIT = 64 * 1024
_CHUNKS = 16
"""How much is taken in one look: an agent gone mad must not keep it."""


class LiveFollower:
    """Follows one agent; used from one thread at a time."""

    def __init__(self) -> None:
        self._data_dir = ""
        self._socket: socket.socket | None = None
        self._since = 0.0
        self._rest = b""
        self._state: dict[str, object] | None = None

    def __call__(self, data_dir: str) -> dict[str, object] | None:
        """Return the agent's state; None where none answers, none may be asked, or it makes no sense. At most 0.4 s."""
        if data_dir != self._data_dir or time.monotonic() - self._since > _TRUSTED_SECONDS:
            self.close()
            self._data_dir = data_dir
        if self._socket is not None and not self._take():
            self.close()  # gone, or a new one already: ask again at once
        if self._socket is None:
            self._ask()
        return self._state

    def close(self) -> None:
        """Let the agent go."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._rest, self._state = None, b"", None

    def _ask(self) -> None:
        if not os.path.exists(os.path.join(self._data_dir, SOCKET_NAME)):
            return
        try:
            directory = os.open(self._data_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return
        client = socket.socket(socket.AF_UNIX)
        try:
            until = time.monotonic() + _ANSWER_SECONDS
            client.settimeout(_ANSWER_SECONDS)
            # Through the open directory: a socket's address has 108 bytes, a data_dir may have more.
            client.connect(f"/proc/self/fd/{directory}/{SOCKET_NAME}")
            while b"\n" not in self._rest:
                left = until - time.monotonic()
                if left <= 0 or len(self._rest) > _LINE_LIMIT:
                    raise TimeoutError
                client.settimeout(left)
                chunk = client.recv(_LINE_LIMIT)
                if not chunk:
                    raise ConnectionResetError
                self._rest += chunk
            client.setblocking(False)
        except OSError:
            client.close()
            self._rest = b""
            return
        finally:
            os.close(directory)
        self._socket, self._since = client, time.monotonic()
        self._understand()

    def _take(self) -> bool:
        """Take what came since the last look; False when the agent is gone or talks nonsense."""
        assert self._socket is not None  # noqa: S101  # asked by the caller
        came = False
        for _ in range(_CHUNKS):
            try:
                chunk = self._socket.recv(_LINE_LIMIT)
            except BlockingIOError:
                break
            except OSError:
                return False
            if not chunk:
                return False
            self._rest, came = self._rest + chunk, True
        if came:
            self._understand()
        return len(self._rest) <= _LINE_LIMIT

    def _understand(self) -> None:
        """The last whole line is the state."""
        lines = self._rest.split(b"\n")
        self._rest = lines.pop()
        if lines:
            self._state = None
            with suppress(ValueError, RecursionError):
                state = made_safe(json.loads(lines[-1]))
                self._state = state if isinstance(state, dict) else None
