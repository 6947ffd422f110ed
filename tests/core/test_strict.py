"""JSON and base64 in one spelling a value; whatever else comes ends in a ValueError and in nothing else."""

import json
import time
from base64 import b64decode, b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bcd.core.strict import DEPTH_LIMIT, MAX_INTEGER, check_tree, decode_base64, parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, MAX_INTEGER) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


# base64 --------------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=200))
def test_what_was_encoded_is_decoded(data: bytes) -> None:
    """Every value has its standard spelling, and that one is read."""
    assert decode_base64(b64encode(data).decode()) == data


@given(st.text("AQgw+/=-_ \nz9", max_size=12) | st.text(max_size=8))
def test_base64_has_one_spelling_a_value(text: str) -> None:
    """Whatever is read at all is what encoding gives again."""
    try:
        data = decode_base64(text)
    except ValueError:
        return
    assert b64encode(data).decode() == text


@pytest.mark.parametrize(
    "text",
    [
        "YQ",
        "YQ=",
        "YQ===",
        "YQ==YQ==",
        "=YQ=",
        "YR==",
        "YWJ=",
        "Y",
        "YQ==\n",
        " YQ==",
        "Y\nQ==",
        "-_-_",
        "YQ==\0",
        "ÿQ==",
    ],
)
def test_another_spelling_of_base64_is_refused(text: str) -> None:
    """Padding left out or wrong, stray bits, white space, the URL alphabet, a letter that is no ASCII."""
    with pytest.raises(ValueError, match="not base64"):
        decode_base64(text)


# JSON ----------------------------------------------------------------------------------------------------------------


@given(VALUES)
@settings(max_examples=40)
def test_a_value_survives_its_text(value: object) -> None:
    """Both ways: with escapes and without, with space and without."""
    assert parse_json(json.dumps(value).encode()) == value
    assert parse_json(json.dumps(value, ensure_ascii=False, indent=1).encode()) == value


@given(st.binary(max_size=60) | st.text('{}[]",:0123456789.eE+-truefalsn\\u \n', max_size=40).map(str.encode))
@settings(max_examples=300)
def test_no_bytes_end_in_another_error(data: bytes) -> None:
    """It is read as another reader reads it, or it is a ValueError."""
    try:
        value = parse_json(data)
    except ValueError:
        return
    assert value == json.loads(data)


REFUSED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not JSON"),
    "bytes past the value": (b"{}{}", "not JSON"),
    "nul past the value": (b"1\0", "not JSON"),
    "byte order mark": (b"\xef\xbb\xbf1", "not JSON"),
    "utf-16": ("[1]".encode("utf-16-le"), "not JSON"),
    "latin-1": (b'"\xe9"', "not UTF-8"),
    "overlong": (b'"\xc0\xaf"', "not UTF-8"),
    "raw surrogate": (b'"\xed\xa0\x80"', "not UTF-8"),
    "lone surrogate": (b'"\\ud800"', "surrogate"),
    "lone low surrogate": (b'["\\udc00"]', "surrogate"),
    "halves in the wrong order": (b'"\\udc00\\ud800"', "surrogate"),
    "surrogate in a key": (b'{"a":{"\\ud800":1}}', "surrogate"),
    "key twice": (b'{"a":1,"a":1}', "twice"),
    "key twice by an escape": (b'{"a":1,"\\u0061":2}', "twice"),
    "key twice deep inside": (b'[[{"b":{"a":1,"c":2,"a":3}}]]', "twice"),
    "minus": (b"-1", "number"),
    "minus zero": (b"-0", "number"),
    "point": (b"1.0", "number"),
    "exponent": (b"1e1", "number"),
    "large exponent": (b"1E400", "number"),
    "plus": (b"+1", "not JSON"),
    "leading zero": (b"01", "not JSON"),
    "hexadecimal": (b"0x1", "not JSON"),
    "digits of another script": ("\u0661".encode(), "not JSON"),
    "NaN": (b"NaN", "number"),
    "Infinity": (b"[Infinity]", "number"),
    "minus Infinity": (b'{"a":-Infinity}', "number"),
    "17 digits": (b"1" + b"0" * 16, "number"),
    "single quotes": (b"{'a':1}", "not JSON"),
    "comment": (b"1//", "not JSON"),
    "comma at the end": (b"[1,]", "not JSON"),
    "control character": (b'"\x01"', "not JSON"),
}


