"""What a node is told: a section's fields, its two spellings of the signed manifest, and where a download may be from."""

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bcd.core.errors import Refusal
from bcd.core.section import DaemonSection, check_url, named_version, parse_section

SHA256 = "0123456789abcdef" * 4
GOOD = {"version": "1.4.1", "url": "https://releases.example.com/bcd", "sha256": SHA256, "signature": "{}"}


def refusal_of(spec: object) -> Refusal:
    """The section is malformed."""
    with pytest.raises(Refusal) as caught:
        parse_section(spec)
    assert caught.value.code == "bad-section"
    assert caught.value.message.isprintable()
    return caught.value


def test_a_good_section_says_what_it_says() -> None:
    """Field by field, in whatever order they come."""
    section = DaemonSection(version="1.4.1", url="https://releases.example.com/bcd", sha256=SHA256, signature="{}")
    assert parse_section(GOOD) == section
    assert parse_section(dict(reversed(GOOD.items()))) == section


@pytest.mark.parametrize("sha256", [SHA256.upper(), SHA256[:32] + SHA256[32:].upper()])
def test_a_digest_in_upper_case_is_the_same_digest(sha256: str) -> None:
    """Either case, or both; kept in lower case, as manifests have it."""
    assert parse_section({**GOOD, "sha256": sha256}).sha256 == SHA256


@pytest.mark.parametrize("spec", [None, True, 0, "", "{}", [], [GOOD], ["version"], 1.5])
def test_what_is_no_object_is_refused(spec: object) -> None:
    """A list of the fields' names is none either."""
    assert "no object" in refusal_of(spec).message


@pytest.mark.parametrize("field", GOOD)
def test_a_field_that_is_missing_is_named(field: str) -> None:
    """Each of the four is needed."""
    assert f"{field} is missing" in refusal_of({name: value for name, value in GOOD.items() if name != field}).message


@pytest.mark.parametrize("field", GOOD)
@pytest.mark.parametrize("value", [None, True, 1, 1.5, [], {}, ["1.4.1"]], ids=str)
def test_a_field_of_another_type_is_named(field: str, value: object) -> None:
    """Each of the four is text."""
    assert f"{field} is no text" in refusal_of({**GOOD, field: value}).message


@pytest.mark.parametrize("name", ["Version", "sha_256", "", "force", "version ", "sha256\u200b"])
def test_an_unknown_field_is_refused(name: str) -> None:
    """What this node does not know may be what the rest means; it is named, harmlessly."""
    assert "unknown fields" in refusal_of({**GOOD, name: "x"}).message


def test_unknown_fields_are_named_harmlessly() -> None:
    """What would act on a terminal is escaped, and cut (field report C06)."""
    message = refusal_of({**GOOD, "\x1b]52;c;eA==\x07": 1, "a" * 10_000: 1, "\ud800": 1}).message
    assert "\\x1b]52;c;eA==\\x07" in message
    assert len(message) < 1000


@pytest.mark.parametrize(
    "version", ["", "v1.4.1", "1.4", "1.4.1\n", "../1.4.1", "1.4.1/..", "1.4.\u0661", "1" * 65, "1.4.1-\ud800"]
)
def test_a_version_that_is_none_is_refused(version: str) -> None:
    """Before it becomes part of any file's name."""
    assert "no semantic version" in refusal_of({**GOOD, "version": version}).message


@pytest.mark.parametrize(
    "sha256",
    ["", SHA256[:-1], SHA256 + "0", SHA256[:-1] + "g", SHA256[:-1] + "\n", SHA256 + "\n", "0x" + SHA256[2:],
     SHA256[:-1] + "\u0661", SHA256[:-1] + " ", "sha256:" + SHA256[7:], SHA256[:-1] + "\uff41"],
)  # fmt: skip
def test_a_digest_that_is_not_64_hex_digits_is_refused(sha256: str) -> None:
    """No prefix, no other script's digits, nothing at the end."""
    assert "64 hex digits" in refusal_of({**GOOD, "sha256": sha256}).message


# The signed manifest's two spellings ----------------------------------------------------------------------------------


def manifest_of(signature: str) -> bytes:
    """The bytes that a section with this signature is judged by."""
    return parse_section({**GOOD, "signature": signature}).manifest


@pytest.mark.parametrize("text", ['{"a":1}', "{", '{"a": "\u00e9\U0001f511"}\n', "{}" + " " * 10])
def test_a_manifest_comes_as_text_or_as_base64(text: str) -> None:
    """Both spellings are the same bytes."""
    assert manifest_of(text) == manifest_of(b64encode(text.encode()).decode()) == text.encode()


@pytest.mark.parametrize("signature", ["", "?", "e30", "e30=\n", " e30=", "e30==", "e31=", " {}", "\ufeff{}", "\ud800"])
def test_a_signature_that_is_neither_gives_no_bytes(signature: str) -> None:
    """Only strict base64; the manifest's own check then refuses it as shapeless."""
    assert manifest_of(signature) == b""


def test_a_lone_surrogate_in_a_manifest_is_no_error() -> None:
    """JSON can carry one; what it becomes is no UTF-8, which the manifest's check refuses."""
    with pytest.raises(UnicodeDecodeError):
        manifest_of('{"\ud800"').decode()


@given(st.text(max_size=20) | st.text("e30= {\n", max_size=8))
@settings(max_examples=100)
def test_no_signature_ends_in_an_error(signature: str) -> None:
    """Whatever text there is, there are bytes."""
    assert isinstance(manifest_of(signature), bytes)


