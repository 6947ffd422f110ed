"""Who is trusted: three stages in their order, who counted and who was passed over and why, and no input that raises."""

import copy
import inspect
import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bcd.core.errors import Refusal
from bcd.core.trust import PURPOSE, SIGNATURES_READ, Verification, pin_of, require_manifest, verify_manifest
from bcd.release.keys import ReleaseKey, generate_key
from tests.core.manifests import (
    Document,
    artifact,
    at,
    canonical,
    changed,
    document,
    envelope,
    key_entry,
    keys,
    paths,
    pins,
    signatures,
    signed,
)

T = TypeVar("T")

VECTORS = json.loads((FilePath(__file__).parent.parent / "vectors" / "release-manifests.json").read_bytes())["cases"]
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Of the group: s and ORDER - s verify alike."""

GOOD = document()
BODY = canonical(GOOD)


def verify(data: bytes, threshold: int = 2) -> Verification:
    """By a node that pins all three keys."""
    return verify_manifest(data, pins(), threshold)


def explained(verification: Verification) -> list[tuple[str, bool, str]]:
    """Each signature: whose, whether it counted, and why."""
    return [(one.kid, one.pin is not None, one.why) for one in verification.signatures]


# The vectors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", VECTORS, ids=[case["name"] for case in VECTORS])
def test_a_vector_ends_as_the_independent_implementation_says(case: dict[str, Any]) -> None:
    """Verdict, stage and number of signers; asked both ways, explained and required."""
    data = b64decode(case["envelope"]) + b" " * case["pad"]
    verification = verify_manifest(data, case["pins"], case["threshold"])
    assert verification.refused_at == case.get("stage")
    if case["ok"]:
        manifest = require_manifest(data, case["pins"], case["threshold"])
        assert verification.counted == case["signers"]
        assert verification.parsed == manifest
        assert verification.why == ""
        return
    if case["stage"] == "signatures":
        counted, _, needed = case["why"].partition(" of ")
        assert (verification.counted, case["threshold"]) == (int(counted), int(needed))
    assert verification.why != ""
    with pytest.raises(Refusal) as refusal:
        require_manifest(data, case["pins"], case["threshold"])
    assert refusal.value.code == f"manifest-{case['stage']}"
    assert verification.why in refusal.value.message


def test_the_vectors_are_all_there() -> None:
    """Over two hundred, of every end."""
    ends = [case.get("stage") for case in VECTORS]
    assert {end: ends.count(end) for end in ends} == {None: 26, "shape": 168, "signatures": 13, "canonical": 6}


# The stages in their order --------------------------------------------------------------------------------------------


def test_a_good_manifest_is_accepted() -> None:
    """Two of three signed; who did is told by pin."""
    verification = verify(signed(GOOD))
    assert (verification.refused_at, verification.why, verification.threshold) == (None, "", 2)
    assert [(one.kid, one.pin, one.why) for one in verification.signatures] == [
        (key.kid, key.pin, "counts") for key in keys()[:2]
    ]
    assert verification.counted == 2
    assert require_manifest(signed(GOOD), pins(), 2).sequence == 15


def test_a_malformed_manifest_is_refused_before_its_signatures() -> None:
    """Good signatures over a body without a shape are not even looked at."""
    verification = verify(signed(document(spec=2)))
    assert (verification.refused_at, verification.signatures, verification.parsed) == ("shape", (), None)


def test_too_few_signatures_are_refused_before_the_canonical_form() -> None:
    """What nobody signed is not judged further."""
    spaced = json.dumps(GOOD).encode()
    assert verify(signed(spaced, keys()[:1])).refused_at == "signatures"
    assert verify(signed(spaced)).refused_at == "canonical"


@pytest.mark.parametrize(
    "spell",
    [
        lambda text: text + "\n",
        lambda text: " " + text,
        lambda text: text.replace(":", ": ", 1),
        lambda text: text.replace('"bcd"', '"b\\u0063d"'),
        lambda text: text.replace('"type"', '"\\u0074ype"'),
        lambda text: "{" + ",".join(reversed(text[1:-1].rsplit(",", 1))) + "}",
        lambda text: text.replace('{"alg":"ES256","kid":"one"', '{"kid":"one","alg":"ES256"'),
        lambda text: text.replace("linux-amd64", "linux\\u002damd64"),
    ],
    ids=["newline", "space", "colon", "escape", "name", "order", "order-inside", "hyphen"],
)
def test_a_body_in_another_spelling_is_refused(spell: Callable[[str], str]) -> None:
    """However many signed it: one release has one text."""
    body = spell(BODY.decode()).encode()
    assert body != BODY
    assert json.loads(body) == GOOD
    verification = verify(signed(body, keys()))
    assert (verification.refused_at, verification.counted) == ("canonical", 3)


def test_what_a_refused_manifest_says_is_shown_but_not_returned() -> None:
    """`parsed` is for showing; whoever requires a manifest gets a refusal."""
    for data, code in ((signed(BODY + b"\n"), "manifest-canonical"), (envelope(BODY, []), "manifest-signatures")):
        verification = verify(data)
        assert verification.parsed is not None
        assert verification.parsed.version == "1.4.1"
        with pytest.raises(Refusal) as refusal:
            require_manifest(data, pins(), 2)
        assert refusal.value.code == code


# Who counts -----------------------------------------------------------------------------------------------------------


def mirrored(entry: Document) -> Document:
    """The same signature with -s for s, which anyone can make and which verifies too."""
    raw = b64decode(entry["sig"])
    s = ORDER - int.from_bytes(raw[32:])
    return {**entry, "sig": b64encode(raw[:32] + s.to_bytes(32)).decode()}


def test_each_signature_that_is_passed_over_says_why() -> None:
    """In the envelope's order, one verdict for each that was read."""
    stranger = generate_key("stranger")
    made = document(keys=[*GOOD["keys"], key_entry(stranger)])
    body = canonical(made)
    one, two, three = signatures(body, keys())
    (foreign,) = signatures(body, [stranger])
    entries = [
        {**one, "kid": "nobody"},
        foreign,
        {**one, "sig": one["sig"].rstrip("=")},
        {**one, "sig": b64encode(b64decode(one["sig"]) + b"\0").decode()},
        {**one, "kid": "two"},
        one,
        one,
        mirrored(one),
        two,
        {**three, "sig": signatures(body + b" ", [keys()[2]])[0]["sig"]},
    ]
    verification = verify(envelope(body, entries))
    assert explained(verification) == [
        ("nobody", False, "the manifest lists no such key"),
        ("stranger", False, "the key is not pinned on this node"),
        ("one", False, "the signature is not strict base64"),
        ("one", False, "the signature is not 64 bytes"),
        ("two", False, "the signature is not of this manifest by this key"),
        ("one", True, "counts"),
        ("one", False, "the same key has counted already"),
        ("one", False, "the same key has counted already"),
        ("two", True, "counts"),
        ("three", False, "the signature is not of this manifest by this key"),
    ]
    assert (verification.counted, verification.refused_at) == (2, None)


