"""How long a stream may be silent, on a fake clock."""

from __future__ import annotations

from itertools import count

import pytest

from parley.models.accumulate import PendingCall
from parley.providers.patience import Patience


def test_silence_ends_after_a_while_and_each_event_restarts_the_time() -> None:
    now = 0.0
    patience = Patience(10, lambda: now)
    now = 10
    patience.check(None)
    patience.renew()
    now = 20
    patience.check(None)
    now = 20.1
    with pytest.raises(TimeoutError, match="it sent only comments and pings for 10 s"):
        patience.check(None)


def test_a_call_being_written_is_not_silence_but_a_stalled_one_is() -> None:
    seconds = count(step=9)
    patience = Patience(10, lambda: next(seconds))
    for size in range(5):
        patience.check(PendingCall("write", size))
    patience = Patience(10, lambda: next(seconds))
    patience.check(PendingCall("write", 4))
    patience.check(PendingCall("write", 4))
    with pytest.raises(TimeoutError):
        patience.check(PendingCall("write", 4))
