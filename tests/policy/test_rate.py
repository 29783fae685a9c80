"""The last minute's requests, and when the next may be sent."""

from __future__ import annotations

from parley.policy.rate import RateWindow


def window_with(limit: int, *times: float) -> RateWindow:
    window = RateWindow(limit)
    for time in times:
        window.take(time)
    return window


def test_the_next_request_may_be_sent_when_the_oldest_that_counts_is_a_minute_old() -> None:
    assert window_with(2, 0.0).wait(30.0) == 0.0
    assert window_with(2, 0.0, 10.0).wait(30.0) == 30.0
    assert window_with(2, 0.0, 10.0).wait(60.0) == 0.0


def test_requests_beyond_the_limit_also_delay_the_next() -> None:
    """Two chats may both have seen the last free slot."""
    window = window_with(2, 0.0, 10.0, 20.0)
    assert window.wait(30.0) == 40.0
    assert window.wait(60.0) == 10.0
    assert window.wait(70.0) == 0.0


def test_windows_over_the_same_times_count_the_same_requests() -> None:
    times = list[float]()
    first, second = RateWindow(2, times), RateWindow(3, times)
    first.take(0.0)
    second.take(10.0)
    assert (first.wait(20.0), second.wait(20.0)) == (40.0, 0.0)
    second.take(20.0)
    assert second.wait(30.0) == 30.0
    assert times == [0.0, 10.0, 20.0]
    first.take(75.0)
    assert times == [20.0, 75.0]


def test_without_a_limit_nothing_waits_and_the_free_part_is_a_fraction() -> None:
    assert window_with(0, 0.0, 0.0).wait(0.0) == 0.0
    assert window_with(0, 0.0).left(0.0) == 1.0
    assert window_with(4, 0.0).left(0.0) == 0.75
    assert window_with(1, 0.0, 0.0).left(0.0) == 0.0
