"""What a release manifest is: bytes in, values out, or a few words on what is wrong with their shape.

Shape alone (spec/self-update.md section 3, stage 1): who signed is `trust`'s, and what this node accepts is
`acceptance`'s. Nothing here may be believed before `trust` has counted signatures.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

from bcd.core.strict import MAX_INTEGER, decode_base64, parse_json
from bcd.core.versions import is_version

ENVELOPE_LIMIT_BYTES = 1_048_576
KEYS_LIMIT = 16
MANIFEST_TYPE = "bettercompute.release"

_PRODUCT = re.compile(r"[a-z][a-z0-9-]{0,63}")
_KID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ARTIFACT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")
_PLATFORM = re.compile(r"[a-z0-9]{1,32}-[a-z0-9]{1,32}")
_SHA256 = re.compile(r"[0-9a-f]{64}")

_SPKI_BYTES = 91
_SPKI_PREFIX = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")
"""The DER of every uncompressed P-256 SubjectPublicKeyInfo up to its point: byte comparison leaves one spelling."""


class ShapeError(ValueError):
    """The bytes are no manifest; the text says where and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """A signer that the manifest lists; being listed is no trust."""

    kid: str
    spki: bytes
    """91 bytes of DER."""
    public_key: EllipticCurvePublicKey


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """One file of the release."""

    name: str
    platform: str
    """os-arch, `linux-amd64`."""
    sha256: str
    """64 lower-case hex digits."""
    size: int
    """Bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """A release: one version's files, and who may have signed them."""

    product: str
    version: str
    sequence: int
    issued_at: int
    """Unix seconds."""
    expires_at: int
    """Unix seconds."""
    keys: tuple[Key, ...]
    artifacts: tuple[Artifact, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """One entry of the envelope's list, as it came."""

    kid: str
    sig: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Envelope:
    """What was published: the body's bytes as they were signed, what they say, and the signatures."""

    body: bytes
    document: dict[str, object]
    """The parsed body, for its canonical form."""
    manifest: Manifest
    signatures: tuple[Signature, ...]


def parse_envelope(data: bytes) -> Envelope:
    """Read a published manifest.

    Raises:
        ShapeError: it is not of the shape of section 3. No input ends in another error.
    """
    if len(data) > ENVELOPE_LIMIT_BYTES:
        _wrong(f"larger than {ENVELOPE_LIMIT_BYTES} bytes")
    envelope = _object(_json(data, "envelope"), ("manifest", "signatures"), "envelope")
    body = _base64(envelope["manifest"], "manifest")
    signatures = tuple(
        Signature(kid=_string(entry["kid"], f"signatures[{i}].kid"), sig=_string(entry["sig"], f"signatures[{i}].sig"))
        for i, entry in enumerate(_objects(envelope["signatures"], ("kid", "sig"), "signatures"))
    )
    document = _object(_json(body, "body"), _BODY_FIELDS, "body")
    return Envelope(body=body, document=document, manifest=_manifest(document), signatures=signatures)


_BODY_FIELDS = ("type", "spec", "product", "version", "sequence", "issuedAt", "expiresAt", "keys", "artifacts")


def _manifest(body: dict[str, object]) -> Manifest:
    if body["type"] != MANIFEST_TYPE:
        _wrong(f"type is not {MANIFEST_TYPE}")
    if _integer(body["spec"], "spec", 1) != 1:
        _wrong("spec is not 1")
    version = _string(body["version"], "version")
    if not is_version(version):
        _wrong("version is no semantic version")
    issued_at = _integer(body["issuedAt"], "issuedAt", 0)
    expires_at = _integer(body["expiresAt"], "expiresAt", 0)
    if expires_at <= issued_at:
        _wrong("expiresAt is not after issuedAt")
    return Manifest(
        product=_matching(_PRODUCT, body["product"], "product"),
        version=version,
        sequence=_integer(body["sequence"], "sequence", 1),
        issued_at=issued_at,
        expires_at=expires_at,
        keys=_keys(body["keys"]),
        artifacts=_artifacts(body["artifacts"]),
    )


def _keys(value: object) -> tuple[Key, ...]:
    entries = _objects(value, ("kid", "alg", "spki"), "keys")
    if not 1 <= len(entries) <= KEYS_LIMIT:
        _wrong(f"keys are not 1 to {KEYS_LIMIT}")
    keys = tuple(_key(entry, f"keys[{i}]") for i, entry in enumerate(entries))
    _distinct((key.kid for key in keys), "keys name a kid twice")
    _distinct((key.spki for key in keys), "keys name one key twice")
    return keys


def _key(entry: dict[str, object], where: str) -> Key:
    kid = _matching(_KID, entry["kid"], f"{where}.kid")
    if entry["alg"] != "ES256":
        _wrong(f"{where}.alg is not ES256")
    spki = _base64(entry["spki"], f"{where}.spki")
    if len(spki) != _SPKI_BYTES or not spki.startswith(_SPKI_PREFIX):
        _wrong(f"{where}.spki is no uncompressed P-256 key")
    try:
        public_key = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), spki[len(_SPKI_PREFIX) :])
    except ValueError:
        _wrong(f"{where}.spki is no point on the curve")
    return Key(kid=kid, spki=spki, public_key=public_key)


