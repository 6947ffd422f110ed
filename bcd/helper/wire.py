"""What passes over the helper's socket: protocol 1, one JSON object a line, at most 4 MiB (section 10).

    -> {"protocol":1,"method":"update.prepare","params":{"spec":…,"server_time":1800000000}}
    <- {"protocol":1,"version":"1.4.0","ok":true,"result":…}
    <- {"protocol":1,"version":"1.4.0","ok":false,"refused":true,"code":"expired","message":"…","hint":"…"}

No path is ever among the parameters. Both sides read strictly what decides and pass over fields that they don't know,
so either may be newer; a protocol of another number is told as that.
"""

import json
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from bcd.core.answers import Fetch, Prepared, Settled
from bcd.core.errors import BcdError, HostError, Refusal
from bcd.core.records import Failed, Json, PendingRecord, dump_pending, parse_pending
from bcd.core.settle import Outcome
from bcd.core.strict import MAX_INTEGER, check_tree
from bcd.core.text import Foreign, raw

PROTOCOL = 1
LINE_LIMIT = 4 * 1024 * 1024
"""Bytes of a line, its end included."""
_BRACKETS_LIMIT = 100_000
"""Anywhere in a line, texts too: more than any manifest has. The parser holds up every other thread while it makes them."""
_VALUES_LIMIT = 10_000
"""Members of all lists and objects of a line; a message has some twenty."""

INFO = "helper.info"
"""A question of ours beside the rules' five: does it answer, and which version is it? It touches nothing."""
PREPARE, SWAP, CONFIRM, ROLLBACK, SETTLE = (
    f"update.{name}" for name in ("prepare", "swap", "confirm", "rollback", "settle")
)

T = TypeVar("T")


class Request(NamedTuple):
    """One question."""

    method: str
    params: Json


class Malformed(ValueError):
    """A line that is no message of this protocol; says why in a few words."""


