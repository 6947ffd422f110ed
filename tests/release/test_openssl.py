"""A manifest that other tools sign and verify, with nothing of ours but the rules: the steps of docs/operations/releases.md.

The openssl command shares no code path with core beyond the library below both; SoftHSM stands for a real token.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.cli import main
from bcd.core.trust import require_manifest
from bcd.release.keyfile import read_public_key
from bcd.release.signing import sign_release
from tests.commands.publishing import draft

ROOT = Path(__file__).resolve().parent.parent.parent
DOC = ROOT / "docs" / "operations" / "releases.md"
_MODULES = ("/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/pkcs11/libsofthsm2.so")

Shell = Callable[[str], str]


@pytest.fixture
def sh(tmp_path: Path) -> Shell:
    """Run a script in the test's directory; it must end well."""

    def run(script: str) -> str:
        done = subprocess.run(["sh", "-euc", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def documented(start: str) -> str:
    """The shell lines of a documented example: its block is the one that holds `start`."""
    blocks = [block for block in DOC.read_text().split("```sh\n")[1:] if start in block.partition("```")[0]]
    assert len(blocks) == 1, start
    return blocks[0].partition("```")[0]


def test_openssl_verifies_a_manifest_by_the_documented_steps(tmp_path: Path, sh: Shell) -> None:
    """And no longer, once one byte of the body is another."""
    sh(
        "openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out alice.key; chmod 600 alice.key"
    )
    sh("openssl pkey -in alice.key -pubout -out alice.pub")
    alice = read_public_key(str(tmp_path / "alice.pub"))
    (tmp_path / "release.json").write_text(sign_release(draft(keys=(alice,)), []))
    assert main(["release", "sign", str(tmp_path / "release.json"), str(tmp_path / "alice.key"), "--yes"]) == 0
    script = documented("openssl dgst -sha256 -verify")
    assert sh(script).endswith("Verified OK\n")
    assert sh("cat alice.pin").strip() == alice.pin
    tampered = script.replace("openssl dgst -sha256 -verify", "printf x >> signed.bin; openssl dgst -sha256 -verify")
    with pytest.raises(AssertionError):
        sh(tampered)


def test_a_node_takes_what_openssl_signed_by_the_documented_steps(tmp_path: Path, sh: Shell) -> None:
    """Nothing of ours made key, body, signature or envelope."""
    sh("openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out alice.key")
    sh("openssl pkey -in alice.key -pubout -out alice.pub")
    alice = read_public_key(str(tmp_path / "alice.pub"))
    (tmp_path / "body.json").write_bytes(draft(keys=(alice,)).body())
    sh(documented("openssl dgst -sha256 -sign"))
    assert require_manifest((tmp_path / "release.json").read_bytes(), [alice.pin], 1).version == "1.4.1"


@pytest.mark.skipif(
    shutil.which("pkcs11-tool") is None or not any(map(os.path.exists, _MODULES)),
    reason="wants opensc and softhsm2: apt-get install opensc softhsm2",
)
def test_a_token_signs_by_the_documented_command(
    tmp_path: Path, sh: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The key never leaves it; the PIN is in no argument."""
    module = next(path for path in _MODULES if os.path.exists(path))
    (tmp_path / "tokens").mkdir()
    (tmp_path / "softhsm2.conf").write_text(f"directories.tokendir = {tmp_path}/tokens\n")
    monkeypatch.setenv("SOFTHSM2_CONF", str(tmp_path / "softhsm2.conf"))
    monkeypatch.setenv("MODULE", module)
    monkeypatch.setenv("PIN", "5678")
    sh("softhsm2-util --init-token --free --label release --so-pin 1234 --pin $PIN")
    sh(documented("--keypairgen"))
    carol = read_public_key(str(tmp_path / "carol.pub"))
    release = tmp_path / "release.json"
    release.write_text(sign_release(draft(keys=(carol,)), []))
    line = documented("--signer-command").replace("$MODULE", module)
    words = shlex.split(line.replace("\\\n", " "))
    assert words[0] == "bcd"
    monkeypatch.chdir(tmp_path)
    assert main([*words[1:], "--yes"]) == 0, capsys.readouterr().err
    assert require_manifest(release.read_bytes(), [carol.pin], 1).version == "1.4.1"
