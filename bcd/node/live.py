"""The agent's live state and the Unix socket that shows it (spec/gateway.md, what the node shows locally).

It only shows: whatever a client sends is ignored. On connect one JSON line with the whole state, then again a whole
line for each change, so that a reader who missed one has missed nothing.
"""

import asyncio
import json
import logging
import os
import socket
from contextlib import suppress

from bcd.core.durable import remove_if_there
from bcd.node.client import SOCKET_NAME

FORMAT = 1
_MODE = 0o660
_CLIENTS = 32
_BEHIND_BYTES = 256 * 1024
"""A reader this far behind is let go: it must not cost the agent memory."""

_log = logging.getLogger(__name__)


class LiveState:
    """What only the agent knows, published to whoever is connected."""

    def __init__(self, *, role: str, version: str) -> None:
        self._state: dict[str, object] = {
            "format": FORMAT,
            "role": role,
            "version": version,
            "pid": os.getpid(),
            "session": {"state": "disconnected", "id": None, "since": None, "error": None},
            "target": None,
            "phase": "idle",
            "bytes_done": None,
            "bytes_total": None,
            "rate": None,
            "retry_at": None,
            "error": None,
            "pending_deadline": None,
        }
        self._writers: set[asyncio.StreamWriter] = set()
        self._clients: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._path: str | None = None

    def update(self, **changes: object) -> None:
        """Change fields; unchanged values publish nothing."""
        if any(self._state.get(key) != value for key, value in changes.items()):
            self._state.update(changes)
            self._publish()

    async def serve(self, data_dir: str) -> None:
        """Listen on `<data_dir>/node.sock`. A failure to is logged: the agent works without being looked at."""
        path = os.path.join(data_dir, SOCKET_NAME)
        try:
            # Through the open directory: a socket's address has 108 bytes, a data_dir may have more.
            directory = os.open(data_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                address = f"/proc/self/fd/{directory}/.{SOCKET_NAME}.{os.getpid()}"
                remove_if_there(address)
                listener = socket.socket(socket.AF_UNIX)
                try:
                    listener.bind(address)
                    os.chmod(address, _MODE)
                    listener.listen()
                    os.rename(address, path)
                    # Handed over under its last name: from 3.13 on asyncio would look for the first one at the end, through
                    # a descriptor that is something else by then, and complain.
                    self._server = await asyncio.start_unix_server(self._show, sock=listener)
                except OSError:
                    listener.close()
                    raise
            finally:
                os.close(directory)
        except OSError as error:
            _log.warning("the live state is not shown: %s", error)
            return
        self._path = path

    async def close(self) -> None:
        """Stop showing and take the socket away."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        # Waited for: a task that is left when the loop closes complains on standard error.
        await asyncio.gather(*self._clients, return_exceptions=True)
        if self._path is not None:
            with suppress(OSError):
                os.unlink(self._path)

    async def _show(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._writers) >= _CLIENTS:
            writer.close()
            return
        self._writers.add(writer)
        task = asyncio.current_task()
        if task is not None:
            self._clients.add(task)
            task.add_done_callback(self._clients.discard)
        try:
            writer.write(self._line())
            while await reader.read(4096):
                pass
        except OSError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _publish(self) -> None:
        line = self._line()
        for writer in list(self._writers):
            if writer.transport.get_write_buffer_size() > _BEHIND_BYTES:
                writer.transport.abort()
            else:
                writer.write(line)

    def _line(self) -> bytes:
        return json.dumps(self._state, separators=(",", ":")).encode() + b"\n"