@pytest.mark.parametrize(("data", "words"), REFUSED.values(), ids=REFUSED)
def test_what_two_readers_could_read_differently_is_refused(data: bytes, words: str) -> None:
    """With a few words on why."""
    with pytest.raises(ValueError, match=words):
        parse_json(data)


@pytest.mark.parametrize("value", [0, 1, MAX_INTEGER, True, False, None, "", "\U0001f511 é", {"": {}}, [[]]])
def test_what_has_one_reading_is_read(value: object) -> None:
    """And keeps its type: true is no 1."""
    read = parse_json(json.dumps(value).encode())
    assert (read, type(read)) == (value, type(value))


def test_a_pair_of_surrogates_is_one_character() -> None:
    """The escape of a character past U+FFFF is well formed."""
    assert parse_json(b'"\\ud83d\\ude00"') == "\U0001f600"


def test_five_thousand_digits_cost_nothing() -> None:
    """A megabyte of digits is refused by its length, before anyone computes with it."""
    started = time.process_time()
    with pytest.raises(ValueError, match="number"):
        parse_json(b"1" * 1_000_000)
    assert time.process_time() - started < 0.5


# depth ---------------------------------------------------------------------------------------------------------------


def nested(depth: int, innermost: bytes, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    """A value inside so many containers."""
    return opening * depth + innermost + closing * depth


@pytest.mark.parametrize("innermost", [b"", b"1", b'"x"'], ids=["empty", "number", "text"])
def test_depth_64_is_read_and_65_is_not(innermost: bytes) -> None:
    """Whether or not the innermost container holds something."""
    parse_json(nested(DEPTH_LIMIT, innermost))
    with pytest.raises(ValueError, match="nested deeper than 64"):
        parse_json(nested(DEPTH_LIMIT + 1, innermost))


@pytest.mark.parametrize("depth", [66, 200, 900, 5_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["lists", "objects"])
def test_any_depth_past_64_is_refused(depth: int, opening: bytes, closing: bytes) -> None:
    """Also where the parser itself gives up, and where the document is cut off inside."""
    for data in (nested(depth, b"0", opening, closing), opening * depth):
        with pytest.raises(ValueError, match=r"nested|not JSON"):
            parse_json(data)


def test_a_wide_tree_is_no_deep_one() -> None:
    """The limit is on depth alone."""
    wide: list[Any] = [{"a": [index]} for index in range(10_000)]
    assert parse_json(json.dumps(wide).encode()) == wide


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, [[{"a": ["ok", "a\ud800"]}]]])
def test_a_tree_with_a_lone_surrogate_is_refused(value: object) -> None:
    """As a value or as a key, at any depth: whoever encodes it would end in another error."""
    with pytest.raises(ValueError, match="surrogate"):
        check_tree(value)


def test_a_lone_surrogate_at_the_last_depth_is_refused() -> None:
    """Nothing that is let through escapes the check."""
    value: object = "\ud800"
    for _ in range(DEPTH_LIMIT):
        value = [value]
    with pytest.raises(ValueError, match="surrogate"):
        check_tree(value)


@given(VALUES)
@settings(max_examples=40)
def test_a_plain_tree_passes(value: object) -> None:
    """What can be encoded, and is shallow, is let through."""
    check_tree(value)


def test_base64_of_another_implementation_is_read() -> None:
    """A padded text of each remainder, as RFC 4648 section 10 gives them."""
    for text in ("", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"):
        assert (
            decode_base64(text) == b64decode(text, validate=True) == b"foobar"[: len(text) * 3 // 4 - text.count("=")]
        )


@pytest.mark.parametrize(
    "value", [[[]] * 20, {str(n): n for n in range(20)}, [list(range(10)), {"a": list(range(10))}]]
)
def test_a_tree_of_too_many_values_is_refused_before_it_is_walked(value: object) -> None:
    """However they are spread; the limit itself is well."""
    with pytest.raises(ValueError, match="more than 19 values"):
        check_tree(value, values_limit=19)
    check_tree(value, values_limit=24)
    check_tree(value)
