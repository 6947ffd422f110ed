"""Nothing from outside acts on a terminal: the one sanitiser, by every character that there is (C05, C06)."""

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bcd.core.text import LIMIT, Foreign, clean, raw

ANY_TEXT = st.text(st.characters(), max_size=60) | st.text("\x1b\x07\x9b\u202e\u200b\ud800a\\[]/ \n", max_size=30)

ATTACKS = {
    "escape": ("\x1b[2J", "\\x1b[2J"),
    "clipboard": ("\x1b]52;c;eA==\x07", "\\x1b]52;c;eA==\\x07"),
    "link": ("\x1b]8;;https://evil\x1b\\x", "\\x1b]8;;https://evil\\x1b\\x"),
    "C1 control": ("\x9b2J", "\\x9b2J"),
    "C1 string": ("\x90x\x9c", "\\x90x\\x9c"),
    "nul": ("a\0b", "a\\x00b"),
    "carriage return": ("refused\rwelcome", "refused\\x0dwelcome"),
    "newline": ("a\nb", "a\\x0ab"),
    "tab": ("a\tb", "a\\x09b"),
    "backspace": ("ab\x08", "ab\\x08"),
    "delete": ("\x7f", "\\x7f"),
    "line separator": ("a\u2028b\u2029", "a\\u2028b\\u2029"),
    "next line": ("a\x85b", "a\\x85b"),
    "right-to-left override": ("\u202egnp.exe", "\\u202egnp.exe"),
    "isolate": ("\u2066a\u2069", "\\u2066a\\u2069"),
    "mark": ("\u200fa\u061c", "\\u200fa\\u061c"),
    "zero width": ("1.4\u200b.1\u200d\u2060\ufeff", "1.4\\u200b.1\\u200d\\u2060\\ufeff"),
    "soft hyphen": ("a\u00adb", "a\\xadb"),
    "no-break space": ("a\u00a0b", "a\\xa0b"),
    "wide space": ("a\u3000b", "a\\u3000b"),
    "tags": ("\U000e0041\U000e007f", "\\U000e0041\\U000e007f"),
    "annotation": ("\ufff9a\ufffb", "\\ufff9a\\ufffb"),
    "surrogate": ("\ud800", "\\ud800"),
    "byte that was no UTF-8": (b"\xff".decode("utf-8", "surrogateescape"), "\\udcff"),
    "private use": ("\ue000\U000f0000", "\\ue000\\U000f0000"),
    "no character": ("\uffff\U0010ffff", "\\uffff\\U0010ffff"),
}


@pytest.mark.parametrize(("attack", "shown"), ATTACKS.values(), ids=ATTACKS)
def test_an_attack_on_the_terminal_becomes_visible(attack: str, shown: str) -> None:
    """As an escape that shows what it was; the same through a value that was read."""
    assert clean(attack) == shown
    assert Foreign(attack) == shown
    assert f"{Foreign(attack)}" == shown
    assert raw(Foreign(attack)) == attack


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "[/foo] not welcomed",
        "[b",
        'a [1, "3"]',
        "1.4.1-[x]",
        "\\x1b",
        "na\u00efve \u540d\u524d \U0001f511",
    ],
)
def test_plain_text_stays_as_it_is(text: str) -> None:
    """Brackets, quotes, backslashes and other languages' letters are nobody's attack here (C05)."""
    assert clean(text) == text
    assert Foreign(text) == text


def test_of_all_characters_none_gets_through_that_a_terminal_acts_on() -> None:
    """Every one of 1,114,112: no control, format character, surrogate or separator but the space."""
    forbidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    for start in range(0, 0x110000, 0x1000):
        text = "".join(map(chr, range(start, start + 0x1000)))
        shown = clean(text, len(text))
        assert shown.isprintable()
        assert not {character for character in set(shown) if unicodedata.category(character) in forbidden}
        assert {character for character in set(shown) if character.isspace()} <= {" "}


@given(ANY_TEXT, st.integers(1, 80))
@settings(max_examples=200)
def test_what_is_shown_is_printable_and_bounded(text: str, limit: int) -> None:
    """Whatever comes: no more of it than the limit, each character at most ten wide."""
    shown = clean(text, limit)
    assert shown.isprintable()
    assert "\n" not in shown
    assert len(shown) <= 10 * limit
    if text.isprintable():
        assert len(shown) <= limit
        assert shown == (text if len(text) <= limit else text[: limit - 1] + "\u2026")


@given(ANY_TEXT)
@settings(max_examples=200)
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    """What was cleaned where it was read may pass another sink."""
    assert clean(clean(text)) == clean(text)


def test_ten_kilobytes_do_not_scroll_the_rest_away() -> None:
    """Cut at the limit, and it shows that it was."""
    shown = clean("x" * 10_000)
    assert shown == "x" * (LIMIT - 1) + "\u2026"
    assert clean("x" * LIMIT) == "x" * LIMIT
    assert len(clean("\U000e0041" * 10_000)) < 10 * LIMIT


@given(ANY_TEXT)
@settings(max_examples=200)
def test_a_foreign_text_keeps_what_was_read(text: str) -> None:
    """It prints clean; JSON gets the value, escaped, and gives it back."""
    foreign = Foreign(text)
    assert foreign == clean(text)
    assert foreign.raw == raw(foreign) == text
    assert json.loads(json.dumps(raw(foreign))) == text
    assert json.dumps(raw(foreign)).isascii()


def test_a_foreign_text_is_a_text() -> None:
    """Whatever is done with it is done with the clean form."""
    foreign = Foreign("a\x1bb")
    assert isinstance(foreign, str)
    assert f"{foreign:>8}" == "  a\\x1bb"
    assert ", ".join(iter((foreign, foreign))) == "a\\x1bb, a\\x1bb"
    assert foreign + "" == "a\\x1bb"
    assert "%s" % foreign == "a\\x1bb"  # noqa: UP031  # as logging does
    assert {"a\\x1bb": 1}[foreign] == 1


def test_a_text_of_our_own_is_its_own_raw_value() -> None:
    """For what may be either."""
    assert raw("plain") == "plain"


def test_a_long_foreign_text_is_cut_where_it_is_shown_and_nowhere_else() -> None:
    """JSON has all of it."""
    foreign = Foreign("\x1b" * 10_000)
    assert len(raw(foreign)) == 10_000
    assert len(foreign) < 4 * LIMIT + 4