def test_one_key_counts_once_however_it_is_spelled() -> None:
    """Twice the same signature, a second one, the mirrored one, a pin configured twice (field report 30)."""
    key = keys()[0]
    once, again = signatures(BODY, [key])[0], signatures(BODY, [key])[0]
    assert once != again
    verification = verify_manifest(envelope(BODY, [once, once, again, mirrored(once)]), [key.pin, key.pin], 2)
    assert (verification.counted, verification.refused_at) == (1, "signatures")
    assert "1 of the 2" in verification.why


def test_a_key_that_is_listed_and_not_pinned_counts_nothing() -> None:
    """The manifest's own list gives no trust."""
    strangers = [generate_key("one"), generate_key("two")]
    data = signed(document(keys=[key_entry(key) for key in strangers]), strangers)
    assert (verify(data).refused_at, verify(data).counted) == ("signatures", 0)


def test_a_pinned_key_that_is_not_listed_counts_nothing() -> None:
    """A pin alone is no key."""
    one, two, three = keys()
    data = signed(document(keys=[key_entry(one)]), [one, two, three])
    assert explained(verify(data))[1:] == [(kid, False, "the manifest lists no such key") for kid in ("two", "three")]


def test_a_kid_is_a_name_and_not_a_trust() -> None:
    """Renamed by its publisher, a pinned key counts under its new name."""
    one, two, _ = keys()
    renamed = [ReleaseKey(kid="x", private=one.private), ReleaseKey(kid="y", private=two.private)]
    data = signed(document(keys=[key_entry(key) for key in renamed]), renamed)
    assert [(one.kid, one.pin) for one in verify(data).signatures] == [("x", one.pin), ("y", two.pin)]
    assert verify(data).refused_at is None