def parse_line(line: bytes) -> Json:
    """Read one line's object.

    Raises:
        Malformed: it is none, or no value to be handed on (too deep, a lone surrogate).
    """
    if line.count(b"[") + line.count(b"{") > _BRACKETS_LIMIT:
        raise Malformed("it has too many brackets")
    try:
        document = json.loads(line.decode())  # of bytes, the parser would guess UTF-16 too
        check_tree(document, values_limit=_VALUES_LIMIT)
    except (ValueError, RecursionError) as error:  # int() of 5,000 digits is a ValueError too
        raise Malformed(f"it is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise Malformed("it is no JSON object")
    return document


def dump_line(document: Json) -> bytes:
    """A message's bytes. Raises UnicodeEncodeError for a lone surrogate."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def parse_request(document: Json) -> Request:
    """Read a question of this protocol's number.

    Raises:
        Malformed: `method` or `params` is missing or mistyped.
    """
    method, params = document.get("method"), document.get("params", {})
    if not isinstance(method, str) or not isinstance(params, dict):
        raise Malformed("method is no text, or params is no object")
    return Request(method, params)


def good_answer(version: str, result: object) -> Json:
    """The answer that carries a result."""
    return {"protocol": PROTOCOL, "version": version, "ok": True, "result": result}


def bad_answer(version: str, error: BcdError) -> Json:
    """The answer that carries an error: `refused` tells a final no from one that may pass."""
    return {
        "protocol": PROTOCOL,
        "version": version,
        "ok": False,
        "refused": isinstance(error, Refusal),
        **_error_json(error),
    }


def error_of(answer: Json) -> BcdError:
    """The error that an answer carries. Raises Malformed."""
    family = Refusal if answer.get("refused") is True else HostError
    return family(*(text_of(answer, key) for key in ("code", "message", "hint")))


# -- values ---------------------------------------------------------------------------------------------------------


def prepared_json(prepared: Prepared | None) -> object:
    """What `update.prepare` gives."""
    if prepared is None:
        return None
    fetch = prepared.fetch
    fields = ("version", "sequence", "url", "sha256", "size")
    return {
        "version": prepared.version,
        "fetch": None if fetch is None else {name: getattr(fetch, name) for name in fields},
    }


def parse_prepared(value: object) -> Prepared | None:
    """Read what `prepared_json` wrote. Raises Malformed."""
    document = _optional(value, _mapping)
    if document is None:
        return None
    fetch = _optional(document.get("fetch"), _mapping)
    return Prepared(
        version=text_of(document, "version"),
        fetch=None
        if fetch is None
        else Fetch(
            version=raw(text_of(fetch, "version")),
            sequence=integer_of(fetch, "sequence"),
            url=raw(text_of(fetch, "url")),
            sha256=raw(text_of(fetch, "sha256")),
            size=integer_of(fetch, "size"),
        ),
    )


def pending_json(pending: PendingRecord | None) -> object:
    """A swap, as its record is."""
    return None if pending is None else json.loads(dump_pending(pending))


def parse_pending_value(value: object) -> PendingRecord | None:
    """Read what `pending_json` wrote. Raises Malformed."""
    document = _optional(value, _mapping)
    try:
        return None if document is None else parse_pending(document)
    except ValueError as error:
        raise Malformed(f"a swap: {error}") from error


def settled_json(settled: Settled) -> object:
    """What `update.settle` gives."""
    failed = settled.failed
    return {
        "outcome": settled.outcome.value,
        "pending": pending_json(settled.pending),
        "failed": None
        if failed is None
        else {
            "version": raw(failed.version),
            "sequence": failed.sequence,
            "reason": raw(failed.reason),
            "at": failed.at,
        },
        "restart": settled.restart,
        "stayed": None if settled.stayed is None else _error_json(settled.stayed),
    }


def parse_settled(value: object) -> Settled:
    """Read what `settled_json` wrote. Raises Malformed."""
    document = _mapping(value)
    failed, stayed = (_optional(document.get(key), _mapping) for key in ("failed", "stayed"))
    try:
        outcome = Outcome(document.get("outcome"))
    except ValueError as error:
        raise Malformed("an outcome that this version does not know") from error
    return Settled(
        outcome=outcome,
        pending=parse_pending_value(document.get("pending")),
        failed=None
        if failed is None
        else Failed(
            text_of(failed, "version"),
            integer_of(failed, "sequence"),
            text_of(failed, "reason"),
            integer_of(failed, "at"),
        ),
        restart=flag_of(document, "restart"),
        stayed=None if stayed is None else HostError(*(text_of(stayed, key) for key in ("code", "message", "hint"))),
    )


def _error_json(error: BcdError) -> Json:
    return {"code": error.code, "message": raw(error.message), "hint": raw(error.hint)}


# -- fields ---------------------------------------------------------------------------------------------------------


def text_of(document: Json, key: str) -> str:
    """A text from outside. Raises Malformed."""
    value = document.get(key)
    if not isinstance(value, str):
        raise Malformed(f"{key} is no text")
    return Foreign(value)


def optional_text(document: Json, key: str) -> str | None:
    """The same, or None where it is absent or null. Raises Malformed."""
    return None if document.get(key) is None else text_of(document, key)


def integer_of(document: Json, key: str) -> int:
    """An integer from 0 to 2^53-1. Raises Malformed."""
    value = document.get(key)
    if type(value) is not int or not 0 <= value <= MAX_INTEGER:
        raise Malformed(f"{key} is no integer from 0 to 2^53-1")
    return value


def optional_integer(document: Json, key: str) -> int | None:
    """The same, or None where it is absent or null. Raises Malformed."""
    return None if document.get(key) is None else integer_of(document, key)


def flag_of(document: Json, key: str) -> bool:
    """True or false. Raises Malformed."""
    value = document.get(key)
    if not isinstance(value, bool):
        raise Malformed(f"{key} is neither true nor false")
    return value


def _mapping(value: object) -> Json:
    if not isinstance(value, dict):
        raise Malformed("a value is no object")
    return value


def _optional(value: object, read: Callable[[object], T]) -> T | None:
    return None if value is None else read(value)
