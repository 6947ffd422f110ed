"""The start limit counts as systemd does."""

from bcd.lab.startlimit import StartLimit


def test_the_sixth_start_in_the_window_is_one_too_many() -> None:
    limit = StartLimit()
    assert [limit.allows(at) for at in (0.0, 1.0, 2.0, 3.0, 599.0, 600.0)] == [True] * 5 + [False]


def test_the_window_opens_with_its_first_start_and_is_forgotten_whole() -> None:
    limit = StartLimit()
    assert all(limit.allows(at) for at in (100.0, 500.0, 600.0, 650.0, 699.0))
    # 600 s after the first, not after the last.
    assert [limit.allows(701.0 + number) for number in range(6)] == [True] * 5 + [False]


def test_a_refused_start_does_not_keep_the_window_open() -> None:
    limit = StartLimit()
    for at in range(6):
        limit.allows(float(at))
    assert not limit.allows(599.0)
    assert limit.allows(600.1)


def test_reset_forgets_the_window() -> None:
    limit = StartLimit()
    while limit.allows(0.0):
        pass
    limit.reset()
    assert limit.allows(0.0)
