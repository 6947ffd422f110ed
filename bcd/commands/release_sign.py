"""`bcd release sign`: one signer more on a manifest, or a manifest's first.

The order is that of trust: read, judge by core's rules, show, ask, and only then touch a key. The signature is counted
by core before anything is written; what is refused anywhere leaves the disk as it was.
"""

import time
from typing import NamedTuple

from bcd.commands.moments import parse_moment
from bcd.commands.passphrase import open_key
from bcd.commands.release_words import manifest_lines, signature_lines
from bcd.commands.streams import print_lines, say
from bcd.commands.terminal import ask_yes
from bcd.core.errors import HostError, UsageError
from bcd.core.exits import ExitStatus
from bcd.core.manifest import Envelope
from bcd.core.text import clean
from bcd.core.trust import pin_of
from bcd.release.artifact import artifact_of
from bcd.release.keyfile import read_public_key
from bcd.release.keys import ReleaseKey, spki_of
from bcd.release.manifest import ReleaseDraft
from bcd.release.manifestfile import change_manifest_file, create_manifest_file, read_manifest_file, require_no_manifest
from bcd.release.signer import parse_command, sign_by_command
from bcd.release.signing import (
    add_signature,
    envelope,
    read_envelope,
    require_signable,
    signatures_of,
    signed_bytes,
    signer_in,
)


class NewRelease(NamedTuple):
    """What `--new` takes; None and empty where nothing was given."""

    version: str | None
    sequence: int | None
    expires: str | None
    artifacts: tuple[str, ...]
    signers: tuple[str, ...]


class Signer(NamedTuple):
    """Who signs."""

    key: str | None
    """The key's file: the private one, or the public one where a command signs."""
    passphrase_file: str | None
    command: str | None
    digest: bool
    """Hand the command the SHA-256 and not the bytes."""
    timeout_seconds: float


def sign_manifest(path: str, new: NewRelease | None, signer: Signer, *, yes: bool) -> ExitStatus:
    """Sign the manifest at `path`, made first from `new` where that is given.

    Raises:
        UsageError: `bad-manifest`, `unlisted-key`, `already-signed`, `bad-artifact`, `file-exists`, and of the key.
        NotPermitted: `wrong-passphrase`, or this user may not read a file.
        HostError: `signer-failed`, `manifest-changed`, or it could not be written.
    """
    if signer.key is None and (new is None or signer.command is not None):
        hint = (
            "name the public key's file, that --signer-command signs for"
            if signer.command
            else "name your private key's file"
        )
        raise UsageError("bad-usage", "no KEY was given", hint)
    if new is not None:
        require_no_manifest(path)
    now = int(time.time())
    data = read_manifest_file(path) if new is None else _made(new, now).encode()
    read = read_envelope(data)
    require_signable(read, now)
    signing = None if signer.key is None else _signing(signer, signer.key)
    if signing is not None:
        signing.check(data, read)
    say([*manifest_lines(read.manifest, now), *signature_lines(signatures_of(data, read)), ""])
    if not yes:
        _confirm(signing)
    signed = None if signing is None else signing.sign(data, read)
    if new is not None:
        text = data.decode() if signed is None else _added(data, read, signed)
        create_manifest_file(path, text)
    else:
        text = _changed(path, read.body, signed)
    _tell(path, text.encode())
    return ExitStatus.OK


class _Signed(NamedTuple):
    """A signature, and whose."""

    spki: bytes
    signature: bytes


class _Signing:
    """A signer at work: the pin is known before the private key is, where a command or a public file tells it."""

    def __init__(self, signer: Signer, path: str) -> None:
        self._signer = signer
        self._path = path
        self._words = None if signer.command is None else parse_command(signer.command)
        self._public = None if self._words is None else read_public_key(path)

    @property
    def named(self) -> str:
        """Who signs, as far as is known before the key is open."""
        return f"with {self._path}" if self._public is None else f"as {self._public.kid} ({self._public.pin})"

    def check(self, data: bytes, read: Envelope) -> None:
        """Refuse early what can be told before a key is open."""
        if self._public is not None:
            signer_in(data, read, self._public.spki)

    def sign(self, data: bytes, read: Envelope) -> _Signed:
        """Sign the body."""
        if self._public is not None and self._words is not None:
            signer_in(data, read, self._public.spki)
            signature = sign_by_command(
                self._words,
                self._public,
                signed_bytes(read.body),
                digest=self._signer.digest,
                timeout_seconds=self._signer.timeout_seconds,
            )
            return _Signed(self._public.spki, signature)
        private = open_key(self._path, self._signer.passphrase_file)
        spki = spki_of(private.public_key())
        key = ReleaseKey(kid=signer_in(data, read, spki).kid, private=private)
        return _Signed(spki, key.sign(signed_bytes(read.body)))


def _added(data: bytes, read: Envelope, signed: _Signed) -> str:
    return add_signature(read, signer_in(data, read, signed.spki), signed.signature)


def _signing(signer: Signer, path: str) -> _Signing:
    if signer.command is not None and signer.passphrase_file is not None:
        raise UsageError(
            "bad-usage", "--passphrase-file is for a key in a file, not for --signer-command", "leave one out"
        )
    return _Signing(signer, path)


def _changed(path: str, body: bytes, signed: _Signed | None) -> str:
    made = ""

    def change(data: bytes) -> str:
        nonlocal made
        read = read_envelope(data)
        # Another signer's signature may have come in between, and stays. Another body was never looked at.
        if read.body != body:
            raise HostError(
                "manifest-changed",
                f"{path} became another release while this one was being signed; nothing was written",
                "look who writes there, and sign anew",
            )
        made = data.decode() if signed is None else _added(data, read, signed)
        return made

    change_manifest_file(path, change)
    return made


def _made(new: NewRelease, now: int) -> str:
    for option, value in (
        ("--version", new.version),
        ("--sequence", new.sequence),
        ("--expires", new.expires),
        ("--artifact", new.artifacts),
        ("--signer", new.signers),
    ):
        if not value:
            raise UsageError("bad-usage", f"--new needs {option}", "`bcd release sign --help` has an example")
    draft = ReleaseDraft(
        version=new.version or "",
        sequence=new.sequence or 0,
        issued_at=now,
        expires_at=parse_moment(new.expires or "", now),
        keys=tuple(read_public_key(path) for path in new.signers),
        artifacts=tuple(artifact_of(*_split(entry)) for entry in new.artifacts),
    )
    text = envelope(draft.body(), ())
    read_envelope(text.encode())
    return text


def _split(entry: str) -> tuple[str, str]:
    platform, given, path = entry.partition("=")
    if not given or not platform or not path:
        raise UsageError(
            "bad-usage", f"--artifact {clean(entry, 80)!r} is not PLATFORM=FILE", "as linux-amd64=dist/bcd"
        )
    return platform, path


def _confirm(signing: _Signing | None) -> None:
    question = "Write this manifest, unsigned?" if signing is None else f"Sign this {signing.named}?"
    if not ask_yes(question, "look at what is printed above, then say --yes"):
        raise UsageError("not-confirmed", "nothing was signed and nothing written", "answer y to sign")


def _tell(path: str, data: bytes) -> None:
    read = read_envelope(data)
    pins = {pin_of(key.spki): key.kid for key in read.manifest.keys}
    kids = [pins[verdict.pin] for verdict in signatures_of(data, read) if verdict.pin is not None]
    by = f"signed by {len(kids)} of {len(pins)}: {', '.join(kids)}" if kids else "signed by nobody yet"
    print_lines([f"{clean(path)}: {read.manifest.version}, {by}"])