def test_only_sixteen_signatures_are_read() -> None:
    """Two good ones at 15 and 16 count; at 16 and 17 one does; and what was not read is told."""
    noise = [{"kid": "nobody", "sig": ""}]
    good = signatures(BODY, keys()[:2])
    assert verify(envelope(BODY, [*noise * 14, *good])).refused_at is None
    late = verify(envelope(BODY, [*noise * 15, *good]))
    assert (late.refused_at, late.counted) == ("signatures", 1)
    assert explained(late)[-1] == ("", False, "1 more past the first 16 unread")
    assert len(late.signatures) == SIGNATURES_READ + 1
    assert explained(verify(envelope(BODY, noise * 1000)))[-1][2] == "984 more past the first 16 unread"


@pytest.mark.parametrize(
    "purpose",
    [
        b"",
        b"\0",
        b"bettercompute/release-manifest",
        b"bettercompute/release-manifest\0\0",
        b"bettercompute/release-manifest ",
        b"bettercompute/release-manifest\n",
        b"Bettercompute/release-manifest\0",
        b"bettercompute/node-identity\0",
        PURPOSE + PURPOSE,
    ],
)
def test_a_signature_for_another_purpose_counts_nothing(purpose: bytes) -> None:
    """What a release key signed elsewhere is no release."""
    verification = verify(envelope(BODY, signatures(BODY, keys(), purpose)))
    assert (verification.refused_at, verification.counted) == ("signatures", 0)


def test_the_purpose_is_what_the_rules_spell() -> None:
    """Byte for byte, with its zero byte."""
    assert PURPOSE == b"bettercompute/release-manifest\x00"
    assert (
        verify(envelope(BODY, signatures(BODY, keys()[:2], b"bettercompute/release-manifest\x00"))).refused_at is None
    )


SCALARS = {"zero": 0, "one": 1, "order": ORDER, "past the order": ORDER + 1, "largest": 2**256 - 1}


@pytest.mark.parametrize("r", SCALARS)
@pytest.mark.parametrize("s", SCALARS)
def test_a_made_up_signature_counts_nothing(r: str, s: str) -> None:
    """Zero (CVE-2022-21449), the group's order and what lies past it end in a no, not in an error."""
    sig = b64encode(SCALARS[r].to_bytes(32) + SCALARS[s].to_bytes(32)).decode()
    verification = verify(envelope(BODY, [{"kid": key.kid, "sig": sig} for key in keys()]))
    assert (verification.refused_at, verification.counted) == ("signatures", 0)


@pytest.mark.parametrize("sig", ["", "A", "====", "?", "\U0001f511", "A" * 100_000, "A" * 84 + "AA=="])
def test_a_signature_that_is_none_is_passed_over(sig: str) -> None:
    """And does not take the good ones beside it down."""
    verification = verify(envelope(BODY, [{"kid": "three", "sig": sig}, *signatures(BODY, keys()[:2])]))
    assert (verification.refused_at, verification.counted) == (None, 2)
    assert not explained(verification)[0][1]


