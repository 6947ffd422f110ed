"""`bcd release sign`: one signature more, the earlier ones untouched, and the disk as it was where it is refused."""

import fcntl
import json
import os
import sys
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from bcd.core.acceptance import ARTIFACT_LIMIT_BYTES
from bcd.core.manifest import Artifact
from bcd.core.trust import PURPOSE, require_manifest
from bcd.release import manifestfile
from bcd.release.keys import generate_key
from bcd.release.manifestfile import change_manifest_file
from bcd.release.signing import envelope, sign_release
from tests.commands.publishing import PASSPHRASE, Desk, draft, keys, plain_pem
from tests.commands.running import Done, acting_on_a_terminal

Call = Callable[..., Done]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def sign(call: Call, desk: Desk, key: str, *more: str) -> Done:
    return call("release", "sign", str(desk.manifest), str(desk.home / key), "--yes", *more)


def make(
    call: Call, desk: Desk, *more: str, artifact: str = "", signers: tuple[str, ...] = ("alice", "bob", "carol")
) -> Done:
    listed = [word for kid in signers for word in ("--signer", str(desk.home / f"{kid}.pub"))]
    return call(
        "release", "sign", "--new", str(desk.manifest), "--version", "1.4.1", "--sequence", "15", "--expires", "90d",
        "--artifact", artifact or f"linux-amd64={desk.home}/program", "--yes", *listed, *more,
    )  # fmt: skip


