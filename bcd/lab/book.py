"""What the gateway knows of one node, and wants of it: its page in the gateway's book.

Plain data and pure questions over it. The gateway writes under its lock, and whoever asks holds the same lock.
Times are seconds of the monotonic clock.
"""

import itertools
from dataclasses import dataclass, field
from typing import Any

from bcd.lab.behaviour import AT_HANDSHAKE, WELCOME, Behaviour

FINAL_STATES = frozenset({"SUCCEEDED", "FAILED", "UNSUPPORTED"})

Json = dict[str, Any]
"""A frame: one JSON object."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One frame, in either direction."""

    at: float
    from_node: bool
    session: int
    body: Json


@dataclass(kw_only=True)
class Session:
    """One connection that said hello."""

    number: int
    version: str
    opened_at: float
    welcomed_at: float | None = None
    closed_at: float | None = None


@dataclass(kw_only=True)
class Command:
    """A command until its end was acked; then kept for the record."""

    id: str
    kind: str
    args: Json
    finished: bool = False


@dataclass(kw_only=True)
class Page:
    """One node's page."""

    node: str
    behaviour: Behaviour = WELCOME
    behaviour_by_version: dict[str, Behaviour] = field(default_factory=dict)
    acks: bool = True
    """Whether final command statuses are acked."""
    replays: bool = True
    """Whether unfinished commands are told again after a hello."""
    clock_ahead: float = 0.0
    """Seconds by which the server time that the node is told is ahead of this machine's."""
    section: Json | None = None
    generation: int = 0
    commands: dict[str, Command] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    turned_away: int = 0
    """Handshakes that got no WebSocket."""

    def manner_at_handshake(self) -> Behaviour | None:
        """What stands before the WebSocket, or None where the hello is to be heard."""
        return self.behaviour if self.behaviour.manner in AT_HANDSHAKE else None

    def manner_for(self, version: str) -> Behaviour:
        """What to do with a node that said hello as `version`."""
        return self.behaviour_by_version.get(version, self.behaviour)

    def section_statuses(self) -> list[Json]:
        """Every `section_status`, oldest first."""
        return self._sent("section_status")

    def command_statuses(self, command_id: str) -> list[Json]:
        """Every `command_status` for a command, oldest first."""
        return [body for body in self._sent("command_status") if body.get("id") == command_id]

    def answers(self, command_id: str) -> list[Json]:
        """The final ones among them."""
        return [body for body in self.command_statuses(command_id) if body.get("state") in FINAL_STATES]

    def versions(self) -> list[str]:
        """The versions that said hello, in order, each once in a row."""
        return [version for version, _ in itertools.groupby(session.version for session in self.sessions)]

    def welcomed(self) -> Session | None:
        """The session that is open and welcomed, or None."""
        if not self.sessions:
            return None
        last = self.sessions[-1]
        return last if last.welcomed_at is not None and last.closed_at is None else None

    def longest_gap(self) -> float | None:
        """The longest time from the end of a welcomed session to the next welcome; None without such a pair."""
        welcomed = [session for session in self.sessions if session.welcomed_at is not None]
        gaps = [
            after.welcomed_at - before.closed_at
            for before, after in itertools.pairwise(welcomed)
            if before.closed_at is not None and after.welcomed_at is not None
        ]
        return max(gaps, default=None)

    def _sent(self, kind: str) -> list[Json]:
        return [frame.body for frame in self.frames if frame.from_node and frame.body.get("type") == kind]
