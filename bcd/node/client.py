"""The read-only client of the agent's live state, for `bcd update`, doctor and the console. Never needs an agent."""

import json
import os

from bcd.core.text import Foreign

SOCKET_NAME = "node.sock"
_LINE_LIMIT = 64 * 1024


def read_live_state(data_dir: str, timeout_seconds: float = 0.5) -> dict[str, object] | None:
    """Return the agent's whole live state, or None where none answers, none may be asked, or it is not understood."""
    if not os.path.exists(os.path.join(data_dir, SOCKET_NAME)):
        return None
    # Imported late: most of what a bare start of `bcd update` may cost, and often there is no agent.
    import socket  # noqa: PLC0415

    directory = None
    try:
        directory = os.open(data_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(timeout_seconds)
            client.connect(f"/proc/self/fd/{directory}/{SOCKET_NAME}")
            line = b""
            while b"\n" not in line and len(line) < _LINE_LIMIT:
                chunk = client.recv(_LINE_LIMIT)
                if not chunk:
                    break
                line += chunk
        state = json.loads(line.partition(b"\n")[0])
    except (OSError, ValueError):
        return None
    finally:
        if directory is not None:
            os.close(directory)
    if not isinstance(state, dict):
        return None
    return {key: Foreign(value) if isinstance(value, str) else value for key, value in state.items()}