def test_two_people_on_two_machines_make_a_threshold_of_two(
    call: Call, desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each has their own key and the file alone; the first one's bytes are in the second one's file as they were."""
    desk.write("program", b"#!/bin/sh\n")
    done = make(call, desk, str(desk.home / "alice.key"), "--passphrase-file", str(desk.passphrase))
    assert (done.status, "signed by 1 of 3: alice" in done.stdout) == (0, True)
    first = json.loads(desk.manifest.read_text())
    elsewhere = Desk(tmp_path_factory.mktemp("bob"))
    elsewhere.manifest.write_bytes(desk.manifest.read_bytes())
    done = sign(call, elsewhere, "bob.key")
    assert (done.status, "signed by 2 of 3: alice, bob" in done.stdout) == (0, True)
    second = json.loads(elsewhere.manifest.read_text())
    assert second["manifest"] == first["manifest"]
    assert second["signatures"][:1] == first["signatures"]
    manifest = require_manifest(elsewhere.manifest.read_bytes(), [key.pin for key in keys()], 2)
    assert (manifest.version, manifest.sequence, manifest.artifacts[0].size) == ("1.4.1", 15, 10)


def test_what_is_signed_is_shown_first(call: Call, desk: Desk) -> None:
    """Version, sequence, files with digests, expiry, keys with pins, who signed already. To people: stdout is for data."""
    desk.publish(0)
    done = sign(call, desk, "bob.key")
    for word in ("bcd 1.4.1, sequence 15", "ab" * 32, "linux-amd64", "expires", keys()[2].pin, "valid    alice"):
        assert word in done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_without_a_yes_nothing_is_signed(call: Call, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stdin says is no yes: the question is for the terminal, and there is none."""
    monkeypatch.setattr("bcd.commands.terminal.TERMINAL", str(desk.home / "no-tty"))
    desk.publish(0)
    before = desk.snapshot()
    done = call("release", "sign", str(desk.manifest), str(desk.home / "bob.key"))
    assert done.status == 2
    assert "(no-terminal)" in done.stderr
    assert desk.snapshot() == before


def refused(done: Done, desk: Desk, before: object, code: str, status: int = 2) -> None:
    assert (done.status, done.stdout) == (status, ""), done.stderr
    assert f"({code})" in done.stderr
    assert "  try: " in done.stderr
    assert acting_on_a_terminal(done.stderr) == []
    assert desk.snapshot() == before


def test_the_same_key_signs_once(call: Call, desk: Desk) -> None:
    desk.publish(0, 1)
    refused(sign(call, desk, "bob.key"), desk, desk.snapshot(), "already-signed")


def test_a_key_that_the_manifest_does_not_list_is_refused(call: Call, desk: Desk) -> None:
    desk.publish(0, keys=keys()[:2])
    refused(sign(call, desk, "carol.key"), desk, desk.snapshot(), "unlisted-key")


def test_the_kid_is_the_manifests_whatever_the_file_is_called(call: Call, desk: Desk) -> None:
    desk.publish(0)
    (desk.home / "bob.key").rename(desk.home / "my key.pem")
    assert sign(call, desk, "my key.pem").status == 0
    assert [entry["kid"] for entry in json.loads(desk.manifest.read_text())["signatures"]] == ["alice", "bob"]


def spaced() -> str:
    body = draft().body().replace(b'":', b'": ', 1)
    return envelope(body, [("alice", keys()[0].sign(PURPOSE + body))])


BROKEN: dict[str, Callable[[], str]] = {
    "expired": lambda: sign_release(draft(issued_at=1, expires_at=2), []),
    "another product": lambda: sign_release(draft(product="other"), []),
    "too large a file": lambda: sign_release(
        draft(artifacts=(Artifact(name="x", platform="linux-amd64", sha256="ab" * 32, size=ARTIFACT_LIMIT_BYTES + 1),)),
        [],
    ),
    "no canonical form": spaced,
    "no JSON": lambda: "\x1b[2Jno manifest\u202e",
    "empty": lambda: "",
    "no version": lambda: envelope(draft(version="v1").body(), []),
    "no sequence": lambda: envelope(draft(sequence=0).body(), []),
    "larger than 1 MiB": lambda: sign_release(draft(), []) + " " * 1_048_576,
    "sixteen signatures": lambda: envelope(draft().body(), [("alice", bytes(64))] * 16),
}


@pytest.mark.parametrize("made", BROKEN.values(), ids=BROKEN)
def test_what_every_node_would_refuse_is_not_signed(made: Callable[[], str], call: Call, desk: Desk) -> None:
    desk.manifest.write_text(made())
    refused(sign(call, desk, "bob.key"), desk, desk.snapshot(), "bad-manifest")


def test_hostile_text_in_an_earlier_signature_is_shown_clean_and_kept(call: Call, desk: Desk) -> None:
    """A kid may be any text: it must neither clear the screen nor forge a line, and it is not ours to drop."""
    document = json.loads(sign_release(draft(), keys()[:1]))
    hostile = {"kid": "\x1b[2J\x1b]52;c;cm0=\x07\r\nsigned    valid    bob\u202e", "sig": "\x9b\u2028"}
    document["signatures"].insert(0, hostile)
    desk.manifest.write_text(json.dumps(document))
    done = sign(call, desk, "bob.key")
    assert (done.status, acting_on_a_terminal(done.stdout + done.stderr)) == (0, [])
    assert "\n".join(done.stderr.splitlines()).count("\nsigned    valid    bob") == 0
    assert json.loads(desk.manifest.read_text())["signatures"][:2] == document["signatures"]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_key_that_others_may_use_is_refused(mode: int, call: Call, desk: Desk) -> None:
    desk.publish(0)
    (desk.home / "bob.key").chmod(mode)
    done = sign(call, desk, "bob.key")
    refused(done, desk, desk.snapshot(), "exposed-secret")
    assert f"chmod 600 {desk.home}/bob.key" in done.stderr


def test_a_file_that_is_no_key_is_never_told_to_change_its_mode(call: Call, desk: Desk) -> None:
    """`chmod 600 /etc/passwd`, followed by root, takes a machine down."""
    desk.publish(0)
    done = sign(call, desk, "bob.pub")
    refused(done, desk, desk.snapshot(), "bad-key")
    assert "chmod" not in done.stderr


def test_a_linked_key_is_refused(call: Call, desk: Desk) -> None:
    desk.publish(0)
    (desk.home / "link.key").symlink_to("bob.key")
    refused(sign(call, desk, "link.key"), desk, desk.snapshot(), "bad-key")


def test_a_linked_manifest_is_refused(call: Call, desk: Desk) -> None:
    """Signing it would put a file in the link's place, and leave what it led to unsigned."""
    desk.publish(0)
    desk.manifest.rename(desk.home / "real.json")
    desk.manifest.symlink_to("real.json")
    refused(sign(call, desk, "bob.key"), desk, desk.snapshot(), "unreadable-manifest")


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo"])
@pytest.mark.parametrize(("place", "code"), [("release.json", "unreadable-manifest"), ("bob.key", "bad-key")])
def test_what_is_no_plain_file_hangs_nobody(place: str, code: str, kind: str, call: Call, desk: Desk) -> None:
    desk.publish(0)
    (desk.home / place).unlink()
    if kind == "directory":
        (desk.home / place).mkdir()
    elif kind == "fifo":
        os.mkfifo(desk.home / place, 0o600)
    refused(sign(call, desk, "bob.key"), desk, desk.snapshot(), code)


def test_a_wrong_passphrase_is_told_as_that(call: Call, desk: Desk) -> None:
    desk.publish(1)
    desk.write("wrong", b"incorrect donkey battery\n", 0o600)
    done = sign(call, desk, "alice.key", "--passphrase-file", str(desk.home / "wrong"))
    refused(done, desk, desk.snapshot(), "wrong-passphrase", 4)
    assert "donkey" not in done.stderr


@pytest.mark.parametrize("content", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_what_is_no_key_is_told_as_that(content: bytes, call: Call, desk: Desk) -> None:
    desk.publish(0)
    desk.write("bob.key", content, 0o600)
    refused(sign(call, desk, "bob.key"), desk, desk.snapshot(), "bad-key")


def test_another_signer_in_between_loses_nothing(call: Call, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Carol signs after Bob has looked and before he writes: both are there."""
    desk.publish(0)
    in_between(monkeypatch, lambda: add_carol(desk))
    done = sign(call, desk, "bob.key")
    assert (done.status, "alice, carol, bob" in done.stdout) == (0, True)
    assert require_manifest(desk.manifest.read_bytes(), [key.pin for key in keys()], 3).version == "1.4.1"


def test_another_release_in_between_is_never_signed(call: Call, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[object] = []

    def replace() -> None:
        desk.publish(0, version="6.6.6")
        states.append(desk.snapshot())

    desk.publish(0)
    in_between(monkeypatch, replace)
    done = sign(call, desk, "bob.key")
    refused(done, desk, states[0], "manifest-changed", 1)


def in_between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do something after the signature is made and before the file is locked."""

    def later(path: str, change: Callable[[bytes], str]) -> None:
        act()
        change_manifest_file(path, change)

    monkeypatch.setattr("bcd.commands.release_sign.change_manifest_file", later)


def add_carol(desk: Desk) -> None:
    document = json.loads(desk.manifest.read_text())
    signature = keys()[2].sign(PURPOSE + b64decode(document["manifest"]))
    document["signatures"].append({"kid": "carol", "sig": b64encode(signature).decode()})
    desk.manifest.write_text(json.dumps(document))


def test_many_writers_at_once_all_get_in(desk: Desk) -> None:
    """The lock is on a file that each of them replaces."""
    desk.manifest.write_text("")

    def add(number: int) -> None:
        change_manifest_file(str(desk.manifest), lambda data: data.decode() + f"{number}\n")

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(desk.manifest.read_text().split()) == sorted(map(str, range(8)))


def test_a_manifest_that_somebody_holds_is_told_after_a_while(
    call: Call, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifestfile, "_WAIT_SECONDS", 0.05)
    desk.publish(0)
    with desk.manifest.open() as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        refused(sign(call, desk, "bob.key"), desk, desk.snapshot(), "io-error", 1)


@pytest.mark.parametrize("step", ["fsync", "rename"])
@pytest.mark.parametrize("new", [False, True])
def test_a_write_that_fails_loses_nothing(
    step: str, new: bool, call: Call, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("program", b"#!/bin/sh\n")
    if not new:
        desk.publish(0)
    before = desk.snapshot()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"bcd.core.durable.os.{step}", full)
    done = make(call, desk, str(desk.home / "bob.key")) if new else sign(call, desk, "bob.key")
    monkeypatch.undo()
    refused(done, desk, before, "no-space", 1)


def test_an_interrupted_write_loses_nothing_and_is_done_again(
    call: Call, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.publish(0)
    before = desk.manifest.read_bytes()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("bcd.core.durable.os.rename", interrupted)
        assert sign(call, desk, "bob.key").status == 130
    assert desk.manifest.read_bytes() == before
    assert sign(call, desk, "bob.key").status == 0


def test_the_files_mode_stays(call: Call, desk: Desk) -> None:
    desk.publish(0)
    desk.manifest.chmod(0o640)
    sign(call, desk, "bob.key")
    assert desk.manifest.stat().st_mode & 0o777 == 0o640


def test_a_manifest_can_be_made_where_there_is_no_key(call: Call, desk: Desk) -> None:
    """A build machine makes it, people sign it."""
    desk.write("program", b"#!/bin/sh\n")
    done = make(call, desk)
    assert (done.status, "signed by nobody yet" in done.stdout) == (0, True)
    assert sign(call, desk, "bob.key").status == 0


def test_new_writes_over_nothing(call: Call, desk: Desk) -> None:
    desk.write("program", b"#!/bin/sh\n")
    desk.publish(0)
    refused(make(call, desk), desk, desk.snapshot(), "file-exists")


WINDOWS, ARM = b"MZ" + bytes(30), b"\x7fELF\x02\x01\x01" + bytes(11) + b"\xb7\x00" + bytes(20)


@pytest.mark.parametrize(
    ("program", "artifact", "code"),
    [
        (WINDOWS, "linux-amd64", "bad-artifact"),
        (ARM, "linux-amd64", "bad-artifact"),
        (b"", "linux-amd64", "bad-artifact"),
        (None, "linux-amd64", "bad-artifact"),
        (b"#!/bin/sh\n", "Linux_AMD64", "bad-manifest"),
        (b"#!/bin/sh\n", "", "bad-usage"),
    ],
    ids=["windows", "arm", "empty", "missing", "platform", "no platform"],
)
def test_a_program_that_no_node_would_run_is_not_listed(
    program: bytes | None, artifact: str, code: str, call: Call, desk: Desk
) -> None:
    if program is not None:
        desk.write("program", program)
    refused(make(call, desk, artifact=f"{artifact}={desk.home}/program"), desk, desk.snapshot(), code)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--expires", "soon"], "bad-moment"),
        (["--expires", "2020-01-01"], "bad-manifest"),
        (["--expires", "0d"], "bad-manifest"),
        (["--version", "1.4"], "bad-manifest"),
        (["--version", "1.4.1-\udcff"], "bad-manifest"),
        (["--version", "\x1b[2J"], "bad-manifest"),
        (["--sequence", str(2**53)], "bad-manifest"),
        (["--sequence", "9" * 5_000], "bad-usage"),
        (["--sequence", "0"], "bad-usage"),
        (["--signer", "{}/bob.key"], "bad-key"),
        (["--signer", "{}/bob.pub"], "bad-manifest"),
        (["--signer-command", "true"], "bad-usage"),
        (["--timeout", "soon"], "bad-span"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_release_that_makes_no_sense_is_not_made(words: list[str], code: str, call: Call, desk: Desk) -> None:
    desk.write("program", b"#!/bin/sh\n")
    done = make(call, desk, *(word.replace("{}", str(desk.home)) for word in words))
    refused(done, desk, desk.snapshot(), code)


@pytest.mark.parametrize("words", [["--version", "1.4.2"], ["--sequence", "16"], ["--expires", "9d"]], ids=str)
def test_an_existing_manifest_is_signed_and_never_changed(words: list[str], call: Call, desk: Desk) -> None:
    desk.publish(0)
    refused(sign(call, desk, "bob.key", *words), desk, desk.snapshot(), "bad-usage")


def by_command(call: Call, desk: Desk, code: str, *more: str, key: str = "bob.pub") -> Done:
    program = desk.home / "hsm.py"
    program.write_text(code)
    command = f"{sys.executable} -S {program} PIN-1234"
    return sign(call, desk, key, "--signer-command", command, *more)


@pytest.mark.parametrize("form", ["der", "raw", "base64"])
@pytest.mark.parametrize("digest", [False, True])
def test_a_command_signs_in_whatever_form_its_key_store_prints(form: str, digest: bool, call: Call, desk: Desk) -> None:
    """It gets exactly the signed bytes, or their SHA-256."""
    desk.publish(0)
    given = desk.home.parent / f"{desk.home.name}-given"
    body = b64decode(json.loads(desk.manifest.read_text())["manifest"])
    raw = keys()[1].sign(PURPOSE + body)
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    printed = {"der": der, "raw": raw, "base64": b64encode(der) + b"\n"}[form]
    code = (
        f"import sys; open({str(given)!r}, 'wb').write(sys.stdin.buffer.read()); sys.stdout.buffer.write({printed!r})"
    )
    done = by_command(call, desk, code, "--signer-input", "digest" if digest else "message")
    assert (done.status, "alice, bob" in done.stdout) == (0, True), done.stderr
    assert given.read_bytes() == (sha256(PURPOSE + body).digest() if digest else PURPOSE + body)
    given.unlink()


STRANGER = generate_key("bob")
LIES = {
    "prints nothing": "",
    "prints garbage": "import os; os.write(1, b'\\x1b[2J' * 20)",
    "prints without end": "import os\nwhile True: os.write(1, b'x' * 65536)",
    "prints 64 zeros": "import os; os.write(1, bytes(64))",
    "signs something else": f"import os; os.write(1, {STRANGER.sign(b'x')!r})",
    "fails": "import sys; sys.exit('\\x1b]52;c;cm0=\\x07 token \\u202elocked')",
    "dies": "import os; os.kill(os.getpid(), 9)",
    "hangs": "import time; time.sleep(60)",
    "hangs with its streams closed": "import os, time; os.close(1); os.close(2); time.sleep(60)",
    "never stops talking": "import os\nwhile True: os.write(2, b'x' * 65536)",
    "does not read": "import os; os.close(0); os.write(1, b'no')",
}


@pytest.mark.parametrize("code", LIES.values(), ids=LIES)
def test_a_command_that_lies_hangs_or_babbles_writes_nothing(code: str, call: Call, desk: Desk) -> None:
    desk.publish(0)
    (desk.home / "hsm.py").write_text(code)
    before = desk.snapshot()
    done = by_command(call, desk, code, "--timeout", "0.5s" if "while" in code or "sleep" in code else "20s")
    assert desk.snapshot().keys() == before.keys()
    assert desk.snapshot()["release.json"] == before["release.json"]
    assert (done.status, done.stdout) == (1, "")
    assert "(signer-failed)" in done.stderr
    assert acting_on_a_terminal(done.stderr) == []
    assert "PIN-1234" not in done.stderr


@pytest.mark.parametrize(
    ("command", "code", "status"),
    [("/no/such/program", "signer-failed", 1), ("'", "bad-usage", 2), ("", "bad-usage", 2), (" ", "bad-usage", 2)],
)
def test_a_command_that_can_not_be_run_is_told(command: str, code: str, status: int, call: Call, desk: Desk) -> None:
    desk.publish(0)
    refused(sign(call, desk, "bob.pub", "--signer-command", command), desk, desk.snapshot(), code, status)


def test_the_end_of_what_a_command_says_is_told(call: Call, desk: Desk) -> None:
    """Where the reason stands, after whatever else it said."""
    desk.publish(0)
    done = by_command(call, desk, "import sys; sys.exit('loading\\n' * 500 + 'the token is locked')")
    assert (done.status, "the token is locked" in done.stderr, len(done.stderr) < 2_500) == (1, True, True)


def test_no_shell_reads_the_command(call: Call, desk: Desk) -> None:
    desk.publish(0)
    before = desk.snapshot()
    done = sign(call, desk, "bob.pub", "--signer-command", f"true ; touch {desk.home}/pwned $(touch {desk.home}/pwned)")
    refused(done, desk, before, "signer-failed", 1)


def test_a_private_key_is_not_taken_for_the_commands_public_one(call: Call, desk: Desk) -> None:
    desk.publish(0)
    refused(sign(call, desk, "bob.key", "--signer-command", "true"), desk, desk.snapshot(), "bad-key")


def test_a_passphrase_is_in_no_message_and_in_no_argument(call: Call, desk: Desk) -> None:
    """There is no option that takes one."""
    from bcd.commands.release import keygen, sign

    for command in (keygen, sign):
        options = [option for param in command.params for option in param.opts if "pass" in option]
        assert options == ["--passphrase-file"]
    desk.publish(1)
    done = call(
        "release",
        "sign",
        str(desk.manifest),
        str(desk.home / "alice.key"),
        "--yes",
        "--passphrase-file",
        str(desk.passphrase),
    )
    assert done.status == 0
    assert PASSPHRASE not in done.stdout + done.stderr
    assert plain_pem(keys()[0]) not in desk.manifest.read_bytes()
