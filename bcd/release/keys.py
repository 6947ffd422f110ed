"""Release keys: what a publisher signs with, and the pin by which a node knows it (spec/self-update.md sections 1 and 3).

A key is an ECDSA P-256 pair with a `kid`, the name by which a signature says whose it is. Nothing is secret about the
rest: `spki` is the 91-byte DER of the public point, `pin` its SHA-256 as nodes are configured with it. Where private
keys are kept is the publisher's business; this module only turns them into PEM and back.
"""

import re
from dataclasses import dataclass, field

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from bcd.core.errors import UsageError
from bcd.core.trust import pin_of

_KID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SCALAR_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class ReleaseKey:
    """A P-256 signing key and its name.

    Raises:
        UsageError: `bad-key`: the kid is no name that a manifest may carry, or the curve is another one.
    """

    kid: str
    private: ec.EllipticCurvePrivateKey = field(repr=False)

    def __post_init__(self) -> None:
        if not _KID.fullmatch(self.kid):
            raise UsageError("bad-key", f"{self.kid!r} is no key id", "use 1 to 64 of A-Z a-z 0-9 . _ -")
        if not isinstance(self.private.curve, ec.SECP256R1):
            raise UsageError("bad-key", f"{self.kid} is a {self.private.curve.name} key, not P-256")

    @property
    def spki(self) -> bytes:
        """The DER SubjectPublicKeyInfo of the uncompressed point, 91 bytes."""
        return self.private.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    @property
    def pin(self) -> str:
        """What `[update] release_pins` lists: `sha256/` and the base64 of SHA-256 over `spki`."""
        return pin_of(self.spki)

    def sign(self, message: bytes) -> bytes:
        """ECDSA with SHA-256 over `message`, as 64 bytes r‖s (IEEE P1363)."""
        r, s = decode_dss_signature(self.private.sign(message, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(_SCALAR_BYTES, "big") + s.to_bytes(_SCALAR_BYTES, "big")

    def to_pem(self) -> bytes:
        """The private key as unencrypted PKCS #8 PEM."""
        return self.private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def generate_key(kid: str) -> ReleaseKey:
    """A new random key.

    Raises:
        UsageError: `bad-key`: see `ReleaseKey`.
    """
    return ReleaseKey(kid=kid, private=ec.generate_private_key(ec.SECP256R1()))


def load_key(kid: str, pem: bytes) -> ReleaseKey:
    """Read a private key from unencrypted PEM.

    Raises:
        UsageError: `bad-key`: the text is no such PEM, is encrypted, or holds a key of another kind.
    """
    try:
        private = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UsageError("bad-key", f"{kid} is no unencrypted private key in PEM") from error
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise UsageError("bad-key", f"{kid} is no elliptic-curve key")
    return ReleaseKey(kid=kid, private=private)
