"""`bcd update check`: what this node would answer to a release, and why; nothing on disk changes."""

import json
import os
import time
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

from bcd.core.acceptance import ARTIFACT_LIMIT_BYTES, CODES
from bcd.core.build import this_platform
from bcd.core.manifest import ENVELOPE_LIMIT_BYTES, Artifact
from bcd.core.trust import PURPOSE
from bcd.release.keys import ReleaseKey, generate_key
from bcd.release.manifest import ReleaseDraft
from bcd.release.signing import envelope, sign_release
from tests.commands.documents import document
from tests.commands.node_dir import Node
from tests.commands.running import NOBODY, Done, Runner, acting_on_a_terminal

Call = Callable[..., Done]

DIGEST = "cd" * 32
URL = "https://releases.example.com/bcd-1.4.2"


@cache
def keys() -> tuple[ReleaseKey, ...]:
    return tuple(generate_key(f"release-{number}") for number in (1, 2, 3))


def draft(**changes: object) -> ReleaseDraft:
    """1.4.2, sequence 16, of this platform, good for an hour."""
    given: dict[str, object] = {
        "version": "1.4.2",
        "sequence": 16,
        "issued_at": 1_790_000_000,
        "expires_at": int(time.time()) + 3600,
        "keys": keys(),
        "artifacts": (Artifact(name="bcd-1", platform=this_platform(), sha256=DIGEST, size=1000),),
        **changes,
    }
    return ReleaseDraft(**given)  # type: ignore[arg-type]  # the values are the tests' own


def signed(signers: int = 2, **changes: object) -> str:
    return sign_release(draft(**changes), keys()[:signers])


def spaced() -> str:
    """Signed by all, with a space that canonical JSON has not."""
    body = draft().body().replace(b'":', b'": ', 1)
    return envelope(body, [(key.kid, key.sign(PURPOSE + body)) for key in keys()])


@pytest.fixture
def pinned(node: Node) -> Node:
    """A node that pins these tests' keys."""
    node.pin(keys())
    return node


def checking(node: Node) -> tuple[str, ...]:
    return ("update", "check", "--config", str(node.config))


@pytest.fixture
def release(home: Path) -> Callable[..., str]:
    """Write a manifest to a file and name it."""

    def write(text: str | bytes) -> str:
        path = home / "release.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def states(done: Done) -> dict[str, str]:
    """code -> state, from the JSON; one for each code of the rules, in their order."""
    checks = document(done.stdout, "update-check")["checks"]
    assert [check["code"] for check in checks] == list(CODES)
    return {check["code"]: check["state"] for check in checks}


