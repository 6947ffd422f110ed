"""Numbers as people say them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.tui.words import age, digest, size


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0 seconds"),
        (0.9, "0 seconds"),
        (1, "1 second"),
        (59.9, "59 seconds"),
        (60, "1 minute"),
        (3599, "59 minutes"),
        (3600, "1 hour"),
        (86_399, "23 hours"),
        (86_400, "1 day"),
        (12.5 * 86_400, "12 days"),
    ],
)
def test_age(seconds: float, said: str) -> None:
    assert age(seconds) == said


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 B"), (26, "26 B"), (1024, "1.0 KiB"), (2**20, "1.0 MiB"), (34_183_577, "32.6 MiB")]
)
def test_size(count: float, said: str) -> None:
    assert size(count) == said


def test_digest() -> None:
    assert digest("3f9c" * 16) == "3f9c 3f9c…"
    assert digest("") == " …"


@given(st.floats(min_value=-1e15, max_value=1e15))
def test_an_age_is_one_number_and_one_unit(seconds: float) -> None:
    number, unit = age(seconds).split()
    assert int(number) >= 0
    assert unit.endswith("s") is (number != "1")
