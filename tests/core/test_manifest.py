"""The shape of a release manifest: every field's rule at its bounds, and no input that ends in another error."""

import copy
import json
from base64 import b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from bcd.core.manifest import ENVELOPE_LIMIT_BYTES, Envelope, ShapeError, Signature, parse_envelope
from tests.core.manifests import (
    NOW,
    SHA256,
    Document,
    Path,
    artifact,
    at,
    canonical,
    changed,
    document,
    envelope,
    key_entry,
    keys,
    paths,
    signed,
)

GOOD = document()
PATHS = paths(GOOD)


def parse(body: bytes | Document) -> Envelope:
    """Read a body in an envelope that nobody signed."""
    return parse_envelope(envelope(canonical(body) if isinstance(body, dict) else body, []))


def refused(body: bytes | Document, words: str) -> None:
    """The body has no shape, and these words say why."""
    with pytest.raises(ShapeError, match=words):
        parse(body)


def words_of(path: Path) -> str:
    """A path as people read it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def name_of(path: Path) -> str:
    """The field that a path leads to or into."""
    return [step for step in path if isinstance(step, str)][-1]


# What a good one says -------------------------------------------------------------------------------------------------


def test_a_good_manifest_says_what_its_document_says() -> None:
    """Every field arrives, and the body is kept byte for byte."""
    data = signed(GOOD)
    read = parse_envelope(data)
    manifest = read.manifest
    assert read.body == canonical(GOOD)
    assert read.document == GOOD
    assert [(one.kid, one.sig) for one in read.signatures] == [
        (one["kid"], one["sig"]) for one in json.loads(data)["signatures"]
    ]
    assert (manifest.product, manifest.version, manifest.sequence) == ("bcd", "1.4.1", 15)
    assert (manifest.issued_at, manifest.expires_at) == (NOW - 86_400, NOW + 86_400)
    assert [(key.kid, key.spki) for key in manifest.keys] == [(key.kid, key.spki) for key in keys()]
    assert [key.public_key for key in manifest.keys] == [key.private.public_key() for key in keys()]
    (file,) = manifest.artifacts
    assert (file.name, file.platform, file.sha256, file.size) == ("bcd-linux-amd64", "linux-amd64", SHA256, 1000)


def test_signatures_are_kept_as_they_came() -> None:
    """Their worth is not a matter of shape."""
    read = parse_envelope(envelope(canonical(GOOD), [{"kid": "", "sig": "?"}, {"sig": "", "kid": "\U0001f511"}]))
    assert read.signatures == (Signature(kid="", sig="?"), Signature(kid="\U0001f511", sig=""))


# Fields, one by one ---------------------------------------------------------------------------------------------------

WRONG: list[object] = [None, True, False, 0, "x", "", [], {}, [None], [[]]]


def is_its_own(path: Path, new: object) -> bool:
    """Whether a value is of the field's own type, and not just empty."""
    return type(new) is type(at(GOOD, path)) and bool(new or new == 0)


@pytest.mark.parametrize("path", PATHS, ids=words_of)
def test_a_field_of_another_type_is_refused(path: Path) -> None:
    """Whatever stands in a field's place, down to true for 1; the refusal names the field."""
    for new in WRONG:
        if not is_its_own(path, new):
            refused(changed(GOOD, path, new), name_of(path))


OBJECTS: list[Path] = [(), *(path for path in PATHS if isinstance(at(GOOD, path), dict))]
FIELDS = [(path, name) for path in OBJECTS for name in at(GOOD, path)]


def field_id(value: object) -> str:
    """A readable test id."""
    return words_of(value) or "body" if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize(("path", "name"), FIELDS, ids=field_id)
def test_a_field_that_is_missing_or_spelled_otherwise_is_refused(path: Path, name: str) -> None:
    """`Version` is another field than `version`, and a look-alike is too."""
    for spelled in (None, name.capitalize(), name.upper(), name + " ", name.replace("i", "\u0131"), name[:-1]):
        if spelled == name:
            continue
        made = copy.deepcopy(GOOD)
        inside = at(made, path)
        value = inside.pop(name)
        if spelled is not None:
            inside[spelled] = value
        refused(made, "has not exactly the fields")


