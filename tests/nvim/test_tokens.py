"""A chat's tokens for display: each report replaces the last, and requests and turns add up."""

from __future__ import annotations

from parley.chat.reader import parse
from parley.models.events import Price, RateLimits, Usage
from parley.models.request import Request
from parley.nvim.tokens import Tokens

PRICE = Price(2.0, 10.0)
REQUEST = Request(parse(f"💬: {'word ' * 100}\n"), 0, "demo", "demo", window=1_000)


def counts(tokens: int, reply: int = 0, **more: float) -> dict[str, float]:
    return {"input": tokens, "output": reply, "cached": 0, "thinking": 0, **more}


def test_a_report_replaces_the_last_of_its_request() -> None:
    tokens = Tokens()
    tokens.next_request(None, None)
    tokens.say(Usage(input=10))
    tokens.say(Usage(input=10, output=5))
    table = tokens.table()
    assert table["last"] == table["turn"] == table["chat"] == counts(10, 5)


def test_requests_add_up_in_their_turn_and_turns_in_their_chat() -> None:
    tokens = Tokens()
    for inputs in (10, 20), (40,):
        tokens.next_turn()
        for number in inputs:
            tokens.next_request(None, None)
            tokens.say(Usage(input=number))
    table = tokens.table()
    assert table["last"] == table["turn"] == counts(40)
    assert table["chat"] == counts(70)


def test_the_cost_is_that_of_the_requests_with_a_price() -> None:
    tokens = Tokens()
    tokens.next_request(PRICE, None)
    tokens.say(Usage(input=1_000_000, output=100_000))
    tokens.next_request(None, None)
    tokens.say(Usage(input=7))
    table = tokens.table()
    assert table["last"] == counts(7)
    assert table["turn"] == counts(1_000_007, 100_000, cost=3.0)


def test_searches_are_shown_and_cost_by_the_thousand() -> None:
    tokens = Tokens()
    tokens.next_request(Price(2.0, 10.0, searches=10.0), None)
    tokens.say(Usage(input=1_000_000, searches=3))
    assert tokens.table()["turn"] == counts(1_000_000, searches=3, cost=2.03)


def test_the_window_is_measured_once_for_each_request_of_the_chat() -> None:
    requests = list[Request]()

    def measured() -> Request:
        requests.append(REQUEST)
        return REQUEST

    tokens = Tokens()
    tokens.next_request(None, measured)
    assert "window" not in tokens.table()
    tokens.say(Usage(input=1))
    tokens.say(Usage(input=1, output=50))
    share = round((REQUEST.tokens() + 50) / 1_000, 4)
    assert tokens.table()["window"] == {"tokens": 1_000, "share": share}
    assert requests == [REQUEST]
    tokens.next_request(None, None)
    tokens.say(Usage(output=900))
    assert tokens.table()["window"]["share"] == share, "a request that is not the chat's own"


def test_the_last_limits_are_shown() -> None:
    tokens = Tokens()
    tokens.say(RateLimits((("requests", "3"),)))
    tokens.say(RateLimits((("requests", "2"),)))
    assert tokens.table()["limits"] == {"requests": "2"}
