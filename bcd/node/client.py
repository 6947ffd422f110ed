"""The read-only client of the agent's live state, for `bcd update`, doctor and the console. Never needs an agent."""

import json
import os
import time

from bcd.core.text import Foreign

SOCKET_NAME = "node.sock"
_LINE_LIMIT = 64 * 1024


def read_live_state(data_dir: str, timeout_seconds: float = 0.5) -> dict[str, object] | None:
    """Return the agent's whole live state, or None where none answers in time, none may be asked, or it makes no sense."""
    if not os.path.exists(os.path.join(data_dir, SOCKET_NAME)):
        return None
    try:
        state = made_safe(json.loads(_first_line(data_dir, time.monotonic() + timeout_seconds)))
    except (OSError, ValueError, RecursionError):
        return None
    return state if isinstance(state, dict) else None


def _first_line(data_dir: str, until: float) -> bytes:
    # Imported late: most of what a bare start of `bcd update` may cost, and often there is no agent.
    import socket  # noqa: PLC0415

    line = b""
    directory = os.open(data_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX) as client:
            while b"\n" not in line:
                # What is left of the whole time, not a time for each byte: a peer may dribble.
                left = until - time.monotonic()
                if left <= 0 or len(line) > _LINE_LIMIT:
                    raise TimeoutError
                client.settimeout(left)
                if not line:
                    client.connect(f"/proc/self/fd/{directory}/{SOCKET_NAME}")
                chunk = client.recv(_LINE_LIMIT)
                if not chunk:
                    raise ConnectionResetError
                line += chunk
    finally:
        os.close(directory)
    return line.partition(b"\n")[0]


def made_safe(value: object) -> object:
    """A parsed document with every text in it made safe to show."""
    if isinstance(value, str):
        return Foreign(value)
    if isinstance(value, dict):
        return {Foreign(key): made_safe(item) for key, item in value.items()}
    return [made_safe(item) for item in value] if isinstance(value, list) else value