def _artifacts(value: object) -> tuple[Artifact, ...]:
    entries = _objects(value, ("name", "platform", "sha256", "size"), "artifacts")
    if not entries:
        _wrong("artifacts are empty")
    artifacts = tuple(
        Artifact(
            name=_matching(_ARTIFACT_NAME, entry["name"], f"artifacts[{i}].name"),
            platform=_matching(_PLATFORM, entry["platform"], f"artifacts[{i}].platform"),
            sha256=_matching(_SHA256, entry["sha256"], f"artifacts[{i}].sha256"),
            size=_integer(entry["size"], f"artifacts[{i}].size", 1),
        )
        for i, entry in enumerate(entries)
    )
    _distinct((artifact.name for artifact in artifacts), "artifacts name a file twice")
    return artifacts


def _wrong(why: str) -> NoReturn:
    raise ShapeError(why)


def _json(data: bytes, where: str) -> object:
    try:
        return parse_json(data)
    except ValueError as error:
        raise ShapeError(f"{where}: {error}") from error


def _object(value: object, fields: tuple[str, ...], where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        _wrong(f"{where} is no object")
    # Spelled exactly: `Version` beside `version` must not read differently elsewhere.
    if value.keys() != set(fields):
        _wrong(f"{where} has not exactly the fields {', '.join(fields)}")
    return value


def _objects(value: object, fields: tuple[str, ...], where: str) -> list[dict[str, object]]:
    if not isinstance(value, list):
        _wrong(f"{where} are no list")
    return [_object(item, fields, f"{where}[{i}]") for i, item in enumerate(value)]


def _string(value: object, where: str) -> str:
    if not isinstance(value, str):
        _wrong(f"{where} is no string")
    return value


def _matching(pattern: re.Pattern[str], value: object, where: str) -> str:
    text = _string(value, where)
    if pattern.fullmatch(text) is None:
        _wrong(f"{where} is malformed")
    return text


def _integer(value: object, where: str, least: int) -> int:
    # type() and not isinstance(): true is no integer.
    if type(value) is not int or not least <= value <= MAX_INTEGER:
        _wrong(f"{where} is no integer from {least} to 2^53-1")
    return value


def _base64(value: object, where: str) -> bytes:
    try:
        return decode_base64(_string(value, where))
    except ValueError as error:
        if isinstance(error, ShapeError):
            raise
        raise ShapeError(f"{where} is {error}") from error


def _distinct(values: Iterable[object], why: str) -> None:
    listed = list(values)
    if len(set(listed)) != len(listed):
        _wrong(why)
