"""`bcd release verify` and `inspect`: what nodes would say, and what a file says of itself; nothing on disk changes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.core.acceptance import CODES
from bcd.core.manifest import Artifact
from bcd.core.trust import PURPOSE
from bcd.release.keys import generate_key
from bcd.release.signing import envelope
from tests.commands.documents import document
from tests.commands.publishing import Desk, draft, keys
from tests.commands.running import Done, acting_on_a_terminal

Call = Callable[..., Done]
DIGEST = "ab" * 32


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def pins(*indexes: int) -> str:
    return ",".join(keys()[index].pin for index in indexes or (0, 1, 2))


def verify(call: Call, desk: Desk, *more: str) -> Done:
    before = desk.snapshot()
    done = call("release", "verify", str(desk.manifest), *more)
    assert desk.snapshot() == before
    assert acting_on_a_terminal(done.stdout + done.stderr) == []
    return done


def states(done: Done) -> dict[str, str]:
    return {check["code"]: check["state"] for check in document(done.stdout, "release-verify")["checks"]}


def test_every_check_of_the_rules_is_told_and_what_only_a_node_knows_is_skipped(call: Call, desk: Desk) -> None:
    desk.publish(0, 1)
    done = verify(call, desk, "--pins", pins(), "--json")
    assert done.status == 0
    found = states(done)
    assert tuple(found) == CODES
    skipped = {
        "bad-section", "bad-url", "failed-version", "version-mismatch", "below-floor", "no-artifact", "digest-mismatch",
        "unsafe-entrypoint",
    }  # fmt: skip
    assert {code for code, state in found.items() if state == "skipped"} == skipped
    assert {state for code, state in found.items() if code not in skipped} == {"passed"}


def test_with_all_that_a_rollout_would_say_little_is_skipped(call: Call, desk: Desk) -> None:
    desk.publish(0, 1)
    options = ("--floor", "15", "--platform", "linux-amd64", "--url", "https://x.example/bcd", "--sha256", DIGEST)
    done = verify(call, desk, "--pins", pins(), *options, "--json")
    skipped = {code for code, state in states(done).items() if state == "skipped"}
    assert (done.status, skipped) == (0, {"failed-version", "version-mismatch", "unsafe-entrypoint"})


def test_a_digest_is_looked_for_on_every_platform_where_none_is_named(call: Call, desk: Desk) -> None:
    files = tuple(
        Artifact(name=platform, platform=platform, sha256=digit * 64, size=size)
        for platform, digit, size in (("linux-amd64", "a", 9), ("linux-arm64", "b", 7))
    )
    desk.publish(0, 1, artifacts=files)
    for digit in "aBb":
        assert verify(call, desk, "--pins", pins(), "--sha256", digit * 64).status == 0
    crossed = verify(call, desk, "--pins", pins(), "--sha256", "b" * 64, "--platform", "linux-amd64")
    assert (crossed.status, "(digest-mismatch)" in crossed.stdout) == (1, True)


REFUSALS: dict[str, tuple[dict[str, object], tuple[int, ...], tuple[str, ...]]] = {
    "no-pins": ({}, (0, 1), ("--threshold", "4")),
    "bad-url": ({}, (0, 1), ("--url", "http://x.example/bcd")),
    "manifest-signatures": ({}, (0,), ()),
    "wrong-product": ({"product": "other"}, (0, 1), ()),
    "expired": ({}, (0, 1), ("--at", "2999-01-01")),
    "below-floor": ({}, (0, 1), ("--floor", "16")),
    "no-artifact": ({}, (0, 1), ("--platform", "linux-arm64")),
    "digest-mismatch": ({}, (0, 1), ("--sha256", "cd" * 32)),
    "bad-section": ({}, (0, 1), ("--sha256", "cd")),
}


@pytest.mark.parametrize("code", REFUSALS)
def test_it_refuses_what_nodes_refuse_by_the_same_code(code: str, call: Call, desk: Desk) -> None:
    changes, signers, options = REFUSALS[code]
    desk.publish(*signers, **changes)
    done = verify(call, desk, "--pins", pins(), *options)
    assert done.status == 1
    assert f"({code})" in done.stdout
    read = document(verify(call, desk, "--pins", pins(), *options, "--json").stdout, "release-verify")
    assert (read["accepted"], read["refusal"]["code"]) == (False, code)


@pytest.mark.parametrize(
    ("text", "code"), [("", "manifest-shape"), ("\x1b[2J{", "manifest-shape"), ("{}", "manifest-shape")], ids=ascii
)
def test_what_is_no_manifest_is_refused_by_its_shape(text: str, code: str, call: Call, desk: Desk) -> None:
    desk.manifest.write_text(text)
    done = verify(call, desk, "--pins", pins())
    assert (done.status, f"({code})" in done.stdout) == (1, True)


def test_a_body_that_is_not_canonical_is_refused_however_well_signed(call: Call, desk: Desk) -> None:
    body = draft().body().replace(b'":', b'": ', 1)
    desk.manifest.write_text(envelope(body, [(key.kid, key.sign(PURPOSE + body)) for key in keys()]))
    assert "(manifest-canonical)" in verify(call, desk, "--pins", pins()).stdout
    assert "not its canonical JSON" in call("release", "inspect", str(desk.manifest)).stdout


def test_strangers_who_list_themselves_count_for_nothing_and_inspect_says_that_it_cannot_tell(
    call: Call, desk: Desk
) -> None:
    """The attack: a manifest with keys of the attacker's own, under the signers' names. All its signatures are good."""
    mallory = tuple(generate_key(key.kid) for key in keys())
    body = draft(keys=mallory).body()
    desk.manifest.write_text(envelope(body, [(key.kid, key.sign(PURPOSE + body)) for key in mallory]))
    done = verify(call, desk, "--pins", pins())
    assert (done.status, "(manifest-signatures)" in done.stdout) == (1, True)
    shown = call("release", "inspect", str(desk.manifest))
    assert (shown.status, shown.stdout.count("valid ")) == (0, 3)
    assert "Nothing was checked against pins" in shown.stdout
    read = document(call("release", "inspect", str(desk.manifest), "--json").stdout, "release-inspect")
    assert (read["pins_checked"], [entry["valid"] for entry in read["signatures"]]) == (False, [True, True, True])


def test_pins_threshold_and_floor_come_from_a_nodes_configuration(call: Call, desk: Desk) -> None:
    desk.publish(0)
    text = f'[update]\nrelease_pins = "{pins()}"\nrelease_threshold = 1\nrelease_sequence = 15\n'
    config = desk.write("config.toml", text.encode())
    read = document(verify(call, desk, "--config", str(config), "--json").stdout, "release-verify")
    against = read["against"]
    assert (read["accepted"], against["threshold"], against["floor"], len(against["pins"])) == (True, 1, 15, 3)
    refused = verify(call, desk, "--config", str(config), "--threshold", "2", "--floor", "16")
    assert (refused.status, "(manifest-signatures)" in refused.stdout) == (1, True)


def test_time_and_floor_that_are_assumed_are_said_to_be(call: Call, desk: Desk) -> None:
    desk.publish(0, 1)
    assumed = verify(call, desk, "--pins", pins()).stdout
    assert "(this machine's clock); floor not given; platform not given" in assumed
    given = verify(call, desk, "--pins", pins(), "--at", "2026-01-31T12:00:00Z", "--floor", "3").stdout
    assert "now 2026-01-31 12:00:00 UTC (as --at says); floor 3; platform not given" in given


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--pins", ""),
        ("--pins", "sha256/AAAA"),
        ("--pins", "\x1b[2J"),
        ("--pins", "PIN", "--config", "x"),
        ("--pins", "PIN", "--at", "90d"),
        ("--pins", "PIN", "--at", "1900-01-01"),
    ],
    ids=ascii,
)
def test_whom_to_trust_and_when_is_never_guessed(options: tuple[str, ...], call: Call, desk: Desk) -> None:
    desk.publish(0, 1)
    done = verify(call, desk, *(option.replace("PIN", pins()) for option in options))
    assert (done.status, done.stdout, done.code in ("bad-usage", "bad-moment")) == (2, "", True)


def test_inspect_tells_each_signature_by_its_key(call: Call, desk: Desk) -> None:
    """A good one, one of another body, one of nobody; and no file changes."""
    body = draft().body()
    entries = [("alice", keys()[0].sign(PURPOSE + body)), ("bob", keys()[1].sign(b"else")), ("\x1b[2J", bytes(64))]
    desk.manifest.write_text(envelope(body, entries))
    before = desk.snapshot()
    done = call("release", "inspect", str(desk.manifest))
    read = document(call("release", "inspect", str(desk.manifest), "--json").stdout, "release-inspect")
    assert (done.status, desk.snapshot(), acting_on_a_terminal(done.stdout)) == (0, before, [])
    assert "signed    valid    alice" in done.stdout
    assert "signed    INVALID  bob" in done.stdout
    assert [(entry["pin"], entry["valid"]) for entry in read["signatures"]] == [
        (keys()[0].pin, True), (keys()[1].pin, False), (None, False),
    ]  # fmt: skip
    assert (read["version"], read["sequence"], read["artifacts"][0]["sha256"]) == ("1.4.1", 15, DIGEST)


def test_inspect_of_what_is_no_manifest_says_what_is_wrong(call: Call, desk: Desk) -> None:
    desk.manifest.write_text(json.dumps({"manifest": "\x1b", "signatures": []}))
    done = call("release", "inspect", str(desk.manifest))
    assert (done.status, done.stdout, done.code) == (1, "", "manifest-shape")
    assert acting_on_a_terminal(done.stderr) == []