def test_a_good_release_is_accepted(call: Call, pinned: Node, release: Callable[..., str]) -> None:
    done = call("update", "check", release(signed()), "--config", str(pinned.config))
    assert (done.status, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[-1] == "accepted: this node would take this release"
    marks = {words[1]: words[0] for words in map(str.split, lines[:-1]) if words[1] in CODES}
    assert list(marks) == list(CODES)
    assert {code for code, mark in marks.items() if mark != "ok"} == {
        "bad-section",
        "bad-url",
        "version-mismatch",
        "digest-mismatch",
    }
    assert "      release-1: counts" in lines


def test_with_its_section_every_check_but_one_is_made(call: Call, pinned: Node, release: Callable[..., str]) -> None:
    """The version is the manifest's own, so that there is nothing to compare it with."""
    given = ("--url", URL, "--sha256", DIGEST.upper())
    done = call("update", "check", release(signed()), *given, "--json", "--config", str(pinned.config))
    assert done.status == 0
    assert {code for code, state in states(done).items() if state != "passed"} == {"version-mismatch"}
    answer = document(done.stdout, "update-check")
    assert (answer["accepted"], answer["refusal"]) == (True, None)


OTHER_PLATFORM = (Artifact(name="bcd-1", platform="plan9-mips", sha256=DIGEST, size=1000),)
TOO_LARGE = (Artifact(name="bcd-1", platform=this_platform(), sha256=DIGEST, size=ARTIFACT_LIMIT_BYTES + 1),)


@pytest.mark.parametrize(
    ("code", "manifest", "options"),
    [
        ("bad-section", signed, ("--sha256", "ab")),
        ("bad-section", signed, ("--sha256", "")),
        ("bad-url", signed, ("--url", "http://releases.example.com/bcd")),
        ("bad-url", signed, ("--url", "https://user:secret@releases.example.com/bcd")),
        ("bad-url", signed, ("--url", "")),
        ("failed-version", lambda: signed(version="1.4.1"), ()),
        ("manifest-shape", lambda: signed()[:-1], ()),
        ("manifest-shape", lambda: "", ()),
        ("manifest-signatures", lambda: signed(signers=1), ()),
        ("manifest-canonical", spaced, ()),
        ("wrong-product", lambda: signed(product="bcp"), ()),
        ("expired", lambda: signed(expires_at=1_790_000_001), ()),
        ("below-floor", lambda: signed(sequence=13), ()),
        ("no-artifact", lambda: signed(artifacts=OTHER_PLATFORM), ()),
        ("digest-mismatch", signed, ("--sha256", "ef" * 32)),
        ("too-large", lambda: signed(artifacts=TOO_LARGE), ()),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_bad_release_is_refused_at_its_check(
    code: str,
    manifest: Callable[[], str],
    options: tuple[str, ...],
    call: Call,
    pinned: Node,
    release: Callable[..., str],
) -> None:
    """Status 1; what comes before passed or does not apply, what comes after was not reached; the code is said."""
    before = pinned.snapshot()
    path = release(manifest())
    machine = call("update", "check", path, *options, "--json", "--config", str(pinned.config))
    found = states(machine)
    assert (machine.status, found[code]) == (1, "failed")
    at = CODES.index(code)
    assert {found[earlier] for earlier in CODES[:at]} <= {"passed", "skipped"}
    assert {found[later] for later in CODES[at + 1 :]} <= {"not-reached"}
    answer = document(machine.stdout, "update-check")
    assert (answer["accepted"], answer["refusal"]["code"]) == (False, code)

    plain = call("update", "check", path, *options, "--config", str(pinned.config))
    assert (plain.status, plain.stderr) == (1, "")
    assert f"refused: {answer['refusal']['message']} ({code})\n" in plain.stdout
    assert pinned.snapshot() == before


def test_a_node_without_pins_refuses_everything(call: Call, node: Node, release: Callable[..., str]) -> None:
    node.configure(pins=())
    done = call("update", "check", release(signed()), "--json", "--config", str(node.config))
    assert (done.status, states(done)["no-pins"]) == (1, "failed")


def test_a_node_with_fewer_pins_than_its_threshold_refuses_everything(
    call: Call, node: Node, release: Callable[..., str]
) -> None:
    node.configure(pins=(keys()[0].pin,), threshold=2)
    done = call("update", "check", release(signed()), "--json", "--config", str(node.config))
    assert (done.status, states(done)["no-pins"]) == (1, "failed")


def test_an_entrypoint_that_leads_elsewhere_is_refused_last(
    call: Call, pinned: Node, release: Callable[..., str]
) -> None:
    pinned.entrypoint.unlink()
    pinned.entrypoint.symlink_to("/opt/other")
    done = call("update", "check", release(signed()), "--config", str(pinned.config))
    assert done.status == 1
    assert done.stdout.splitlines()[-2].endswith("(unsafe-entrypoint)")
    assert done.stdout.splitlines()[-1].startswith("  try: ln -sfn ")


def test_the_same_signature_twice_counts_once(call: Call, pinned: Node, release: Callable[..., str]) -> None:
    """And what each signature was worth is listed (field report 30)."""
    text = sign_release(draft(), [keys()[0], keys()[0], generate_key("stranger")])
    done = call("update", "check", release(text), "--config", str(pinned.config))
    assert (done.status, "(manifest-signatures)" in done.stdout) == (1, True)
    assert "      release-1: counts\n      release-1: the same key has counted already\n" in done.stdout
    assert "      stranger: the manifest lists no such key\n" in done.stdout


@pytest.mark.parametrize("around", ["\n{}\n", " \t{}\r\n\r\n"], ids=["newlines", "blanks"])
def test_white_space_around_a_manifest_is_free(
    around: str, call: Call, pinned: Node, release: Callable[..., str]
) -> None:
    done = call("update", "check", release(around.format(signed())), "--config", str(pinned.config))
    assert done.status == 0


def test_a_manifest_in_base64_is_the_manifest(call: Call, pinned: Node, release: Callable[..., str]) -> None:
    """As a section may carry it."""
    text = b64encode(signed().encode()) + b"\n"
    done = call("update", "check", release(text), "--json", "--config", str(pinned.config))
    assert (done.status, states(done)["failed-version"]) == (0, "passed")


def test_a_manifest_comes_from_standard_input_too(run: Runner, pinned: Node) -> None:
    done = run("update", "check", "-", "--config", str(pinned.config), stdin=signed().encode())
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout.endswith("accepted: this node would take this release\n")


def test_a_manifest_may_come_through_a_pipe_with_a_name(run: Runner, pinned: Node) -> None:
    """`bcd update check <(curl …)`."""
    (pinned.home / "m.json").write_text(signed())
    done = run.shell(f"cat() {{ sleep 0.2; command cat $1; }}; $BCD <(cat {pinned.home}/m.json)", *checking(pinned))
    assert (done.status, done.stderr) == (0, "")


def test_a_pipe_that_nobody_writes_to_does_not_hang(run: Runner, pinned: Node) -> None:
    fifo = pinned.home / "fifo"
    os.mkfifo(fifo)
    done = run(*checking(pinned), str(fifo))
    assert (done.status, "(manifest-shape)" in done.stdout) == (1, True)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 100,
        bytes(range(256)) * 100,
        b"{" * 100_000,
        b'{"a":' * 5_000,
        b"\xef\xbb\xbf{}",
        b'{"manifest": "\xed\xa0\x80", "signatures": []}',
        b" " * (ENVELOPE_LIMIT_BYTES + 1),
        b"x" * 10_000_000,
        b"\x7fELF" + b"\0" * 100_000,
    ],
    ids=["empty", "NUL", "binary", "braces", "deep", "BOM", "surrogate", "blanks", "huge", "ELF"],
)
def test_garbage_is_refused_by_its_shape_and_reaches_no_terminal(
    content: bytes, call: Call, pinned: Node, release: Callable[..., str]
) -> None:
    path = release(content)
    before = pinned.snapshot()
    plain = call(*checking(pinned), path)
    machine = call(*checking(pinned), path, "--json")
    assert (plain.status, machine.status, plain.stderr, machine.stderr) == (1, 1, "", "")
    assert states(machine)["manifest-shape"] == "failed"
    assert acting_on_a_terminal(plain.stdout) == acting_on_a_terminal(machine.stdout) == []
    assert pinned.snapshot() == before


@pytest.mark.parametrize("path", ["missing.json", ".", "", "fifo/x"])
def test_a_manifest_that_is_not_there_is_a_wrong_usage(path: str, call: Call, pinned: Node) -> None:
    done = call(*checking(pinned), str(pinned.home / path) if path else "")
    assert (done.status, done.code, done.stdout) == (2, "unreadable-manifest", "")


def test_a_manifest_that_may_not_be_read_ends_with_4(run: Runner, pinned: Node) -> None:
    secret = pinned.home / "release.json"
    secret.write_text(signed())
    pinned.forbid(secret)
    done = run(*checking(pinned), str(secret), user=NOBODY)
    assert (done.status, done.code, done.stdout) == (4, "unreadable-manifest", "")


@pytest.mark.parametrize("record", ["update_json", "slots_json", "data"])
def test_without_the_records_that_decide_there_is_no_answer(
    record: str, run: Runner, pinned: Node, release: Callable[..., str]
) -> None:
    """Status 4 and the command: "accepted" by who could not see the failed versions would be a lie."""
    path = release(signed())
    pinned.forbid(getattr(pinned, record))
    done = run(*checking(pinned), path, user=NOBODY)
    assert (done.status, done.code, done.stdout) == (4, "unreadable-records", "")
    assert done.hint == f"sudo bcd update check {path} --config {pinned.config}"


def test_without_update_json_the_slots_are_evidence_of_the_floor(
    call: Call, pinned: Node, release: Callable[..., str]
) -> None:
    """A lost record must not let an older release in (field report 24)."""
    pinned.update_json.write_text("{")
    done = call("update", "check", release(signed(sequence=13)), "--json", "--config", str(pinned.config))
    assert (done.status, states(done)["below-floor"]) == (1, "failed")


def test_what_the_other_slot_holds_already_needs_no_manifest_again(
    call: Call, pinned: Node, release: Callable[..., str]
) -> None:
    """The rules' reuse: the other slot's file still hashes to its record."""
    digest = sha256((pinned.slots / "bcd-a").read_bytes()).hexdigest()
    entry = {"version": "1.4.2", "sequence": 16, "sha256": digest, "size": 10, "written_at": 5}
    slots = json.loads(pinned.slots_json.read_text())
    pinned.write_slots({"a": entry, "b": slots["b"]})
    done = call(*checking(pinned), release(signed(signers=0)), "--sha256", digest, "--json")
    assert (done.status, states(done)["manifest-signatures"]) == (0, "skipped")
