"""What is signed here is what anyone else's tools verify, and nothing else."""

import base64
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from bcd.core.errors import Refusal, UsageError
from bcd.core.manifest import Artifact
from bcd.core.trust import require_manifest
from bcd.release.keys import ReleaseKey, generate_key, load_private_key, spki_of
from bcd.release.manifest import ReleaseDraft
from bcd.release.signing import envelope, sign_release

PURPOSE = b"bettercompute/release-manifest\x00"


@pytest.fixture(scope="module")
def keys() -> tuple[ReleaseKey, ...]:
    """Three release keys."""
    return tuple(generate_key(f"release-{number}") for number in (1, 2, 3))


@pytest.fixture
def draft(keys: tuple[ReleaseKey, ...]) -> ReleaseDraft:
    """A plain release."""
    return ReleaseDraft(
        version="1.4.1",
        sequence=15,
        issued_at=1_790_000_000,
        expires_at=1_990_000_000,
        keys=keys,
        artifacts=(Artifact(name="bcd-linux-amd64", platform="linux-amd64", sha256="ab" * 32, size=1000),),
    )


def _openssl_verifies(directory: Path, key: ReleaseKey, signature: bytes, message: bytes) -> bool:
    """Ask the `openssl` command, which shares no code of ours; it wants PEM keys and DER signatures."""
    spki = base64.encodebytes(key.spki).decode()
    (directory / "key.pem").write_text(f"-----BEGIN PUBLIC KEY-----\n{spki}-----END PUBLIC KEY-----\n")
    r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
    (directory / "signature.der").write_bytes(encode_dss_signature(r, s))
    (directory / "message").write_bytes(message)
    command = ["openssl", "dgst", "-sha256", "-verify", "key.pem", "-signature", "signature.der", "message"]
    return subprocess.run(command, cwd=directory, capture_output=True, check=False).returncode == 0


def test_openssl_verifies_every_signature(tmp_path: Path, draft: ReleaseDraft, keys: tuple[ReleaseKey, ...]) -> None:
    """Each signature is 64 bytes over the purpose, a zero byte and the body; openssl agrees."""
    signed = json.loads(sign_release(draft, keys))
    body = base64.b64decode(signed["manifest"], validate=True)
    assert [entry["kid"] for entry in signed["signatures"]] == [key.kid for key in keys]
    for key, entry in zip(keys, signed["signatures"], strict=True):
        signature = base64.b64decode(entry["sig"], validate=True)
        assert len(signature) == 64
        assert _openssl_verifies(tmp_path, key, signature, PURPOSE + body)


@pytest.mark.parametrize("change", ["body", "purpose", "signature", "key"])
def test_openssl_rejects_what_was_tampered_with(
    tmp_path: Path, draft: ReleaseDraft, keys: tuple[ReleaseKey, ...], change: str
) -> None:
    """One changed bit anywhere, or another signer's key, and it no longer verifies."""
    body, key = draft.body(), keys[0]
    signature, message = key.sign(PURPOSE + body), PURPOSE + body
    if change == "body":
        message = PURPOSE + body.replace(b'"sequence":15', b'"sequence":16')
    elif change == "purpose":
        message = body
    elif change == "signature":
        signature = bytes([signature[0] ^ 1]) + signature[1:]
    else:
        key = keys[1]
    assert not _openssl_verifies(tmp_path, key, signature, message)


def test_a_node_accepts_what_two_of_three_signed(draft: ReleaseDraft, keys: tuple[ReleaseKey, ...]) -> None:
    """Core's verification reads back exactly what was drafted."""
    pins = [key.pin for key in keys]
    manifest = require_manifest(sign_release(draft, keys[1:]).encode(), pins, 2)
    assert (manifest.version, manifest.sequence, manifest.artifacts) == ("1.4.1", 15, draft.artifacts)


@pytest.mark.parametrize("signers", [(0,), (0, 0)])
def test_a_node_refuses_what_one_signed_however_often(
    draft: ReleaseDraft, keys: tuple[ReleaseKey, ...], signers: tuple[int, ...]
) -> None:
    """One key is one signer."""
    signed = sign_release(draft, [keys[index] for index in signers])
    with pytest.raises(Refusal) as refusal:
        require_manifest(signed.encode(), [key.pin for key in keys], 2)
    assert refusal.value.code == "manifest-signatures"


def test_a_node_refuses_a_body_changed_after_signing(draft: ReleaseDraft, keys: tuple[ReleaseKey, ...]) -> None:
    """Good signatures of another body count for nothing."""
    body = draft.body()
    signatures = [(key.kid, key.sign(PURPOSE + body)) for key in keys]
    forged = envelope(replace(draft, sequence=99).body(), signatures)
    with pytest.raises(Refusal) as refusal:
        require_manifest(forged.encode(), [key.pin for key in keys], 2)
    assert refusal.value.code == "manifest-signatures"


def test_nobody_signs_a_manifest_that_no_node_would_read(draft: ReleaseDraft, keys: tuple[ReleaseKey, ...]) -> None:
    """The parser of the nodes has its say before the keys have theirs."""
    with pytest.raises(UsageError) as error:
        sign_release(replace(draft, version="v1.4.1"), keys)
    assert (error.value.code, "version" in error.value.message) == ("bad-manifest", True)


def test_a_key_survives_its_pem() -> None:
    """A key written and read again has the same pin and signs for it."""
    key = generate_key("release-1")
    again = load_private_key("release-1.key", key.to_pem(b"correct horse"), b"correct horse")
    assert spki_of(again.public_key()) == key.spki
    assert key.public.verifies(b"words", ReleaseKey(kid="release-1", private=again).sign(b"words"))


@pytest.mark.parametrize("pem", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_what_is_no_key_is_refused_with_a_code(pem: bytes) -> None:
    """No input to the key reader raises anything but our error."""
    with pytest.raises(UsageError) as error:
        load_private_key("release-1.key", pem)
    assert error.value.code == "bad-key"


@pytest.mark.parametrize("kid", ["", "a" * 65, "a b", "ä", "a\n"])
def test_a_kid_that_no_manifest_may_carry_is_refused(kid: str) -> None:
    """The name is checked where the key is made."""
    with pytest.raises(UsageError):
        generate_key(kid)
