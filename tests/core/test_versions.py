"""What a version is: Semantic Versioning 2.0.0 in ASCII, 64 characters at most, and safe in a file name."""

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bcd.core.versions import VERSION_LIMIT, is_version

GOOD = """
0.0.0 0.0.4 1.2.3 10.20.30 1.0.0 2.0.0 1.1.7 1.10.0 1.9.0 99999999999999999999.0.0
1.1.2-prerelease+meta 1.1.2+meta 1.1.2+meta-valid 1.0.0-alpha 1.0.0-beta 1.0.0-alpha.beta 1.0.0-alpha.beta.1
1.0.0-alpha.1 1.0.0-alpha0.valid 1.0.0-alpha.0valid 1.0.0-rc.1+build.1 2.0.0-rc.1+build.123 1.2.3-beta
10.2.3-DEV-SNAPSHOT 1.2.3-SNAPSHOT-123 2.0.0+build.1848 2.0.1-alpha.1227 1.0.0-alpha+beta 1.2.3----RC-SNAPSHOT.12.9.1--.12
1.2.3----R-S.12.9.1--.12+meta 1.0.0+0.build.1-rc.10000aaa-kk-0.1 1.0.0-0A.is.legal 1.4.0-rc.10 1.4.0-rc.2 1.4.0+001
1.0.0-0 1.0.0-- 1.0.0-0-0 1.0.0-00a 1.0.0+-
"""
"""From semver.org's own list, and the field's (report 31)."""

BAD = """
1 1.2 1.2.3.4 v1.4.0 V1.4.0 =1.4.0 01.1.1 1.01.1 1.1.01 00.0.0 -1.0.0 +1.0.0 1.-0.0 1.2.3- 1.2.3+ 1.2.3-+ 1.2.3-+b
1.2.3-0123 1.2.3-0123.0123 1.1.2+.123 +invalid -invalid alpha alpha.beta alpha+beta 1.0.0-alpha_beta 1.0.0-alpha..
1.0.0-alpha..1 1.0.0-.a 1.0.0-a. 1.2.3.DEV 1.2-SNAPSHOT 1.2.31.2.3----RC 1.2-RC-SNAPSHOT -1.0.3-gamma+b7718 +justmeta
1.0.0+a_b 1.0.0-a_b 9.8.7+meta+meta 9.8.7-whatever+meta+meta 1.0.0-a+b..c 1.0.0-00 1.0.0-a.01 1..0 .1.0 1.0. 1,0,0 1.0.0/x ../1.0.0
1.0.0-../../x 1.0.0-a/b 1.0.0\\x 1.0.0:x 1.0.0* latest
"""


@pytest.mark.parametrize("text", GOOD.split())
def test_a_semantic_version_is_one(text: str) -> None:
    """Each that semver.org lists as well formed."""
    assert is_version(text)


@pytest.mark.parametrize("text", BAD.split())
def test_a_malformed_version_is_none(text: str) -> None:
    """Each that semver.org lists as malformed, a leading v, and whatever would leave a directory."""
    assert not is_version(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1.4.0\n",
        "\n1.4.0",
        "1.4.0 ",
        " 1.4.0",
        "1.4.0\0",
        "1.4.0-rc\n",
        "1.4.0\r",
        "1.4.0\x1b[2J",
        "1.4.0-rc\u202e",
        "\u0661.4.0",
        "1.4.\u00b2",
        "1.4.0-\u00e9",
        "1.4.0-rc.\u0661",
        "\uff11.4.0",
        "1.4.0\ud800",
        "1.4.0-\u212a",
        "1.4.0+\u00e9",
        "1.4.0+\u0661",
        "1.4.0+a\u0661",
        "1.4.0+a\n",
    ],
)
def test_a_character_that_is_no_ascii_or_cannot_be_seen_is_refused(text: str) -> None:
    """A newline at the end, digits of other scripts, letters that fold to ASCII ones."""
    assert not is_version(text)


def test_64_characters_are_the_most() -> None:
    """The limit itself is let through."""
    longest = "1.4.0-" + "a" * (VERSION_LIMIT - 6)
    assert len(longest) == 64
    assert is_version(longest)
    assert not is_version(longest + "a")


NUMBER = st.integers(0, 10**12).map(str)
WORD = st.text("0123456789abcXYZ-", min_size=1, max_size=6)


def looks_like_a_version(text: str) -> bool:
    """The same rules, written by splitting instead of by one pattern."""

    def is_number(part: str) -> bool:
        return part != "" and set(part) <= set("0123456789") and (part == "0" or part[0] != "0")

    def is_word(part: str) -> bool:
        return re.fullmatch("[0-9A-Za-z-]+", part, re.ASCII) is not None

    rest, plus, build = text.partition("+")
    core, dash, pre = rest.partition("-")
    numbers = core.split(".")
    words = pre.split(".") if dash else []
    return (
        len(text) <= 64
        and len(numbers) == 3
        and all(is_number(part) for part in numbers)
        and all(is_word(part) and (is_number(part) or not part.isdigit()) for part in words)
        and (not plus or all(is_word(part) for part in build.split(".")))
    )


@given(
    st.builds(
        lambda numbers, pre, build: ".".join(numbers) + "".join(f"-{p}" for p in pre) + "".join(f"+{b}" for b in build),
        st.lists(NUMBER | WORD, min_size=2, max_size=4),
        st.lists(st.lists(WORD, min_size=1, max_size=3).map(".".join), max_size=1),
        st.lists(st.lists(WORD, min_size=1, max_size=3).map(".".join), max_size=2),
    )
    | st.text("0123456789.-+arcV \n", max_size=20)
    | st.text(max_size=10)
)
@example("1.4.0-rc.1+build.5")
@settings(max_examples=150)
def test_a_version_is_what_the_rules_read_by_hand_say(text: str) -> None:
    """Two readings of one grammar agree; what passes has nothing that a path or a terminal acts on."""
    assert is_version(text) == looks_like_a_version(text)
    if is_version(text):
        assert set(text) <= set("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-")


def test_a_megabyte_costs_nothing() -> None:
    """The length is looked at before the pattern is."""
    started = time.process_time()
    assert not is_version("1.0.0-" + "a-" * 500_000 + "\n")
    assert not is_version("0" * 1_000_000)
    assert time.process_time() - started < 0.2