@pytest.mark.parametrize("path", OBJECTS, ids=field_id)
@pytest.mark.parametrize("name", ["extra", "Version", "", "__proto__", "kid\u200b"])
def test_a_field_too_many_is_refused(path: Path, name: str) -> None:
    """Nothing may be carried along that this reader would not look at."""
    made = copy.deepcopy(GOOD)
    at(made, path)[name] = None
    refused(made, "has not exactly the fields")


@pytest.mark.parametrize(("path", "name"), FIELDS, ids=field_id)
def test_a_field_that_stands_twice_is_refused(path: Path, name: str) -> None:
    """First or last, same value or another: two readers would take two."""
    for value in (at(GOOD, (*path, name)), 7):
        made = copy.deepcopy(GOOD)
        at(made, path)["@twice@"] = value
        refused(canonical(made).replace(b'"@twice@"', json.dumps(name).encode()), "twice")


BOUNDS: list[tuple[Path, list[object], list[object]]] = [
    (("type",), [], ["bettercompute.release2", "Bettercompute.release", "bettercompute.release\n"]),
    (("spec",), [1], [0, 2]),
    (("product",), ["b", "b" * 64, "a-9"], ["b" * 65, "B", "9b", "-b", "b_", "b.c", "b\n", "b\0", "\u0430bcd"]),
    (("version",), ["0.0.0", "1.4.0-" + "a" * 58], ["1.4.0-" + "a" * 59, "v1.4.0", "1.4", "1.4.0\n", "1.4.\u0661"]),
    (("sequence",), [1, 2**53 - 1], [0, 2**53, 9_999_999_999_999_999]),
    (("issuedAt",), [0, NOW + 86_399], [NOW + 86_400, NOW + 86_401, 2**53]),
    (("expiresAt",), [NOW - 86_399, 2**53 - 1], [NOW - 86_400, 0, 2**53]),
    (("keys", 0, "kid"), ["A", "z" * 64, "._-09"], ["z" * 65, "a b", "a/b", "\u00e4", "one\n", "two"]),
    (("keys", 0, "alg"), ["ES256"], ["none", "es256", "ES256 ", "ES384", "HS256"]),
    (("artifacts", 0, "name"), ["b", "b" * 128, "0", "b..x", "B+_-."], ["b" * 129, ".b", "-b", "../b", "a/b", "a b", "b\0", "b\n"]),
    (
        ("artifacts", 0, "platform"),
        ["a-b", "a" * 32 + "-" + "b" * 32, "0-0"],
        ["a" * 33 + "-b", "a-" + "b" * 33, "linux", "linux-", "-amd64", "Linux-amd64", "linux-amd64-v2", "linux-amd64\n"],
    ),
    (("artifacts", 0, "sha256"), ["0" * 64], ["AB" * 32, "ab" * 31, "ab" * 32 + "a", "ag" * 32, "ab" * 31 + "a\n", "0x" + "a" * 62]),
    (("artifacts", 0, "size"), [1, 2**53 - 1], [0, 2**53]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "value"),
    [pytest.param(path, value, id=f"{words_of(path)}-{value!a:.20}") for path, good, _ in BOUNDS for value in good],
)
def test_a_field_at_its_bound_is_read(path: Path, value: object) -> None:
    """The rule's last good value on either side."""
    assert at(parse(changed(GOOD, path, value)).document, path) == value


@pytest.mark.parametrize(
    ("path", "value"),
    [pytest.param(path, value, id=f"{words_of(path)}-{value!a:.20}") for path, _, bad in BOUNDS for value in bad],
)
def test_a_field_past_its_bound_is_refused(path: Path, value: object) -> None:
    """The rule's first bad values, and the tricks: a newline at the end, another script's letters."""
    refused(changed(GOOD, path, value), name_of(path))


NUMBERS = [
    "1.0",
    "1e0",
    "1E0",
    "10e-1",
    "-1",
    "-0",
    "+1",
    "01",
    "0x1",
    "1_0",
    '"1"',
    "NaN",
    "Infinity",
    "\u0661",
    "true",
    "1" * 17,
    "1" * 5000,
]
INTEGERS: list[Path] = [path for path in PATHS if type(at(GOOD, path)) is int]


