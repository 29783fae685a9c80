"""The meaning of providers' refusals, and the shortening of chats that are too long."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.attachments import attachment_of, link
from parley.chat.history import OMITTED, ModelTurn, UserTurn
from parley.chat.omissions import MIDDLE
from parley.chat.reader import parse
from parley.models.context_window import Limit
from parley.models.refusals import amended, crowding, limit_in, says_too_long
from parley.models.request import Request
from parley.tools.catalogue import Catalogue, Tool
from tests.pictures import png

TOO_LONG = [
    "prompt is too long: 213462 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 198000 + 21333 > 200000",
    (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in "
        "130000 tokens."
    ),
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    (
        "the request exceeds the available context size. try increasing the context size or enable "
        "context shift"
    ),
    "the input length exceeds the context length",
]


@pytest.mark.parametrize("words", TOO_LONG)
def test_providers_have_many_words_for_a_chat_that_is_too_long(words: str) -> None:
    assert says_too_long(words)


@pytest.mark.parametrize(
    "words", ["max_tokens: 5 is too long a wait", "this model has no context", "", "exceeded"]
)
def test_other_words_do_not_match(words: str) -> None:
    assert not says_too_long(words)


LINE = "word " * 2_000
"""About 2,500 tokens."""


def chat(count: int, *, summaries: bool = True, calls: bool = False) -> Request:
    """The last question of a chat with long exchanges, for a model with a limit of 20,000
    tokens."""
    summary = "\n\n📝: it was long" if summaries else ""
    call = '❓:[ya] `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`'
    rounds = f"\n\n{call}\n\n🛠️: [f][c]\n\n`{LINE}`\n\nThat is it." if calls else ""
    exchanges = "".join(
        f"💬: {number} {LINE}\n\n🤖:\n\nfine{rounds}{summary}\n\n" for number in range(count)
    )
    return Request(
        parse(f"{exchanges}💬: and now?\n"),
        count,
        "openai",
        "gpt-4o",
        window=20_000,
        max_tokens=1_000,
    )


def omitted(request: Request) -> int:
    return sum(turn == UserTurn(OMITTED) for turn in request.turns())


def test_a_chat_that_fits_is_sent_whole() -> None:
    request = chat(3)
    assert omitted(request) == 0
    assert crowding(request) == ""


def test_a_chat_that_does_not_fit_shortens_as_few_older_exchanges_as_possible() -> None:
    request = chat(10)
    assert omitted(request) == 3
    assert (
        crowding(request)
        == "this chat is too long for gpt-4o; not sent: all of 3 exchanges except for the 📝: line"
    )
    assert omitted(replace(request, max_full_exchanges=3)) == 8
    assert crowding(replace(request, max_full_exchanges=3)) == ""


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


RESULTS = [f"[result omitted: {len(LINE) // 1000} kB]"]


def results(request: Request) -> list[str]:
    turns = [turn for turn in request.turns() if isinstance(turn, ModelTurn)]
    return [outcome.content for turn in turns for outcome in turn.calls]


def test_the_results_of_older_exchanges_go_first() -> None:
    request = chat(5, calls=True)
    assert results(request) == RESULTS * 3 + [LINE] * 2
    assert omitted(request) == 0
    assert crowding(request) == "this chat is too long for gpt-4o; not sent: the results of 3 calls"


def test_parts_are_left_out_in_this_order() -> None:
    request, seen = chat(5, calls=True, summaries=True), list[str]()
    for window in range(30_000, 1_000, -20):
        notice = crowding(replace(request, window=window)).partition("; not sent: ")[2]
        if notice not in seen:
            seen.append(notice)
    assert seen == [
        "",
        "the results of 1 call",
        "the results of 2 calls",
        "the results of 3 calls",
        "the results of 2 calls, all of 1 exchange except for the 📝: line",
        "the results of 1 call, all of 2 exchanges except for the 📝: line",
        "all of 3 exchanges except for the 📝: line",
        "the results of 1 call, all of 3 exchanges except for the 📝: line",
        "the results of 2 calls, all of 3 exchanges except for the 📝: line",
        "the results of 1 call, all of 4 exchanges except for the 📝: line",
        "all of 5 exchanges except for the 📝: line",
        "all of 4 exchanges except for the 📝: line, all of 1 older exchange",
        "all of 3 exchanges except for the 📝: line, all of 2 older exchanges",
        "all of 2 exchanges except for the 📝: line, all of 3 older exchanges",
        "all of 1 exchange except for the 📝: line, all of 4 older exchanges",
        "all of 5 older exchanges",
    ]


def test_without_a_summary_an_exchanges_question_is_cut_to_fit() -> None:
    request = chat(20, summaries=False)
    questions = [turn.text for turn in request.turns() if isinstance(turn, UserTurn)]
    assert len(questions) == 21
    long = [LINE.strip() in text and OMITTED not in text for text in questions[:-1]]
    assert long == sorted(long)
    assert sum(long) == 6
    assert all(text.startswith(f"{n} word") for n, text in enumerate(questions[:-1]))
    cut = [text for text in questions if OMITTED in text]
    assert all(MIDDLE in text for text in cut)
    assert len(cut[-1]) > 3 * len(cut[0])
    assert crowding(request) == (
        "this chat is too long for gpt-4o; not sent: the answers in 14 exchanges without a 📝: line"
    )


LONG = "word " * 400_000
CALL = '❓:[ya] `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`'


@pytest.mark.parametrize(
    "text",
    [f"💬: Begin {LONG}End\n", f"💬: q\n\n🤖:\n\n{CALL}\n\n🛠️: [f][c]\n\n`Begin {LONG}End`\n"],
    ids=["question", "result"],
)
def test_one_exchange_that_is_too_long_is_cut_in_the_middle(text: str) -> None:
    request = Request(parse(text), 0, "openai", "gpt-4o")
    (sent,) = (text for text in map(str, request.turns()) if "Begin word" in text)
    assert "word End" in sent
    assert "[the middle of this text was left out]" in sent
    assert 450_000 < request.memory().size < 512_000
    assert crowding(request).endswith(
        "not sent: the middle of the longest texts in the last exchange"
    )


def test_the_current_question_stays_whole_as_long_as_possible() -> None:
    request = Request(parse(f"💬: {LINE}\n\n🤖:\n\n{CALL}\n\n🛠️: [f][c]\n\n`{LONG}`\n"), 0, "x", "m")
    for window in range(128_000, 4_500, -2_000):
        (question, *_) = replace(request, window=window).turns()
        assert question == replace(request, window=10**9).turns()[0]


@given(st.integers(0, 12), st.integers(1_001, 60_000), st.booleans())
def test_a_call_and_its_result_are_sent_both_or_neither(
    count: int, window: int, summaries: bool
) -> None:
    request = replace(chat(count, calls=True, summaries=summaries), window=window)
    turns = request.turns()
    assert turns[-1] == UserTurn("and now?")
    for turn in turns:
        if isinstance(turn, ModelTurn):
            assert all(call.content for call in turn.calls)


def test_a_request_refused_as_too_long_shrinks_until_nothing_can_be_left_out() -> None:
    request: Request | None = replace(chat(10), window=None)
    sizes = list[int]()
    while request is not None:
        sizes.append(request.memory().size)
        amendment = amended(request, "chat", 400, "prompt is too long")
        request = amendment.request if amendment else None
    assert sizes[0] > 100_000
    assert sizes[-1] < 200
    assert sizes == sorted(set(sizes), reverse=True)


VLLM = (
    "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens "
    "(112946 in the messages, 10000 in the completion). Please reduce the length of the messages"
)
PER_MINUTE = (
    "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The "
    "input or "
    "output tokens must be reduced in order to run successfully."
)


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (TOO_LONG[0], Limit(200_000, 213_462)),
        (TOO_LONG[1], Limit(200_000, 198_000, 21_333)),
        (TOO_LONG[2], Limit(128_000, 130_000)),
        (
            VLLM,
            Limit(16_384, 112_946, 10_000),
        ),
        (TOO_LONG[3], None),
        (TOO_LONG[4], Limit(1_048_576, 1_200_000)),
        (TOO_LONG[5], None),
        (
            "request (8000 tokens) exceeds the available context size (4096 tokens)",
            Limit(4_096, 8_000),
        ),
        ("Requested tokens (2285) exceed context window of 2048", Limit(2_048, 2_285)),
        (
            PER_MINUTE,
            Limit(30_000, 342_389),
        ),
    ],
)
def test_a_refusal_that_names_its_limit_teaches_it(words: str, limit: Limit | None) -> None:
    assert says_too_long(words)
    assert limit_in(words) == limit


def test_after_a_limit_the_request_is_made_just_small_enough() -> None:
    request = chat(30)
    request = replace(request, window=None)
    counted = 2 * request.tokens()  # by the provider, whose tokens are shorter than estimated
    words = f"prompt is too long: {counted} tokens > 60000 maximum"
    amendment = amended(request, "anthropic", 400, words)
    assert amendment
    assert 27_000 < amendment.request.memory().size / 4 < 29_500
    words = "This model's maximum context length is 40000 tokens."
    amendment = amended(request, "chat", 400, words)
    assert amendment
    assert 36_000 < amendment.request.memory().size / 4 < 39_000


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
        (
            "responses",
            400,
            "The requested model 'm' cannot be used with the Responses API.",
            "chat",
        ),
        ("responses", 404, "404 page not found", "chat"),
        ("responses", 404, "", "chat"),
        (
            "responses",
            404,
            "The model `gpt-4o` does not exist or you do not have access to it.",
            None,
        ),
        ("chat", 404, "The model `gpt-4o` does not exist or you do not have access to it.", None),
        ("chat", 500, EFFORT, None),
        ("chat", 400, "Unsupported parameter: 'temperature'", None),
        ("", 404, ONLY.format("v1/responses", "v1/chat/completions"), None),
        ("anthropic", 404, "model: claude-9", None),
    ],
)
def test_a_refusal_may_point_to_the_other_api(
    api: str, status: int, words: str, other: str | None
) -> None:
    request = chat(0)
    amendment = amended(request, api, status, words)
    assert (amendment.request.api if amendment else None) == other
    assert amendment is None or amended(amendment.request, other or "", status, words) is None


@pytest.mark.parametrize(
    "words",
    [
        (
            "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to "
            "another one"
        ),
        "messages.3.content.1: Invalid `data` in `redacted_thinking` block",
        "Function call is missing a thought_signature in functionCall parts",
        "The encrypted content gAAA… could not be verified.",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        (
            "Item 'ws_1' of type 'web_search_call' was provided without its required 'reasoning' "
            "item: 'rs_1'."
        ),
    ],
)
def test_thinking_that_is_refused_is_dropped_once(words: str) -> None:
    request = chat(0)
    amendment = amended(request, "chat", 400, words)
    assert amendment
    assert amendment.request == replace(request, keep_thinking=False)
    assert amended(amendment.request, "chat", 400, words) is None


@pytest.mark.parametrize(
    "words",
    [
        "messages.3.content.1: Invalid `encrypted_content` in `search_result` block",
        (
            "messages.1: `web_search` tool use with id `srvtoolu_1` was found without a corresponding "
            "`web_search_tool_result` block"
        ),
        "messages.3.content.1.server_tool_use.id: String should match pattern '^srvtoolu_…$'",
    ],
)
def test_earlier_searches_that_are_refused_are_dropped_once(words: str) -> None:
    request = replace(chat(0), web_search=True)
    amendment = amended(request, "anthropic", 400, words)
    assert amendment
    assert amendment.request == replace(request, keep_searches=False)
    again = amended(amendment.request, "anthropic", 400, words)
    assert again is None or not again.request.keep_searches


@pytest.mark.parametrize("status", [400, 413])
def test_a_chat_refused_as_too_long_is_shortened(status: int) -> None:
    request = chat(3)
    shorter = amended(request, "chat", status, "prompt is too long")
    assert shorter is not None
    assert omitted(shorter.request) > 0
    assert shorter.status == "this chat is too long for gpt-4o: asking with less of it..."
    assert shorter.aside == ""


def test_a_request_too_large_for_a_minute_is_shortened_and_not_delayed() -> None:
    request = replace(chat(30), window=None)
    shorter = amended(request, "chat", 429, PER_MINUTE)
    assert shorter
    assert shorter.request.memory().size < request.memory().size / 8
    assert (
        amended(request, "chat", 429, "Rate limit reached for gpt-4o: Limit 3, Used 3, Requested 1")
        is None
    )


def test_any_request_too_large_for_a_proxy_is_shortened() -> None:
    assert amended(chat(3), "chat", 413, "Request Entity Too Large")
    assert amended(chat(3), "chat", 400, "Request Entity Too Large") is None


# --- Pictures -------------------------------------------------------------------------------------

PICTURE = attachment_of(png(), "chat.assets", "png")
SHOWING = Request(
    parse(f"💬: Look:\n\n{link(PICTURE)}\n"), 0, "ollama", "qwen3", pictures={PICTURE.path: png()}
)
SEES_NONE = [
    "Invalid content type. image_url is only supported by certain models.",
    "this model does not support image input (ref: b8bd630e)",
    "failed to process inputs: this model is missing data required for image input",
    "Invalid value: 'input_image'. Supported values are: 'input_text'.",
    "No endpoints found that support image input",
    "At most 0 image(s) may be provided in one request.",
    (
        "image input is not supported - hint: if this is unexpected, you may need to provide the "
        "mmproj"
    ),
    (
        "Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected "
        "`text`"
    ),
]
REFUSES_ONE = [
    "Could not process image",
    (
        "image.source.base64.data: At least one of the image dimensions exceed max allowed size: "
        "8000 pixels"
    ),
    "messages.34.content.2.tool_result.content.0.image.source.base64: image exceeds 5 MB maximum",
    "The image data you provided does not represent a valid image.",
]


@pytest.mark.parametrize("words", SEES_NONE)
@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_model_that_sees_no_pictures_is_sent_words_from_then_on(words: str, status: int) -> None:
    other = amended(SHOWING, "chat", status, words)
    assert other
    assert other.request == replace(SHOWING, is_blind=True)
    assert other.aside == "qwen3 cannot see pictures, so Parley sends text instead"
    assert amended(other.request, "", status, words) is None


@pytest.mark.parametrize("words", REFUSES_ONE)
def test_a_refused_picture_ends_no_chat(words: str) -> None:
    other = amended(SHOWING, "chat", 400, words)
    assert other
    assert other.request == replace(SHOWING, refused=frozenset([PICTURE.path]))
    assert words in other.aside
    assert amended(other.request, "", 400, words) is None


@pytest.mark.parametrize("status", [401, 429, 529, None])
def test_another_refusal_does_not_affect_pictures(status: int | None) -> None:
    assert amended(SHOWING, "", status, "too many images for your plan") is None


def test_words_about_pictures_mean_nothing_if_none_was_sent() -> None:
    assert amended(replace(SHOWING, pictures={}), "", 400, "Could not process image") is None


REFUSED_TOOLS = [
    (
        (
            "Invalid schema for function 'b': In context=('properties', 'x'), array schema missing "
            "items."
        ),
        ["b"],
    ),
    (
        "invalid JSON schema for tool b, tools[1].function.parameters: 'properties' is missing",
        ["b"],
    ),
    (
        (
            "tools.2.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft "
            "2020-12"
        ),
        ["c"],
    ),
    (
        (
            "Unknown name at 'tools[0].function_declarations[0]' and "
            "'tools[0].function_declarations[2]'"
        ),
        ["a", "c"],
    ),
    ("Invalid 'tools[1].function.description': string too long.", ["b"]),
]


def with_tools(*names: str) -> Request:
    tools = Catalogue.of(Tool("s", name) for name in names)
    return Request(parse("💬: q\n"), 0, "acme", "m", catalogue=tools)


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(("words", "named"), REFUSED_TOOLS)
def test_a_tool_refused_by_name_is_left_out(words: str, named: list[str], status: int) -> None:
    request = with_tools("a", "b", "c")
    other = amended(request, "", status, words)
    assert other is not None
    assert other.request.catalogue.names() == tuple(name for name in "abc" if name not in named)
    assert {tool.name for tool in other.request.refused_tools} == set(named)
    tools = f"the tool{'s' if len(named) > 1 else ''} {', '.join(named)}"
    them = "them" if len(named) > 1 else "it"
    assert other.aside == f"acme refused {tools} ({words}), so Parley asks m without {them}"
    assert other.status == f"Asking again without {tools}..."
    assert other.request.without(other.request.refused_tools) is other.request
    assert (
        amended(other.request, "", status, "Invalid schema for function 'b'" * ("b" in named))
        is None
    )


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Invalid schema for function 'z': no"),
        (400, "tools.7.custom.input_schema: JSON schema is invalid."),
        (400, "Invalid 'tools': array too long. Expected an array with maximum length 128"),
        (400, "the tool a is not nice"),
        (500, "Invalid schema for function 'a': no"),
        (None, "Invalid schema for function 'a': no"),
    ],
)
def test_a_refusal_that_names_no_tool_of_the_request_leaves_out_none(
    status: int | None, words: str
) -> None:
    assert amended(with_tools("a", "b"), "", status, words) is None
