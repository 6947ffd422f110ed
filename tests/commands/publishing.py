"""A publisher's directory: keys, a program, a manifest; and what is on the disk before and after."""

import os
import time
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from bcd.core.manifest import Artifact
from bcd.release.keys import ReleaseKey, generate_key
from bcd.release.manifest import ReleaseDraft
from bcd.release.signing import sign_release

PASSPHRASE = "correct horse battery staple"
KIDS = ("alice", "bob", "carol")


@cache
def keys() -> tuple[ReleaseKey, ...]:
    """Three signers."""
    return tuple(generate_key(kid) for kid in KIDS)


@cache
def encrypted(key: ReleaseKey) -> bytes:
    """A key's PEM under `PASSPHRASE`."""
    return key.to_pem(PASSPHRASE.encode())


def plain_pem(key: ReleaseKey) -> bytes:
    """A key's PEM without a passphrase, which costs nothing to open."""
    return key.private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def draft(**changes: object) -> ReleaseDraft:
    """1.4.1, sequence 15, one file, good for an hour."""
    now = int(time.time())
    given: dict[str, object] = {
        "version": "1.4.1",
        "sequence": 15,
        "issued_at": now,
        "expires_at": now + 3600,
        "keys": keys(),
        "artifacts": (Artifact(name="bcd", platform="linux-amd64", sha256="ab" * 32, size=1000),),
        **changes,
    }
    return ReleaseDraft(**given)  # type: ignore[arg-type]  # the values are the tests' own


class Desk:
    """Where somebody signs: `alice.key` is encrypted, `bob.key` and `carol.key` are not."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.manifest = home / "release.json"
        self.passphrase = self.write("passphrase", PASSPHRASE.encode() + b"\n", 0o600)
        self.write("alice.key", encrypted(keys()[0]), 0o600)
        for key in keys()[1:]:
            self.write(f"{key.kid}.key", plain_pem(key), 0o600)
        for key in keys():
            self.write(f"{key.kid}.pub", key.public.to_pem(), 0o644)

    def write(self, name: str, data: bytes, mode: int = 0o644) -> Path:
        """A file of these bytes."""
        path = self.home / name
        path.write_bytes(data)
        path.chmod(mode)
        return path

    def publish(self, *signers: int, **changes: object) -> None:
        """Write the manifest, signed by these of the keys."""
        self.manifest.write_text(sign_release(draft(**changes), [keys()[index] for index in signers]))

    def snapshot(self) -> dict[str, tuple[int, int, bytes]]:
        """Every name, its mode, inode and content."""
        found = {}
        for path in sorted(self.home.rglob("*")):
            state = path.lstat()
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(self.home))] = (state.st_mode, state.st_ino, content)
        return found
