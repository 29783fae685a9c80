"""What refusals say of a request, and how a chat that is too long is made to fit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.history import OMITTED, ModelTurn, UserTurn
from parley.chat.reader import parse
from parley.models.refusals import Amendment, amended, crowding, says_too_long
from parley.models.request import Request
from parley.tools.catalogue import Catalogue, Tool

TOO_LONG = [
    "prompt is too long: 213462 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 198000 + 21333 > 200000",
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "the input length exceeds the context length",
]


@pytest.mark.parametrize("words", TOO_LONG)
def test_providers_say_in_many_words_that_a_chat_is_too_long(words: str) -> None:
    assert says_too_long(words)


@pytest.mark.parametrize(
    "words", ["max_tokens: 5 is too long a wait", "this model has no context", "", "exceeded"]
)
def test_other_words_do_not_say_so(words: str) -> None:
    assert not says_too_long(words)


LINE = "word " * 2_000
"""2,500 tokens, more or less."""


def chat(count: int, *, summaries: bool = True, calls: bool = False) -> Request:
    """The last question of a chat of long exchanges, asked of a model that takes 20,000 tokens."""
    summary = "\n\n📝: it was long" if summaries else ""
    call = '❓:[ya] `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`'
    rounds = f"\n\n{call}\n\n🛠️: [f][c]\n\n`{LINE}`\n\nThat is it." if calls else ""
    exchanges = "".join(f"💬: {number} {LINE}\n\n🤖:\n\nfine{rounds}{summary}\n\n" for number in range(count))
    return Request(
        parse(f"{exchanges}💬: and now?\n"), count, "openai", "gpt-4o", window=20_000, max_tokens=1_000
    )


def omitted(request: Request) -> int:
    return sum(turn == UserTurn(OMITTED) for turn in request.turns())


def test_a_chat_that_fits_is_sent_whole() -> None:
    request = chat(3)
    assert omitted(request) == 0
    assert request.crowded() is None
    assert crowding(request) == ""


def test_of_a_chat_that_does_not_fit_the_older_exchanges_stand_back_as_few_as_may_be() -> None:
    request = chat(10)
    assert omitted(request) == 3
    assert request.crowded() == 8
    assert (
        crowding(request)
        == "this chat is too long for gpt-4o: before the last 8 exchanges, only 📝: lines are sent"
    )
    assert omitted(replace(request, max_full_exchanges=3)) == 8
    assert replace(request, max_full_exchanges=3).crowded() is None


def test_tools_system_prompt_and_reply_need_room_as_well() -> None:
    request = chat(7)
    tools = Catalogue.of([Tool("s", "f", description=LINE)])
    assert omitted(request) == 0
    for crowded in (
        replace(request, catalogue=tools),
        replace(request, system=LINE),
        replace(request, max_tokens=4_000),
    ):
        assert omitted(crowded) == 1


def test_exchanges_without_a_summary_stay_whole_and_nobody_is_told_otherwise() -> None:
    request = chat(20, summaries=False)
    assert omitted(request) == 0
    assert request.crowded() is None
    assert request.narrowed() is None


@given(st.integers(0, 12), st.integers(1_001, 60_000), st.booleans())
def test_a_call_and_its_result_are_sent_both_or_neither(count: int, window: int, summaries: bool) -> None:
    request = replace(chat(count, calls=True, summaries=summaries), window=window)
    turns = request.turns()
    assert turns[-1] == UserTurn("and now?")
    for turn in turns:
        if isinstance(turn, ModelTurn):
            assert all(call.content for call in turn.calls)
    whole = sum(isinstance(turn, ModelTurn) and bool(turn.calls) for turn in turns)
    assert whole + omitted(request) == count


def test_a_request_that_was_refused_as_too_long_gets_smaller_until_nothing_can_stand_back() -> None:
    request: Request | None = replace(chat(10), window=None)
    sizes = list[int]()
    while request is not None:
        sizes.append(omitted(request))
        amendment = amended(request, "chat", 400, TOO_LONG[0])
        request = amendment.request if amendment else None
    assert sizes[0] == 0
    assert sizes[-1] == 10
    assert sizes == sorted(set(sizes))


ONLY = "This model is only supported in {} and not in {}."
EFFORT = (
    "Function tools with reasoning_effort are not supported for gpt-5.9 in /v1/chat/completions. "
    "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
)


@pytest.mark.parametrize(
    ("api", "status", "words", "other"),
    [
        ("chat", 404, ONLY.format("v1/responses", "v1/chat/completions"), "responses"),
        ("chat", 400, EFFORT, "responses"),
        (
            "chat",
            404,
            "This is not a chat model and thus not supported in the v1/chat/completions endpoint.",
            "responses",
        ),
        ("responses", 404, ONLY.format("v1/chat/completions", "v1/responses"), "chat"),
        ("responses", 400, "The requested model 'm' cannot be used with the Responses API.", "chat"),
        ("responses", 404, "404 page not found", "chat"),
        ("responses", 404, "", "chat"),
        ("responses", 404, "The model `gpt-4o` does not exist or you do not have access to it.", None),
        ("chat", 404, "The model `gpt-4o` does not exist or you do not have access to it.", None),
        ("chat", 500, EFFORT, None),
        ("chat", 400, "Unsupported parameter: 'temperature'", None),
        ("", 404, ONLY.format("v1/responses", "v1/chat/completions"), None),
        ("anthropic", 404, "model: claude-9", None),
    ],
)
def test_a_refusal_may_point_to_the_other_api(api: str, status: int, words: str, other: str | None) -> None:
    request = chat(0)
    amendment = amended(request, api, status, words)
    assert (amendment.request.api if amendment else None) == other
    assert amendment is None or amended(amendment.request, other or "", status, words) is None


@pytest.mark.parametrize(
    "words",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to another one",
        "messages.3.content.1: Invalid `data` in `redacted_thinking` block",
        "Function call is missing a thought_signature in functionCall parts",
        "The encrypted content gAAA… could not be verified.",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ],
)
def test_thinking_that_is_refused_is_dropped_once(words: str) -> None:
    request = chat(0)
    amendment = amended(request, "chat", 400, words)
    assert amendment == Amendment(replace(request, keep_thinking=False))
    assert amended(amendment.request, "chat", 400, words) is None


@pytest.mark.parametrize("status", [400, 413])
def test_a_chat_that_is_refused_as_too_long_is_sent_with_less_of_it(status: int) -> None:
    request = chat(3)
    shorter = amended(request, "chat", status, TOO_LONG[0])
    assert shorter is not None
    assert omitted(shorter.request) > 0
    assert shorter.aside == crowding(shorter.request) != ""