@pytest.mark.parametrize(
    ("spec", "version"),
    [
        (GOOD, "1.4.1"),
        ({"version": "x"}, "x"),
        ({}, None),
        ({"version": 1}, None),
        (None, None),
        ([], None),
        ("version", None),
    ],
)
def test_the_version_that_a_section_names_is_known_before_it_is_checked(spec: object, version: str | None) -> None:
    """For telling that it runs already, and for the history; well formed or not."""
    assert named_version(spec) == version


# Where from -----------------------------------------------------------------------------------------------------------

GOOD_URLS = [
    "https://releases.example.com/bcd/1.4.1/bcd-linux-amd64",
    "https://releases.example.com",
    "https://releases.example.com:8443/bcd?token=a%40b#part",
    "https://192.0.2.7/bcd",
    "https://[2001:db8::7]:8443/bcd",
    "https://xn--bcher-kva.example/bcd",
    "HTTPS://Releases.Example.com/bcd",
    "https://releases.example.com/a@b",
    "https://releases.example.com/?next=http://x@y/",
]

BAD_URLS = {
    "empty": "",
    "path": "/bcd",
    "relative": "bcd",
    "host alone": "releases.example.com/bcd",
    "no scheme": "//releases.example.com/bcd",
    "no host": "https:///bcd",
    "no slashes": "https:releases.example.com/bcd",
    "one slash": "https:/releases.example.com/bcd",
    "scheme alone": "https://",
    "port alone": "https://:443/bcd",
    "query alone": "https://?bcd",
    "ftp": "ftp://releases.example.com/bcd",
    "file": "file:///etc/shadow",
    "data": "data:text/plain,bcd",
    "wss": "wss://releases.example.com/bcd",
    "httpsx": "httpsx://releases.example.com/bcd",
    "user": "https://me@releases.example.com/bcd",
    "user and password": "https://me:word@releases.example.com/bcd",
    "empty user": "https://@releases.example.com/bcd",
    "user that looks like a host": "https://releases.example.com@evil.example/bcd",
    "backslash before the user": "https://releases.example.com\\@evil.example/bcd",
    "backslash after the host": "https://releases.example.com\\evil/bcd",
    "backslashes for slashes": "https:\\\\releases.example.com/bcd",
    "space": "https://releases.example.com/b cd",
    "space before": " https://releases.example.com/bcd",
    "newline": "https://releases.example.com/bcd\n",
    "newline inside": "https://releases.exa\nmple.com/bcd",
    "tab in the scheme": "ht\ttps://releases.example.com/bcd",
    "carriage return": "https://releases.example.com/bcd\r\nHost: x",
    "nul": "https://releases.example.com/\0",
    "escape": "https://releases.example.com/\x1b[2J",
    "letter that is no ASCII": "https://b\u00fccher.example/bcd",
    "host in another script": "https://rele\u0430ses.example.com/bcd",
    "lone surrogate": "https://releases.example.com/\ud800",
    "port too large": "https://releases.example.com:65536/bcd",
    "port no number": "https://releases.example.com:https/bcd",
    "port negative": "https://releases.example.com:-1/bcd",
    "bracket open": "https://[2001:db8::7/bcd",
    "bracket with a name": "https://[releases.example.com]/bcd",
}


@pytest.mark.parametrize("url", GOOD_URLS)
def test_an_absolute_https_url_is_let_through(url: str) -> None:
    """With or without port, query and fragment; an @ past the host is no user."""
    check_url(url, clear_text=False)
    check_url(url, clear_text=True)


@pytest.mark.parametrize("url", BAD_URLS.values(), ids=BAD_URLS)
def test_any_other_url_is_refused(url: str) -> None:
    """Where clear text is let through, too; and the refusal repeats nothing of it, which may hold a password."""
    for clear_text in (False, True):
        with pytest.raises(Refusal) as caught:
            check_url(url, clear_text=clear_text)
        assert caught.value.code == "bad-url"
        assert caught.value.message.isprintable()
        assert "word" not in caught.value.message


def test_clear_text_is_let_through_only_where_it_may_be() -> None:
    """http is for development; and there it needs a host, too."""
    check_url("http://127.0.0.1:8080/bcd", clear_text=True)
    for url, clear_text in (("http://127.0.0.1:8080/bcd", False), ("http:///bcd", True), ("http://me@h/bcd", True)):
        with pytest.raises(Refusal) as caught:
            check_url(url, clear_text=clear_text)
        assert caught.value.code == "bad-url"


@given(st.text("https:/@[]?#.%\\ \n\u00e9x0", max_size=24).map(lambda rest: "https://" + rest) | st.text(max_size=30))
@settings(max_examples=150)
def test_no_url_ends_in_another_error(url: str) -> None:
    """It may be fetched, or it is refused as `bad-url`."""
    code = None
    try:
        check_url(url, clear_text=False)
    except Refusal as refusal:
        code = refusal.code
    assert code in {None, "bad-url"}
    if code is None:
        assert url.lower().startswith("https://")
        assert "@" not in url.removeprefix("https://").partition("/")[0].partition("?")[0].partition("#")[0]


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(GOOD)) | st.text(max_size=5), inner)
    ),
    max_leaves=8,
)


@given(JSON | st.fixed_dictionaries({name: st.text(max_size=8) | st.just(value) for name, value in GOOD.items()}))
@settings(max_examples=150)
def test_no_section_ends_in_another_error(spec: object) -> None:
    """It is a section of four texts, or it is refused as `bad-section`."""
    named_version(spec)
    section, code = None, None
    try:
        section = parse_section(spec)
    except Refusal as refusal:
        code = refusal.code
    assert code in {None, "bad-section"}
    if section is not None:
        assert isinstance(spec, dict)
        assert {name: getattr(section, name) for name in GOOD} == {**spec, "sha256": spec["sha256"].lower()}
