"""How long the node waits between two tries."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.node.backoff import Backoff


def test_each_failure_doubles_the_delay_up_to_the_most() -> None:
    """1 s, 2 s, 4 s and so on to 300 s, and it stays there."""
    backoff = Backoff(jitter=lambda: 1.0)
    assert [backoff.next() for _ in range(11)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


@given(failures=st.integers(0, 20), jitter=st.floats(0.0, 1.0))
def test_jitter_only_shortens_and_by_half_at_most(failures: int, jitter: float) -> None:
    """No delay is longer than its whole, and none is shorter than half of it."""
    whole, drawn = Backoff(jitter=lambda: 1.0), Backoff(jitter=lambda: jitter)
    for _ in range(failures):
        whole.next()
        drawn.next()
    longest = whole.next()
    assert longest / 2 <= drawn.next() <= longest


def test_two_nodes_that_fail_together_do_not_come_back_together() -> None:
    """Without anything passed in, the delays are drawn by chance."""
    delays = [Backoff().next() for _ in range(20)]
    assert len(set(delays)) == len(delays)


def test_a_delay_may_be_bounded_lower_without_losing_count() -> None:
    """`most` shortens the one delay, and the failures still count for the next."""
    backoff = Backoff(jitter=lambda: 1.0)
    assert [backoff.next(5.0) for _ in range(5)] == [1, 2, 4, 5, 5]
    assert backoff.next() == 32


def test_a_bound_above_the_most_does_not_lift_it() -> None:
    """The most of the backoff itself always holds."""
    backoff = Backoff(first=8.0, most=10.0, jitter=lambda: 1.0)
    assert [backoff.next(1000.0) for _ in range(2)] == [8, 10]


def test_reset_starts_anew() -> None:
    """After a success the next failure waits as the very first did."""
    backoff = Backoff(jitter=lambda: 1.0)
    for _ in range(9):
        backoff.next()
    backoff.reset()
    assert backoff.next() == 1


@pytest.mark.parametrize("jitter", [0.0, 1.0])
def test_a_gateway_that_is_gone_for_a_year_overflows_nothing(jitter: float) -> None:
    """However many failures there were, the delay is a number between half of the most and the most."""
    backoff = Backoff(jitter=lambda: jitter)
    delays = [backoff.next() for _ in range(100_000)]
    assert all(150 <= delay <= 300 for delay in itertools.islice(delays, 9, None))
