"""Who is trusted: the three stages of a manifest's verification, one pure function over bytes.

`verify_manifest` explains and never raises; `require_manifest` refuses. Both are the same run, in the order of
spec/self-update.md section 3: shape, then signatures, then canonical form. Nobody here reads a clock or a disk.
"""

from base64 import b64encode
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from bcd.core.errors import Refusal
from bcd.core.manifest import Envelope, Key, Manifest, ShapeError, Signature, parse_envelope
from bcd.core.strict import decode_base64
from bcd.core.text import clean

PURPOSE = b"bettercompute/release-manifest\0"
"""What is signed is this, then the body: a signature made for anything else never counts here."""
SIGNATURES_READ = 16
_SCALAR_BYTES = 32

Stage = Literal["shape", "signatures", "canonical"]


def pin_of(spki: bytes) -> str:
    """The pin of a key: `sha256/` and the base64 of SHA-256 over its DER."""
    return "sha256/" + b64encode(sha256(spki).digest()).decode()


@dataclass(frozen=True, kw_only=True, slots=True)
class SignatureVerdict:
    """What one signature was worth."""

    kid: str
    """As the envelope spells it, made safe to show."""
    pin: str | None
    """The configured pin it was counted for, or None."""
    why: str
    """Why it was passed over, or `counts`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """A manifest's verification, explained."""

    refused_at: Stage | None
    """The stage that refuses; None where the manifest is good."""
    why: str
    """A few words on the refusal; empty where there is none."""
    signatures: tuple[SignatureVerdict, ...]
    """Each signature that was read, in order; empty where the shape already refused."""
    threshold: int
    parsed: Manifest | None
    """What the manifest says, believed or not: for showing, never for deciding. None where it has no shape."""

    @property
    def counted(self) -> int:
        """How many distinct pins signed."""
        return sum(1 for verdict in self.signatures if verdict.pin is not None)


def verify_manifest(data: bytes, pins: Collection[str], threshold: int) -> Verification:
    """Verify a published manifest against the pins, and say all of it. No input raises."""
    try:
        envelope = parse_envelope(data)
    except ShapeError as error:
        return Verification(refused_at="shape", why=str(error), signatures=(), threshold=threshold, parsed=None)
    verdicts = _count(envelope, frozenset(pins))
    counted = sum(1 for verdict in verdicts if verdict.pin is not None)
    stage: Stage | None = None
    why = ""
    # A threshold below 1 would let an unsigned manifest through; configuration refuses it, and so does this.
    if counted < max(1, threshold):
        stage, why = "signatures", f"{counted} of the {threshold} signatures needed from pinned keys"
    elif not is_canonical(envelope):
        stage, why = "canonical", "the body is not its canonical JSON, byte for byte"
    return Verification(refused_at=stage, why=why, signatures=verdicts, threshold=threshold, parsed=envelope.manifest)


def require_manifest(data: bytes, pins: Collection[str], threshold: int) -> Manifest:
    """Return the manifest that at least `threshold` distinct pins signed.

    Raises:
        Refusal: `manifest-shape`, `manifest-signatures` or `manifest-canonical`.
    """
    verification = verify_manifest(data, pins, threshold)
    if verification.refused_at is not None or verification.parsed is None:
        raise Refusal(f"manifest-{verification.refused_at}", f"the release manifest is refused: {verification.why}")
    return verification.parsed


def _count(envelope: Envelope, pins: frozenset[str]) -> tuple[SignatureVerdict, ...]:
    keys = {key.kid: key for key in envelope.manifest.keys}
    counted: set[str] = set()
    verdicts = []
    for signature in envelope.signatures[:SIGNATURES_READ]:
        pin, why = _judge(signature, keys, pins, counted, envelope.body)
        if pin is not None:
            counted.add(pin)
        verdicts.append(SignatureVerdict(kid=clean(signature.kid, 64), pin=pin, why=why))
    unread = len(envelope.signatures) - SIGNATURES_READ
    if unread > 0:
        verdicts.append(
            SignatureVerdict(kid="", pin=None, why=f"{unread} more past the first {SIGNATURES_READ} unread")
        )
    return tuple(verdicts)


def _judge(
    signature: Signature, keys: dict[str, Key], pins: frozenset[str], counted: set[str], body: bytes
) -> tuple[str | None, str]:
    key = keys.get(signature.kid)
    if key is None:
        return None, "the manifest lists no such key"
    pin = pin_of(key.spki)
    if pin not in pins:
        return None, "the key is not pinned on this node"
    try:
        raw = decode_base64(signature.sig)
    except ValueError:
        return None, "the signature is not strict base64"
    if len(raw) != 2 * _SCALAR_BYTES:
        return None, f"the signature is not {2 * _SCALAR_BYTES} bytes"
    r, s = (int.from_bytes(half) for half in (raw[:_SCALAR_BYTES], raw[_SCALAR_BYTES:]))
    try:
        key.public_key.verify(encode_dss_signature(r, s), PURPOSE + body, ECDSA(SHA256()))
    except InvalidSignature:
        return None, "the signature is not of this manifest by this key"
    # Each pin counts once, however often its key signed (field report 30).
    if pin in counted:
        return None, "the same key has counted already"
    return pin, "counts"


def is_canonical(envelope: Envelope) -> bool:
    """Whether the body is its canonical JSON (RFC 8785), byte for byte."""
    try:
        return rfc8785.dumps(envelope.document) == envelope.body  # type: ignore[arg-type]  # its JSON type is closed
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        return False