@pytest.mark.parametrize("threshold", [0, -1, -(2**63)])
def test_no_threshold_lets_an_unsigned_manifest_through(threshold: int) -> None:
    """Configuration refuses such a threshold; were it let through, one signer is still needed."""
    assert verify(envelope(BODY, []), threshold).refused_at == "signatures"
    assert verify_manifest(envelope(BODY, []), [], threshold).refused_at == "signatures"
    assert verify(signed(GOOD, keys()[:1]), threshold).refused_at is None


def test_as_many_as_the_threshold_must_count() -> None:
    """One fewer is refused, for each threshold."""
    for signers in range(4):
        for threshold in range(1, 5):
            verification = verify(signed(GOOD, keys()[:signers]), threshold)
            assert (verification.refused_at is None) == (signers >= threshold)
            assert verification.counted == signers


def test_a_pin_is_the_digest_of_the_key() -> None:
    """As `openssl dgst -sha256 -binary | base64` says of the first vector's first key."""
    body = json.loads(b64decode(json.loads(b64decode(VECTORS[0]["envelope"]))["manifest"]))
    assert [pin_of(b64decode(key["spki"])) for key in body["keys"]] == VECTORS[0]["pins"]
    assert keys()[0].pin == pin_of(keys()[0].spki)


def test_a_kid_that_would_act_on_a_terminal_is_shown_harmlessly() -> None:
    """The explanation is for printing (field report C06)."""
    data = envelope(BODY, [{"kid": "\x1b]52;c;eA==\x07" + "x" * 10_000, "sig": "\x9b2J"}])
    (verdict,) = verify(data).signatures
    assert verdict.kid.isprintable()
    assert len(verdict.kid) < 200


# Whatever comes -------------------------------------------------------------------------------------------------------

PATHS = paths(GOOD)
VALUES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just([]) | st.just({})
)


@st.composite
def mutated_bodies(draw: st.DrawFn) -> bytes:
    """The good body after one to three changes to its structure or its bytes."""
    made = copy.deepcopy(GOOD)
    twice = None
    for _ in range(draw(st.integers(1, 3))):
        here = paths(made)
        path = draw(st.sampled_from([path for path in here if isinstance(path[-1], str)] or [("x",)]))
        inside, name = at(made, path[:-1]), path[-1]
        match draw(st.sampled_from(["delete", "duplicate", "retype", "rename", "copy"])):
            case "delete":
                inside.pop(name, None)
            case "duplicate":
                inside["@twice@"], twice = draw(VALUES), str(name)
            case "retype":
                inside[name] = draw(VALUES)
            case "rename":
                inside[draw(st.sampled_from(["version", "kid", "Version", ""]) | st.text(max_size=3))] = inside.pop(
                    name, 1
                )
            case "copy":
                other = draw(st.sampled_from(PATHS))
                inside[name] = copy.deepcopy(at(GOOD, other))
    body = json.dumps(made, sort_keys=draw(st.booleans()), separators=(",", ":")).encode()
    if twice is not None:
        body = body.replace(b'"@twice@"', json.dumps(twice).encode())
    return body


@st.composite
def flipped(draw: st.DrawFn, data: bytes) -> bytes:
    """One to three bytes are others, or missing, or new."""
    made = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        index = draw(st.integers(0, len(made) - 1))
        match draw(st.sampled_from(["flip", "delete", "insert"])):
            case "flip":
                made[index] ^= 1 << draw(st.integers(0, 7))
            case "delete":
                del made[index]
            case "insert":
                made.insert(index, draw(st.integers(0, 255)))
    return bytes(made)


SIGNED = signed(GOOD)
BODIES = mutated_bodies() | flipped(BODY)


