"""What a release says of itself, and its canonical bytes (spec/self-update.md section 3).

`ReleaseDraft.body()` is the exact text that is signed: RFC 8785 canonical JSON. What shape it must have is told by
core alone, with the very parser that nodes use; see `signing`.
"""

import base64
from dataclasses import dataclass
from typing import Any

import rfc8785

from bcd.core.build import PRODUCT
from bcd.core.errors import UsageError
from bcd.core.manifest import MANIFEST_TYPE, Artifact
from bcd.release.keys import PublicKey, ReleaseKey


@dataclass(frozen=True, kw_only=True)
class ReleaseDraft:
    """One version's files and the keys that may sign for them; times are Unix seconds."""

    version: str
    sequence: int
    issued_at: int
    expires_at: int
    keys: tuple[ReleaseKey | PublicKey, ...]
    """Every key that the manifest names, whether it signs this time or not; only their public halves are used."""
    artifacts: tuple[Artifact, ...]
    product: str = PRODUCT

    def body(self) -> bytes:
        """The canonical JSON that is signed.

        Raises:
            UsageError: `bad-manifest`: a number or a text has no canonical form.
        """
        try:
            return rfc8785.dumps(self._document())
        except rfc8785.CanonicalizationError as error:
            raise UsageError(
                "bad-manifest", f"the release can't be written down: {error}", "numbers end at 2^53-1, texts are UTF-8"
            ) from error

    def _document(self) -> dict[str, Any]:
        return {
            "type": MANIFEST_TYPE,
            "spec": 1,
            "product": self.product,
            "version": self.version,
            "sequence": self.sequence,
            "issuedAt": self.issued_at,
            "expiresAt": self.expires_at,
            "keys": [
                {"kid": key.kid, "alg": "ES256", "spki": base64.b64encode(key.spki).decode("ascii")}
                for key in self.keys
            ],
            "artifacts": [
                {"name": file.name, "platform": file.platform, "sha256": file.sha256, "size": file.size}
                for file in self.artifacts
            ],
        }
