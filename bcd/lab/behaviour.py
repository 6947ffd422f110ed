"""How the lab's gateway treats a node, as values: any of them, at any time, for a node or for one of its versions."""

from dataclasses import dataclass
from enum import Enum


class Manner(Enum):
    """What the gateway does with a node that comes to it."""

    WELCOME = "welcome"
    SILENT = "silent"
    """Take the connection and the hello, and never say a word."""
    REFUSE = "refuse"
    """Answer the hello with a bye."""
    BUSY = "busy"
    """Refuse the WebSocket handshake with an HTTP status."""
    CUT = "cut"
    """Drop the connection at the handshake, without a word."""


AT_HANDSHAKE = frozenset({Manner.BUSY, Manner.CUT})
"""The manners that come before the hello, so before anyone knows the version."""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """A manner and what it needs."""

    manner: Manner
    text: str = ""
    """The reason that a bye gives."""
    status: int = 0
    """The HTTP status of a busy gateway."""


WELCOME = Behaviour(manner=Manner.WELCOME)
SILENT = Behaviour(manner=Manner.SILENT)
CUT = Behaviour(manner=Manner.CUT)


def refuse(reason: str) -> Behaviour:
    """Say bye with `reason` to each hello."""
    return Behaviour(manner=Manner.REFUSE, text=reason)


def busy(status: int) -> Behaviour:
    """Turn each handshake away with an HTTP status: 429 or 503."""
    return Behaviour(manner=Manner.BUSY, status=status)