def fields_are_those_of_the_rules(body: Any) -> bool:
    """A second, coarse reading of section 3: names and types alone."""
    shapes: dict[str, type] = {
        "type": str, "spec": int, "product": str, "version": str, "sequence": int, "issuedAt": int, "expiresAt": int,
        "keys": list, "artifacts": list,
    }  # fmt: skip
    key: dict[str, type] = {"kid": str, "alg": str, "spki": str}
    file: dict[str, type] = {"name": str, "platform": str, "sha256": str, "size": int}

    def fits(value: Any, shape: dict[str, type]) -> bool:
        return isinstance(value, dict) and {name: type(item) for name, item in value.items()} == shape

    return (
        fits(body, shapes)
        and all(fits(one, key) for one in body["keys"])
        and all(fits(one, file) for one in body["artifacts"])
        and len({one["kid"] for one in body["keys"]}) == len(body["keys"]) > 0
        and len({one["name"] for one in body["artifacts"]}) == len(body["artifacts"]) > 0
    )


@given(BODIES)
@settings(max_examples=150)
def test_a_mutated_body_with_the_old_signatures_is_refused(body: bytes) -> None:
    """Whatever was changed; only the very bytes that were signed are accepted."""
    entries = json.loads(SIGNED)["signatures"]
    verification = verify(envelope(body, entries))
    assert (verification.refused_at is None) == (body == BODY)
    assert verification.why.isprintable()


@given(BODIES)
@settings(max_examples=150)
def test_a_mutated_body_that_is_signed_anew_is_judged_by_the_rules(body: bytes) -> None:
    """It ends in a verification; accepted only when it is canonical and has the rules' fields."""
    verification = verify(signed(body))
    if verification.refused_at is None:
        value = json.loads(body)
        assert canonical(value) == body
        assert fields_are_those_of_the_rules(value)
        assert verification.parsed is not None
        assert (verification.parsed.version, verification.parsed.sequence) == (value["version"], value["sequence"])


@given(flipped(SIGNED))
@settings(max_examples=150)
def test_a_mutated_envelope_carries_the_body_that_was_signed_or_is_refused(data: bytes) -> None:
    """Bytes of the envelope that are others change who counts, never what is accepted."""
    verification = verify(data, 1)
    if verification.refused_at is None:
        assert b64decode(json.loads(data)["manifest"]) == BODY


@given(st.binary(max_size=200) | st.recursive(VALUES, lambda v: st.lists(v) | st.dictionaries(st.text(), v)).map(
    lambda value: json.dumps(value).encode()
))  # fmt: skip
@settings(max_examples=100)
def test_no_bytes_raise_and_none_are_accepted(data: bytes) -> None:
    """Arbitrary bytes and arbitrary JSON, as the envelope and as a body that was signed."""
    for verification in (verify(data), verify(signed(data)), verify_manifest(data, [], 0)):
        assert verification.refused_at == "shape"
        assert verification.why.isprintable()


# Depth ----------------------------------------------------------------------------------------------------------------


def with_frames_left(left: int, call: Callable[[], T]) -> T:
    """Call where only so many frames are left to the recursion limit."""

    def down(more: int) -> T:
        return call() if more <= 0 else down(more - 1)

    return down(sys.getrecursionlimit() - len(inspect.stack(0)) - left)


@pytest.mark.parametrize("left", [60, 70, 90, 150, 300, 600])
def test_a_deep_document_does_not_raise_from_a_deep_stack(left: int) -> None:
    """The attack: nesting that the parser survives only where the stack is shallow."""
    for depth in (50, 64, 65, 100, 500, 100_000):
        deep = b"[" * depth + b"]" * depth
        unsigned = b'{"manifest":' + deep + b',"signatures":[]}'
        inside = changed(GOOD, ("x",), "@deep@")
        body = canonical(inside).replace(b'"@deep@"', deep)
        for data in (deep, unsigned, signed(body), signed(deep)):
            assert with_frames_left(left, lambda data=data: verify(data)).refused_at == "shape"  # type: ignore[misc]


@pytest.mark.parametrize("left", [80, 150, 600])
def test_a_good_manifest_is_accepted_from_a_deep_stack(left: int) -> None:
    """What is let through needs little of the stack."""
    data = signed(document(artifacts=[artifact(name=f"file-{index}") for index in range(2000)]))
    assert with_frames_left(left, lambda: verify(data)).refused_at is None
