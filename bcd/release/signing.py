"""Signing a release: from canonical body to the envelope that a section carries (spec/self-update.md section 3)."""

import base64
import json
from collections.abc import Iterable

from bcd.core.errors import UsageError
from bcd.core.manifest import ShapeError, parse_envelope
from bcd.core.trust import PURPOSE
from bcd.release.keys import ReleaseKey
from bcd.release.manifest import ReleaseDraft


def sign_release(draft: ReleaseDraft, signers: Iterable[ReleaseKey]) -> str:
    """The signed manifest's text: the draft's body, and one signature by each of `signers`.

    A signer that the draft does not name signs all the same; such a signature counts nowhere.

    Raises:
        UsageError: `bad-manifest`: no node would read this, whoever signed it. Nobody signs it here either.
    """
    body = draft.body()
    try:
        parse_envelope(envelope(body, ()).encode())
    except ShapeError as error:
        raise UsageError("bad-manifest", f"the release would be refused everywhere: {error}") from error
    return envelope(body, [(key.kid, key.sign(PURPOSE + body)) for key in signers])


def envelope(body: bytes, signatures: Iterable[tuple[str, bytes]]) -> str:
    """The JSON text around `body` and its signatures, each a kid and 64 bytes r‖s."""
    return json.dumps(
        {
            "manifest": base64.b64encode(body).decode("ascii"),
            "signatures": [
                {"kid": kid, "sig": base64.b64encode(signature).decode("ascii")} for kid, signature in signatures
            ],
        },
        separators=(",", ":"),
    )
