"""Signing a release: from canonical body to the envelope that a section carries (spec/self-update.md section 3).

What is signed is judged first, by core's own rules: nobody signs what no node would take. And no signature leaves here
before core itself has counted it.
"""

import base64
import json
from collections.abc import Iterable

from bcd.core.acceptance import ARTIFACT_LIMIT_BYTES
from bcd.core.build import PRODUCT
from bcd.core.clock import utc_text
from bcd.core.errors import Refusal, UsageError
from bcd.core.manifest import Envelope, Key, ShapeError, parse_envelope
from bcd.core.trust import (
    PURPOSE,
    SIGNATURES_READ,
    SignatureVerdict,
    is_canonical,
    pin_of,
    require_manifest,
    verify_manifest,
)
from bcd.release.keys import ReleaseKey
from bcd.release.manifest import ReleaseDraft


def sign_release(draft: ReleaseDraft, signers: Iterable[ReleaseKey]) -> str:
    """The signed manifest's text: the draft's body, and one signature by each of `signers`.

    A signer that the draft does not name signs all the same; such a signature counts nowhere.

    Raises:
        UsageError: `bad-manifest`: no node would read this, whoever signed it. Nobody signs it here either.
    """
    body = draft.body()
    read_envelope(envelope(body, ()).encode())
    return envelope(body, [(key.kid, key.sign(signed_bytes(body))) for key in signers])


def signed_bytes(body: bytes) -> bytes:
    """Exactly what a signature is over: the purpose, its zero byte, then the body."""
    return PURPOSE + body


def envelope(body: bytes, signatures: Iterable[tuple[str, bytes]]) -> str:
    """The JSON text around `body` and its signatures, each a kid and 64 bytes r‖s."""
    return _envelope(body, [(kid, base64.b64encode(signature).decode("ascii")) for kid, signature in signatures])


def read_envelope(data: bytes) -> Envelope:
    """Read a published manifest, or one that is still to be signed.

    Raises:
        UsageError: `bad-manifest`: it is none.
    """
    try:
        return parse_envelope(data)
    except ShapeError as error:
        raise _bad(f"the release would be refused everywhere: {error}") from error


def require_signable(read: Envelope, now: int) -> None:
    """Refuse to sign what every node would refuse, whoever signed it. `now` is Unix seconds.

    Raises:
        UsageError: `bad-manifest`.
    """
    manifest = read.manifest
    if not is_canonical(read):
        raise _bad("the body is not its canonical JSON, byte for byte")
    if manifest.product != PRODUCT:
        raise _bad(f"it is a release of {manifest.product}, not of {PRODUCT}")
    if manifest.expires_at <= now:
        raise _bad(f"it expired at {utc_text(manifest.expires_at)}")
    for artifact in manifest.artifacts:
        if artifact.size > ARTIFACT_LIMIT_BYTES:
            raise _bad(f"{artifact.name} has {artifact.size} bytes, more than the {ARTIFACT_LIMIT_BYTES} allowed")
    if len(read.signatures) >= SIGNATURES_READ:
        raise _bad(f"it has {len(read.signatures)} signatures already, and nodes read {SIGNATURES_READ}")


def signatures_of(data: bytes, read: Envelope) -> tuple[SignatureVerdict, ...]:
    """What each signature is worth against the key that the manifest itself lists for it; no pin is asked."""
    return verify_manifest(data, [pin_of(key.spki) for key in read.manifest.keys], 1).signatures


def signer_in(data: bytes, read: Envelope, spki: bytes) -> Key:
    """The manifest's entry for this key, which has yet to sign.

    Raises:
        UsageError: `unlisted-key`; `already-signed`.
    """
    key = next((key for key in read.manifest.keys if key.spki == spki), None)
    if key is None:
        listed = ", ".join(key.kid for key in read.manifest.keys)
        raise UsageError(
            "unlisted-key",
            f"the manifest does not list this key ({pin_of(spki)}), only {listed}: its signature would count nowhere",
            "sign with one of those, or make the manifest anew with --signer naming this one too",
        )
    if pin_of(spki) in {verdict.pin for verdict in signatures_of(data, read)}:
        raise UsageError(
            "already-signed",
            f"{key.kid} has signed this manifest already, and each key counts once",
            "have somebody else sign; `bcd release inspect` shows who has",
        )
    return key


def add_signature(read: Envelope, key: Key, signature: bytes) -> str:
    """The manifest's text with one more signature at the end; body and earlier signatures stay as they are spelled.

    Raises:
        UsageError: `bad-manifest`: with this signature a node would not read it, or would not count it.
    """
    entries = [(entry.kid, entry.sig) for entry in read.signatures]
    text = _envelope(read.body, [*entries, (key.kid, base64.b64encode(signature).decode("ascii"))])
    try:
        require_manifest(text.encode(), [pin_of(key.spki)], 1)
    except Refusal as refusal:
        raise _bad(f"a node would not count the new signature: {refusal.message}") from refusal
    return text


def _envelope(body: bytes, signatures: Iterable[tuple[str, str]]) -> str:
    return json.dumps(
        {
            "manifest": base64.b64encode(body).decode("ascii"),
            "signatures": [{"kid": kid, "sig": sig} for kid, sig in signatures],
        },
        separators=(",", ":"),
    )


def _bad(what: str) -> UsageError:
    return UsageError("bad-manifest", what, "make it anew: `bcd release sign --new` writes what nodes read")
