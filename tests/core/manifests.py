"""Release manifests to spoil: a good one as a document, and the steps from a document to signed bytes.

Canonical bytes are made here by the standard library, which for ASCII keys and integers does what RFC 8785 says, so
that a fault in the library that core uses does not hide.
"""

import copy
import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from bcd.core.trust import PURPOSE
from bcd.release.keys import ReleaseKey, generate_key

Document = dict[str, Any]
Path = tuple[str | int, ...]

VERSION = "1.4.1"
SHA256 = "ab" * 32
NOW = 1_800_000_000


@cache
def keys() -> tuple[ReleaseKey, ReleaseKey, ReleaseKey]:
    """Three signers; nodes pin them all, and two must sign."""
    return generate_key("one"), generate_key("two"), generate_key("three")


@cache
def pins() -> tuple[str, ...]:
    """What a node has configured."""
    return tuple(key.pin for key in keys())


def key_entry(key: ReleaseKey, kid: str | None = None) -> Document:
    """A key as a manifest lists it."""
    return {"kid": kid or key.kid, "alg": "ES256", "spki": b64encode(key.spki).decode()}


def artifact(**changes: object) -> Document:
    """An artifact as a manifest lists it."""
    return {"name": "bcd-linux-amd64", "platform": "linux-amd64", "sha256": SHA256, "size": 1000, **changes}


def document(**changes: object) -> Document:
    """A good body, with some fields of it given."""
    return {
        "type": "bettercompute.release",
        "spec": 1,
        "product": "bcd",
        "version": VERSION,
        "sequence": 15,
        "issuedAt": NOW - 86_400,
        "expiresAt": NOW + 86_400,
        "keys": [key_entry(key) for key in keys()],
        "artifacts": [artifact()],
        **changes,
    }


def changed(value: Document, path: Path, new: object) -> Document:
    """A copy of a document with something else at `path`."""
    made = copy.deepcopy(value)
    place: Any = made
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = new
    return made


def paths(value: object, path: Path = ()) -> list[Path]:
    """Where something stands in a document, at every depth."""
    inside: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    return [one for step, item in inside for one in ((*path, step), *paths(item, (*path, step)))]


def at(value: object, path: Path) -> Any:
    """What stands at a path."""
    for step in path:
        value = value[step]  # type: ignore[index]  # a path of this very document
    return value


def canonical(value: object) -> bytes:
    """A body's bytes as they are signed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def signatures(body: bytes, signers: Iterable[ReleaseKey], purpose: bytes = PURPOSE) -> list[Document]:
    """Good signatures over a body."""
    return [{"kid": key.kid, "sig": b64encode(key.sign(purpose + body)).decode()} for key in signers]


def envelope(body: bytes, entries: Sequence[object]) -> bytes:
    """What is published."""
    return json.dumps({"manifest": b64encode(body).decode(), "signatures": entries}).encode()


def signed(body: bytes | Document, signers: Iterable[ReleaseKey] | None = None) -> bytes:
    """What is published, signed by the first two keys, or by whom it is said."""
    data = canonical(body) if isinstance(body, dict) else body
    return envelope(data, signatures(data, keys()[:2] if signers is None else signers))
