"""The frames of spec/gateway.md as types: what the node sends, what it understands, and nothing else."""

import json
from typing import Annotated, Literal

import msgspec

from bcd.core.strict import MAX_INTEGER, check_tree
from bcd.core.text import Foreign, clean

SectionState = Literal["READY", "PROGRESSING", "FAILED", "UNSUPPORTED"]
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]
"""What a frame may count up to: more could be read here and not be written again."""
CommandState = Literal["ACCEPTED", "RUNNING", "SUCCEEDED", "FAILED", "UNSUPPORTED"]


class SectionStatus(msgspec.Struct, kw_only=True, frozen=True, tag="section_status", omit_defaults=True):
    """How a section stands on this node."""

    name: str
    observed_generation: int
    state: SectionState
    reason: str | None = None
    code: str | None = None
    message: str | None = None


class CommandStatus(msgspec.Struct, kw_only=True, frozen=True, tag="command_status", omit_defaults=True):
    """How a command stands on this node."""

    id: str
    state: CommandState
    reason: str | None = None
    code: str | None = None
    message: str | None = None


class Hello(msgspec.Struct, kw_only=True, frozen=True, tag="hello"):
    """The first frame, and until the welcome the only one."""

    protocol: int
    node_id: str
    role: str
    version: str
    platform: str
    sections: list[SectionStatus]


class Bye(msgspec.Struct, kw_only=True, frozen=True, tag="bye"):
    """The end of a session, from either side."""

    reason: str = ""


class Welcome(msgspec.Struct, kw_only=True, frozen=True, tag="welcome"):
    """The gateway takes the node."""

    session_id: str
    server_time: Count
    """Unix seconds."""


class Section(msgspec.Struct, kw_only=True, frozen=True, tag="section"):
    """A part of the desired state."""

    name: str
    generation: Count
    spec: object


class Command(msgspec.Struct, kw_only=True, frozen=True, tag="command"):
    """Something to do once."""

    id: str
    kind: str
    args: object


class Ack(msgspec.Struct, kw_only=True, frozen=True, tag="ack"):
    """A final command status was kept by the gateway."""

    id: str


Incoming = Welcome | Section | Command | Ack | Bye
Outgoing = Hello | SectionStatus | CommandStatus | Bye

_UNDERSTOOD: dict[str, type[Incoming]] = {
    "welcome": Welcome,
    "section": Section,
    "command": Command,
    "ack": Ack,
    "bye": Bye,
}


class MalformedFrame(ValueError):
    """A frame of a known type with fields that are not of it."""


def encode(frame: Outgoing) -> str:
    """A frame's text."""
    return encode_document(frame).decode()


def encode_document(document: object) -> bytes:
    """JSON of whatever holds text from outside: the encoder takes no subclass of str by itself.

    The fault: a helper's refusal is such text, and telling the gateway of it ended each start of the agent.
    """
    return msgspec.json.encode(document, enc_hook=_plain)


def _plain(value: object) -> str:
    if isinstance(value, Foreign):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} is no part of a frame")


def decode(text: str | bytes) -> Incoming | None:
    """Read a frame; None for a type that is not known here, since either side may be newer.

    Raises:
        MalformedFrame: it is no JSON object, or a known type's fields are wrong.
    """
    try:
        document = json.loads(text)
        check_tree(document)
    except (ValueError, RecursionError) as error:
        raise MalformedFrame(f"no JSON that can be used: {clean(str(error), 200)}") from error
    if not isinstance(document, dict):
        raise MalformedFrame("no JSON object")
    kind = document.get("type")
    understood = _UNDERSTOOD.get(kind) if isinstance(kind, str) else None
    if understood is None:
        return None
    try:
        return msgspec.convert(document, understood)
    except (msgspec.ValidationError, RecursionError) as error:
        raise MalformedFrame(f"{kind}: {clean(str(error), 200)}") from error