@pytest.mark.parametrize("path", INTEGERS, ids=words_of)
def test_a_number_that_is_not_digits_alone_is_refused(path: Path) -> None:
    """One spelling a value, for every integer of the body."""
    text = canonical(changed(GOOD, path, "@number@")).decode()
    for number in NUMBERS:
        refused(text.replace('"@number@"', number).encode(), rf"number|not JSON|{name_of(path)}")


def test_keys_are_1_to_16() -> None:
    """Sixteen are read; none, and a seventeenth, are refused."""
    many = [key_entry(keys()[0], "k0")]
    for index in range(1, 17):
        public = ec.derive_private_key(index + 1, ec.SECP256R1()).public_key()
        spki = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        many.append({"kid": f"k{index}", "alg": "ES256", "spki": b64encode(spki).decode()})
    assert len(parse(document(keys=many[:16])).manifest.keys) == 16
    refused(document(keys=many), "keys are not 1 to 16")
    refused(document(keys=[]), "keys are not 1 to 16")


def test_a_kid_or_a_key_that_stands_twice_is_refused() -> None:
    """The attack: one signer under two names counts twice (field report 30)."""
    one, two, _ = keys()
    refused(document(keys=[key_entry(one), key_entry(two, one.kid)]), "name a kid twice")
    refused(document(keys=[key_entry(one), key_entry(one, "another")]), "name one key twice")


def spki_bytes(spki: bytes) -> Document:
    """A document whose first key is these bytes."""
    return changed(GOOD, ("keys", 0, "spki"), b64encode(spki).decode())


def test_a_key_in_another_form_is_refused() -> None:
    """One spelling a key: 91 bytes of DER, uncompressed, P-256, on the curve."""
    private, spki = keys()[0].private, keys()[0].spki
    compressed = private.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    other_curve = ec.derive_private_key(7, ec.SECP256K1()).public_key()
    larger = ec.derive_private_key(7, ec.SECP384R1()).public_key()
    forms = {
        "empty": b"",
        "a byte more": spki + b"\0",
        "a byte less": spki[:-1],
        "a byte before": b"\0" + spki[:-1],
        "another curve of the size": other_curve.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        "another curve": larger.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        "point alone": spki[26:],
        "compressed": spki[:26] + compressed,
        "hybrid": spki[:26] + bytes([6 | spki[-1] & 1]) + spki[27:],
        "off the curve": spki[:-1] + bytes([spki[-1] ^ 1]),
        "at infinity": spki[:27] + b"\0" * 64,
        "x of the field's size": spki[:27] + b"\xff" * 32 + spki[59:],
        "long length": spki[:1] + b"\x81" + spki[1:-1],
    }
    for data in forms.values():
        refused(spki_bytes(data), "spki")
    assert parse(spki_bytes(spki)).manifest.keys[0].spki == spki


@pytest.mark.parametrize("index", range(27))
def test_a_key_with_another_byte_before_its_point_is_refused(index: int) -> None:
    """Another algorithm or curve over the same point, another length, another form."""
    spki = bytearray(keys()[0].spki)
    spki[index] ^= 1
    refused(spki_bytes(bytes(spki)), "spki")


def test_artifacts_are_told_apart_by_name() -> None:
    """Two files may be for one platform, or have one digest; two may not have one name."""
    two = parse(document(artifacts=[artifact(), artifact(name="another")])).manifest.artifacts
    assert [file.name for file in two] == ["bcd-linux-amd64", "another"]
    refused(document(artifacts=[artifact(), artifact(platform="linux-arm64")]), "name a file twice")


# The envelope ---------------------------------------------------------------------------------------------------------

