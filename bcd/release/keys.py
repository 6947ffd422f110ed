"""Release keys: what a publisher signs with, and the pin by which a node knows it (spec/self-update.md sections 1 and 3).

A key is an ECDSA P-256 pair with a `kid`, the name by which a signature says whose it is. Nothing is secret about the
rest: `spki` is the 91-byte DER of the public point, `pin` its SHA-256 as nodes are configured with it. This module
only turns keys into PEM and back; the files that they lie in are `keyfile`'s.
"""

import re
from base64 import encodebytes
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from bcd.core.errors import NotPermitted, UsageError
from bcd.core.trust import pin_of
from bcd.release.pkcs8 import encrypt_pkcs8

SCALAR_BYTES = 32
_KID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PKCS8_HINT = "`openssl pkcs8 -topk8 -scrypt -in KEY` makes one of most kinds of P-256 key"


@dataclass(frozen=True, kw_only=True)
class PublicKey:
    """The public half of a release key, and its name.

    Raises:
        UsageError: `bad-key`: the kid is no name that a manifest may carry, or the curve is another one.
    """

    kid: str
    public: ec.EllipticCurvePublicKey = field(repr=False)

    def __post_init__(self) -> None:
        _check(self.kid, self.public.curve)

    @property
    def spki(self) -> bytes:
        """The DER SubjectPublicKeyInfo of the uncompressed point, 91 bytes."""
        return spki_of(self.public)

    @property
    def pin(self) -> str:
        """What `[update] release_pins` lists: `sha256/` and the base64 of SHA-256 over `spki`."""
        return pin_of(self.spki)

    def verifies(self, message: bytes, signature: bytes) -> bool:
        """Whether `signature`, 64 bytes r‖s, is this key's over `message`."""
        r, s = int.from_bytes(signature[:SCALAR_BYTES]), int.from_bytes(signature[SCALAR_BYTES:])
        try:
            self.public.verify(encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True

    def to_pem(self) -> bytes:
        """The public key as PEM, which openssl reads."""
        return _pem("PUBLIC KEY", self.spki)


@dataclass(frozen=True, kw_only=True)
class ReleaseKey:
    """A P-256 signing key and its name.

    Raises:
        UsageError: `bad-key`: the kid is no name that a manifest may carry, or the curve is another one.
    """

    kid: str
    private: ec.EllipticCurvePrivateKey = field(repr=False)

    def __post_init__(self) -> None:
        _check(self.kid, self.private.curve)

    @property
    def public(self) -> PublicKey:
        """The half that everybody may have."""
        return PublicKey(kid=self.kid, public=self.private.public_key())

    @property
    def spki(self) -> bytes:
        """The DER SubjectPublicKeyInfo of the uncompressed point, 91 bytes."""
        return self.public.spki

    @property
    def pin(self) -> str:
        """What `[update] release_pins` lists: `sha256/` and the base64 of SHA-256 over `spki`."""
        return self.public.pin

    def sign(self, message: bytes) -> bytes:
        """ECDSA with SHA-256 over `message`, as 64 bytes r‖s (IEEE P1363)."""
        return raw_signature(self.private.sign(message, ec.ECDSA(hashes.SHA256())))

    def to_pem(self, passphrase: bytes) -> bytes:
        """The private key as encrypted PKCS #8 PEM. Takes a fifth of a second on purpose."""
        plain = self.private.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return _pem("ENCRYPTED PRIVATE KEY", encrypt_pkcs8(plain, passphrase))


def generate_key(kid: str) -> ReleaseKey:
    """A new random key.

    Raises:
        UsageError: `bad-key`: see `ReleaseKey`.
    """
    return ReleaseKey(kid=kid, private=ec.generate_private_key(ec.SECP256R1()))


def raw_signature(der: bytes) -> bytes:
    """A DER signature as 64 bytes r‖s.

    Raises:
        ValueError: it is no DER signature, or not of P-256.
    """
    r, s = decode_dss_signature(der)
    try:
        return r.to_bytes(SCALAR_BYTES, "big") + s.to_bytes(SCALAR_BYTES, "big")
    except OverflowError as error:
        raise ValueError("not of P-256") from error


def is_encrypted(pem: bytes) -> bool:
    """Whether a private key's PEM says that it takes a passphrase."""
    return b"ENCRYPTED" in pem


def load_private_key(named: str, pem: bytes, passphrase: bytes | None = None) -> ec.EllipticCurvePrivateKey:
    """Read a private key from PEM; `passphrase` where `is_encrypted`. `named` is for messages: PEM holds no kid.

    Raises:
        UsageError: `bad-key`: the text is no such PEM, needs a passphrase, or holds a key of another kind.
        NotPermitted: `wrong-passphrase`.
    """
    try:
        private = serialization.load_pem_private_key(pem, password=passphrase)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        # Which of the two it is, nobody can tell: a wrong passphrase opens the key to noise.
        if passphrase is not None and is_encrypted(pem):
            raise NotPermitted(
                "wrong-passphrase",
                f"{named} does not open with this passphrase, or is damaged",
                "type it again; nobody can recover a lost one: then make a new key and change the pins",
            ) from error
        what = "no private key in PEM, or one that needs a passphrase"
        raise UsageError("bad-key", f"{named}: {what}", _PKCS8_HINT) from error
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise UsageError("bad-key", f"{named}: no elliptic-curve key", "`bcd release keygen` makes one")
    _check_curve(named, private.curve)
    return private


def spki_of(public: ec.EllipticCurvePublicKey) -> bytes:
    """The DER SubjectPublicKeyInfo of the uncompressed point, 91 bytes."""
    return public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def load_public_key(kid: str, pem: bytes) -> PublicKey:
    """Read a public key from PEM.

    Raises:
        UsageError: `bad-key`: the text is no such PEM, or holds a key of another kind.
    """
    try:
        public = serialization.load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        what = "that is a private key, which nobody else must have" if b"PRIVATE KEY" in pem else "no public key in PEM"
        raise UsageError(
            "bad-key", f"{kid}: {what}", "name the .pub file; `openssl pkey -pubout` makes it anew"
        ) from error
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise UsageError("bad-key", f"{kid}: no elliptic-curve key", "`bcd release keygen` makes one")
    return PublicKey(kid=kid, public=public)


def _check(kid: str, curve: ec.EllipticCurve) -> None:
    if not _KID.fullmatch(kid):
        hint = "use 1 to 64 of A-Z a-z 0-9 . _ -; a public key's file is named by its kid"
        raise UsageError("bad-key", f"{kid!r} is no key id", hint)
    _check_curve(kid, curve)


def _check_curve(named: str, curve: ec.EllipticCurve) -> None:
    if not isinstance(curve, ec.SECP256R1):
        raise UsageError("bad-key", f"{named} is a {curve.name} key, not P-256", "`bcd release keygen` makes one")


def _pem(label: str, der: bytes) -> bytes:
    text = encodebytes(der).replace(b"\n", b"")
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return b"\n".join([f"-----BEGIN {label}-----".encode(), *lines, f"-----END {label}-----".encode(), b""])
