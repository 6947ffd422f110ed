"""Releases, good and bad: made, signed and put on the release server on demand.

A `Recipe` says in which ways a release is bad; the default is a good one. What comes of a bad one is never written here:
that is the rules' to say and the lab's to see.
"""

import hashlib
import time
from dataclasses import dataclass
from typing import Any

from bcd.core.build import PRODUCT, this_platform
from bcd.core.manifest import Artifact
from bcd.lab.packing import RUNS_BCD, Packer, Stamp
from bcd.lab.server import ReleaseServer
from bcd.lab.spoiling import SOUND, Spoiling
from bcd.release.keys import ReleaseKey, generate_key
from bcd.release.manifest import ReleaseDraft
from bcd.release.signing import sign_release

THRESHOLD = 2
_DAY_SECONDS = 24 * 60 * 60


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a release is made."""

    program: str = RUNS_BCD
    """The source of the binary's `__main__`."""
    file: bytes | None = None
    """These bytes in the place of a binary."""
    wrong_bytes: bool = False
    """Serve as many other bytes in the place of the file."""
    spoiling: Spoiling = SOUND
    """What happens to its downloads."""
    signers: tuple[int, ...] = (0, 1)
    """Which of the release keys sign, by index."""
    strangers: bool = False
    """Have it signed by keys that no node pins, listed in the manifest all the same."""
    product: str = PRODUCT
    platform: str = ""
    """os-arch of its one file; this machine's where empty."""
    expires_in: int = 30 * _DAY_SECONDS
    """Seconds from now; negative for a release that has expired."""
    manifest_version: str = ""
    """What the manifest calls itself, where that is not what the section says."""
    section_digest: str = ""
    """The section's `sha256`, where that is not the file's."""


GOOD = Recipe()


@dataclass(frozen=True, kw_only=True)
class Release:
    """A published release."""

    version: str
    sequence: int
    path: str
    """On the release server."""
    body: bytes
    """What the file ought to be."""
    section: dict[str, Any]
    """The DaemonSection that names it."""

    @property
    def digest(self) -> str:
        """The file's SHA-256, in hex."""
        return hashlib.sha256(self.body).hexdigest()


class Publisher:
    """Holds the release keys and puts releases on a server."""

    def __init__(self, server: ReleaseServer, packer: Packer) -> None:
        """Make three release keys."""
        self._server = server
        self._packer = packer
        self._keys = tuple(generate_key(f"release-{number}") for number in (1, 2, 3))
        self._strangers = tuple(generate_key(f"stranger-{number}") for number in (1, 2))
        self.built_at = int(time.time())
        self._binaries: dict[Stamp, bytes] = {}

    @property
    def pins(self) -> tuple[str, ...]:
        """The release keys' pins."""
        return tuple(key.pin for key in self._keys)

    def binary(self, version: str, sequence: int, program: str = RUNS_BCD) -> bytes:
        """An executable bcd, stamped as `version`."""
        stamp = Stamp(version=version, sequence=sequence, built_at=self.built_at, main=program)
        if stamp not in self._binaries:
            self._binaries[stamp] = self._packer.pack(stamp)
        return self._binaries[stamp]

    def publish(self, version: str, sequence: int, *, shelf: str, recipe: Recipe = GOOD) -> Release:
        """Make a release and serve it under `/<shelf>/`, where no other's requests are counted."""
        body = self.binary(version, sequence, recipe.program) if recipe.file is None else recipe.file
        platform = recipe.platform or this_platform()
        path = f"/{shelf}/bcd/{version}/{platform}"
        served = bytes(byte ^ 0xFF for byte in body) if recipe.wrong_bytes else body
        url = self._server.publish(path, served)
        self._server.spoil(path, recipe.spoiling)
        digest = hashlib.sha256(body).hexdigest()
        now = int(time.time())
        keys: tuple[ReleaseKey, ...] = self._strangers if recipe.strangers else self._keys
        draft = ReleaseDraft(
            version=recipe.manifest_version or version,
            sequence=sequence,
            issued_at=now - 60 * _DAY_SECONDS,
            expires_at=now + recipe.expires_in,
            keys=keys,
            artifacts=(Artifact(name=f"bcd-{platform}", platform=platform, sha256=digest, size=len(body)),),
            product=recipe.product,
        )
        signature = sign_release(draft, [keys[index] for index in recipe.signers])
        section = {
            "version": version,
            "url": url,
            "sha256": recipe.section_digest or digest,
            "signature": signature,
        }
        return Release(version=version, sequence=sequence, path=path, body=body, section=section)
