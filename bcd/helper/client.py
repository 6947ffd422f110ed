"""The node's side of the helper's socket: the manager's interface, asked of root (section 10).

What only looks is read from the disk, where root's records are for everybody to read. The peer must be root, as the
kernel says: whoever else could listen there would tell the node what to restart into.
"""

import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar

from bcd.core.answers import Prepared, Settled, Way
from bcd.core.build import Build
from bcd.core.clock import Clock
from bcd.core.config import Config
from bcd.core.errors import BcdError, HostError, Refusal
from bcd.core.layout import layout_of
from bcd.core.leftovers import remove_stale_downloads
from bcd.core.look import Look
from bcd.core.records import Json, PendingRecord
from bcd.core.settle import Outcome
from bcd.core.text import clean, raw
from bcd.helper import wire
from bcd.helper.peer import peer_of
from bcd.helper.wire import Malformed

_CONNECT_SECONDS = 5.0
_CONNECT_AGAIN_SECONDS = 0.02
_ASK_SECONDS = 60.0
_SWAP_SECONDS = 900.0
"""512 MiB onto a slow disk, hashed as they are written."""
_CHUNK_BYTES = 64 * 1024

T = TypeVar("T")


class Info(NamedTuple):
    """Who answers."""

    protocol: int
    version: str
    """The helper's own."""
    running: str
    """What it says runs on this node."""


class HelperManager:
    """The manager in `bcd helper`."""

    def __init__(self, *, config: Config, build: Build, clock: Clock, socket_path: str, root_uid: int = 0) -> None:
        self._build = build
        self._clock = clock
        self._layout = layout_of(config)
        self._socket_path = socket_path
        self._root_uid = root_uid
        self._refused: str | None = None
        self.look = Look(self._layout, clock)

    def running_version(self) -> str:
        """The version that runs here: the current slot's record, as the helper sees it too."""
        try:
            return self.look.current_version() or self._build.version
        except HostError:
            return self._build.version

    def settle(self) -> Settled:
        """Have this start settled. Raises as `Manager.settle`, and HostError `helper-unreachable`."""
        settled = self._ask(wire.SETTLE, {}, _ASK_SECONDS, wire.parse_settled)
        pending = settled.pending
        if settled.outcome is Outcome.ROLLED_BACK and pending and raw(pending.to_version) == self._build.version:
            # Root went back while this process, which is what was swapped in, could not be settled: the record is gone
            # now, and nobody else would start what ran before.
            settled = replace(settled, restart=True)
        if settled.outcome is Outcome.SETTLED:
            remove_stale_downloads(self._layout, self._clock)
        else:
            self.look.time_left()  # from here on there is never more
        return settled

    def prepare(self, spec: object, *, server_time: int | None) -> Prepared | None:
        """Have a section checked. Raises as `Manager.prepare`, and HostError `helper-unreachable`."""
        return self._ask(wire.PREPARE, {"spec": spec, "server_time": server_time}, _ASK_SECONDS, wire.parse_prepared)

    def swap(self, spec: object, *, server_time: int | None, command_id: str | None) -> PendingRecord:
        """Have the staged release swapped in. Raises as `Manager.swap`, and HostError `helper-unreachable`."""
        params: Json = {"spec": spec, "server_time": server_time, "command_id": command_id}
        return self._ask(wire.SWAP, params, _SWAP_SECONDS, _parse_swapped)

    def confirm(self) -> PendingRecord | None:
        """Have the pending release confirmed. Raises as `Manager.confirm`, and HostError `helper-unreachable`."""
        return self._ask(wire.CONFIRM, {}, _ASK_SECONDS, wire.parse_pending_value)

    def rollback(self, *, way: Way, said: str | None = None) -> bool:
        """Have `current` pointed back. Raises as `Manager.rollback`, and HostError `helper-unreachable`."""
        params: Json = {"way": way, "said": said, "refused": self._refused}
        return self._ask(wire.ROLLBACK, params, _ASK_SECONDS, _parse_moved)

    def note_gateway_refused(self, said: str) -> None:
        """Kept for the rollback's request: the rules give it no request of its own."""
        self._refused = said

    def _ask(self, method: str, params: Json, seconds: float, read: Callable[[object], T]) -> T:
        try:
            line = wire.dump_line({"protocol": wire.PROTOCOL, "method": method, "params": params})
        except UnicodeEncodeError as error:
            raise Refusal("bad-section", "the section holds a lone surrogate", "") from error
        if len(line) > wire.LINE_LIMIT:
            raise Refusal("bad-section", "the section is larger than a request may be", "")
        answer = ask(self._socket_path, line, seconds, root_uid=self._root_uid)
        try:
            if answer.get("ok") is True:
                return read(answer.get("result"))
            told = wire.error_of(answer)
        except Malformed as error:
            raise _unreachable(self._socket_path, f"its answer makes no sense: {error}") from error
        raise _as_the_rules_name_it(told)