BODY = b64encode(canonical(GOOD)).decode()
ENVELOPES: dict[str, object] = {
    "list": [],
    "text": "x",
    "null": None,
    "empty": {},
    "no signatures": {"manifest": BODY},
    "no manifest": {"signatures": []},
    "extra": {"manifest": BODY, "signatures": [], "extra": 1},
    "capital": {"Manifest": BODY, "signatures": []},
    "manifest an object": {"manifest": GOOD, "signatures": []},
    "manifest null": {"manifest": None, "signatures": []},
    "manifest not base64": {"manifest": "?", "signatures": []},
    "manifest unpadded": {"manifest": BODY.rstrip("=") + ("" if BODY.endswith("=") else "="), "signatures": []},
    "manifest with a newline": {"manifest": BODY[:76] + "\n" + BODY[76:], "signatures": []},
    "manifest for URLs": {"manifest": b64encode(b"\xfb\xff").decode().replace("+", "-"), "signatures": []},
    "manifest empty": {"manifest": "", "signatures": []},
    "signatures an object": {"manifest": BODY, "signatures": {}},
    "signatures null": {"manifest": BODY, "signatures": None},
    "signature a text": {"manifest": BODY, "signatures": ["x"]},
    "signature null": {"manifest": BODY, "signatures": [None]},
    "signature without sig": {"manifest": BODY, "signatures": [{"kid": "one"}]},
    "signature with extra": {"manifest": BODY, "signatures": [{"kid": "one", "sig": "", "alg": "ES256"}]},
    "kid a number": {"manifest": BODY, "signatures": [{"kid": 1, "sig": ""}]},
    "sig null": {"manifest": BODY, "signatures": [{"kid": "one", "sig": None}]},
    "bad after sixteen": {"manifest": BODY, "signatures": [*[{"kid": "one", "sig": ""}] * 16, None]},
    "lone surrogate in a kid": {"manifest": BODY, "signatures": [{"kid": "\ud800", "sig": ""}]},
}  # fmt: skip


@pytest.mark.parametrize("value", ENVELOPES.values(), ids=ENVELOPES)
def test_a_malformed_envelope_is_refused(value: object) -> None:
    """Exactly two fields, each of its type, in strict base64."""
    with pytest.raises(ShapeError):
        parse_envelope(json.dumps(value).encode())


def test_a_field_of_the_envelope_that_stands_twice_is_refused() -> None:
    """In the envelope as in the body."""
    data = envelope(canonical(GOOD), [{"kid": "one", "sig": ""}])
    for name in (b'"manifest"', b'"signatures"', b'"kid"', b'"sig"'):
        twice = data.replace(name, name + b":null," + name, 1)
        with pytest.raises(ShapeError, match="twice"):
            parse_envelope(twice)


def test_white_space_around_the_envelopes_values_is_free() -> None:
    """It is not what is signed."""
    data = signed(GOOD)
    spaced = json.dumps(json.loads(data), indent=3).encode()
    assert parse_envelope(b" \r\n\t" + spaced + b"\n") == parse_envelope(data)


def test_a_mebibyte_is_the_most() -> None:
    """The limit itself is read; a byte more is refused before it is parsed."""
    data = signed(GOOD)
    longest = data + b" " * (ENVELOPE_LIMIT_BYTES - len(data))
    assert len(longest) == 1_048_576
    assert parse_envelope(longest).body == canonical(GOOD)
    with pytest.raises(ShapeError, match="larger than 1048576 bytes"):
        parse_envelope(longest + b" ")


@pytest.mark.parametrize("depth", [65, 900, 100_000])
def test_a_deep_document_is_refused(depth: int) -> None:
    """In the envelope, in an unknown field and in the body."""
    deep = b"[" * depth + b"]" * depth
    refused(deep, "nested")
    refused(canonical(GOOD)[:-1] + b',"x":' + deep + b"}", "nested")
    with pytest.raises(ShapeError, match="nested"):
        parse_envelope(deep)


# Whatever comes -------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["manifest", "signatures", "kid", "sig", "keys", "type"]) | st.text(), inner)
    ),
    max_leaves=12,
)


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_arbitrary_bytes_are_no_manifest(data: bytes) -> None:
    """As envelope and as body, they end in a ShapeError that can be printed."""
    for call in (parse_envelope, parse):
        with pytest.raises(ShapeError) as caught:
            call(data)
        assert str(caught.value).isprintable()


@given(JSON)
@settings(max_examples=100)
def test_arbitrary_json_is_no_manifest(value: object) -> None:
    """The same for whatever JSON can say."""
    data = json.dumps(value).encode()
    for call in (parse_envelope, parse):
        with pytest.raises(ShapeError) as caught:
            call(data)
        assert str(caught.value).isprintable()