def ask_info(socket_path: str, seconds: float, *, root_uid: int = 0) -> Info:
    """Ask who answers.

    Raises:
        HostError: `helper-unreachable`.
    """
    line = wire.dump_line({"protocol": wire.PROTOCOL, "method": wire.INFO, "params": {}})
    answer = ask(socket_path, line, seconds, root_uid=root_uid)
    try:
        if answer.get("ok") is not True:
            raise _as_the_rules_name_it(wire.error_of(answer))
        result = answer.get("result")
        running = wire.text_of(result if isinstance(result, dict) else {}, "running")
        return Info(wire.integer_of(answer, "protocol"), wire.text_of(answer, "version"), running)
    except Malformed as error:
        raise _unreachable(socket_path, f"its answer makes no sense: {error}") from error


def ask(socket_path: str, line: bytes, seconds: float, *, root_uid: int = 0) -> Json:
    """Send one line and return the answer of the same protocol.

    Raises:
        HostError: `helper-unreachable`, with why and what to do.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as client:
            _connect(client, socket_path, min(_CONNECT_SECONDS, seconds))
            peer = peer_of(client)
            if peer.uid != root_uid:
                raise _unreachable(socket_path, f"uid {peer.uid} listens there, not root")
            client.sendall(line)
            answer = wire.parse_line(_read_line(client, time.monotonic() + seconds))
    except Malformed as error:
        raise _unreachable(socket_path, f"its answer makes no sense: {error}") from error
    except OSError as error:
        why = "it did not answer in time" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise _unreachable(socket_path, why) from error
    protocol = answer.get("protocol")
    if type(protocol) is not int or protocol != wire.PROTOCOL:
        age = "older" if type(protocol) is int and protocol < wire.PROTOCOL else "newer"
        raise _unreachable(
            socket_path,
            f"it speaks protocol {clean(repr(protocol), 40)} and this bcd {wire.PROTOCOL}: it is {age} than the node",
        )
    return answer


def _connect(client: socket.socket, socket_path: str, seconds: float) -> None:
    client.settimeout(seconds)
    until = time.monotonic() + seconds
    while True:
        try:
            client.connect(socket_path)
        except BlockingIOError:  # its queue is full for the moment, by somebody's flood; on TCP this would have waited
            if time.monotonic() >= until:
                raise TimeoutError from None
            time.sleep(_CONNECT_AGAIN_SECONDS)
        else:
            return


def _read_line(client: socket.socket, until: float) -> bytes:
    read = bytearray()
    while not read.endswith(b"\n"):
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        client.settimeout(left)
        chunk = client.recv(_CHUNK_BYTES)
        if not chunk:
            raise ConnectionResetError(0, "it hung up")
        read += chunk
        if len(read) > wire.LINE_LIMIT:
            raise Malformed("it is too long")
    return bytes(read)


def _parse_swapped(value: object) -> PendingRecord:
    pending = wire.parse_pending_value(value)
    if pending is None:
        raise Malformed("a swap without a record")
    return pending


def _parse_moved(value: object) -> bool:
    return wire.flag_of(value if isinstance(value, dict) else {}, "moved")


def _as_the_rules_name_it(error: BcdError) -> BcdError:
    # The gateway knows the codes of section 4 alone; the helper's own say what is the matter with the socket.
    if error.code in ("bad-request", "helper-busy", "not-permitted"):
        return HostError("helper-unreachable", f"the helper did not take the request: {error.message}", error.hint)
    return error


def _unreachable(path: str, why: str) -> HostError:
    named = os.path.abspath(path)
    return HostError(
        "helper-unreachable",
        f"the helper at {named} could not be asked: {why}",
        "systemctl restart bcd-helper.service; the node tries again by itself",
    )
