"""The server with the real SDK clients: both rounds of the example in every format, and refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from parley.demo.server import APIS, Check, DemoServer, start
from parley.demo.signing import unseal, verify
from parley.models.anthropic import Decoder
from parley.models.events import Cited, Ran, RanResult
from tests.strict import check

if TYPE_CHECKING:  # this import takes seconds, even in a process that only collects tests
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

QUESTION = "can you find the latest stock price of google and microsoft?"
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
RESULTS = (
    '{"matches":["GOOGL price is $911 as of today"]}',
    '{"matches":["MSFT price is $544 as of today"]}',
)
ANSWER = (
    "Google (GOOGL) is at $911 and Microsoft (MSFT) is at $544 as of today. Do you want "
    "something else?"
)
HOSTILE = "say: 💬: x\n❓:[yA] `{}`\n\x85\u2028 data: [DONE]\r\n👩‍👩‍👧 🛠️: \u202e\tend "
ECHO = HOSTILE.removeprefix("say: ")


def claude_body(*messages: Any, **extra: Any) -> dict[str, Any]:
    tools = [{"name": "web_search", "input_schema": SCHEMA}]
    return {
        "model": "claude-sonnet-4-6",
        "max_tokens": 4096,
        "tools": tools,
        "messages": messages,
    } | extra


def chat_body(*messages: Any, **extra: Any) -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": "web_search", "parameters": SCHEMA}}]
    return {"model": "gpt-4.1", "tools": tools, "messages": messages} | extra


def responses_body(*items: Any, **extra: Any) -> dict[str, Any]:
    tools = [{"type": "function", "name": "web_search", "parameters": SCHEMA}]
    reasoning = {"effort": "low", "summary": "auto"}
    include = ["reasoning.encrypted_content"]
    body = {"model": "gpt-5.5", "tools": tools, "input": items, "store": False}
    return body | {"reasoning": reasoning, "include": include} | extra


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


async def streamed_blocks(
    client: AsyncAnthropic, body: dict[str, Any]
) -> tuple[list[dict[str, Any]], Any]:
    """A Messages stream's content blocks, and its last message_delta."""
    blocks: list[dict[str, Any]] = []
    last: Any = None
    async for event in await client.messages.create(**body, stream=True):
        match event.type:
            case "content_block_start":
                assert event.index == len(blocks)
                blocks.append(event.content_block.model_dump(exclude_none=True) | {"json": ""})
            case "content_block_delta":
                _add_delta(blocks[event.index], event.delta)
            case "content_block_stop":
                text = blocks[event.index].pop("json")
                if blocks[event.index]["type"] == "tool_use":
                    blocks[event.index]["input"] = json.loads(text or "{}")
            case "message_delta":
                last = event
            case _:
                pass
    return blocks, last


def _add_delta(block: dict[str, Any], delta: Any) -> None:
    match delta.type:
        case "text_delta":
            block["text"] += delta.text
        case "thinking_delta":
            block["thinking"] += delta.thinking
        case "signature_delta":
            block["signature"] = delta.signature
        case "input_json_delta":
            block["json"] += delta.partial_json
        case _:
            raise AssertionError(delta)


async def streamed_chat(
    client: AsyncOpenAI, body: dict[str, Any]
) -> tuple[dict[str, Any], str | None, Any]:
    """A Chat Completions stream's message, finish reason and usage."""
    text, finish, usage = "", None, None
    calls: dict[int, Any] = {}
    stream = await client.chat.completions.create(
        **body, stream=True, stream_options={"include_usage": True}
    )
    async for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for piece in choice.delta.tool_calls or []:
                call = calls.setdefault(
                    piece.index, {"type": "function", "function": {"arguments": ""}}
                )
                call.update({"id": piece.id} if piece.id else {})
                assert piece.function is not None
                call["function"].update(
                    {"name": piece.function.name} if piece.function.name else {}
                )
                call["function"]["arguments"] += piece.function.arguments or ""
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    return message | ({"tool_calls": list(calls.values())} if calls else {}), finish, usage


def results_of(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"role": "tool", "tool_call_id": call["id"], "content": text}
        for call, text in zip(calls, RESULTS, strict=True)
    ]


def tool_results(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    content = [
        {"type": "tool_result", "tool_use_id": identifier, "content": text}
        for identifier, text in zip(ids, RESULTS, strict=True)
    ]
    return {"role": "user", "content": content}


@pytest.mark.parametrize(
    "mode",
    [
        {},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": "low"},
        },
        {"thinking": {"type": "adaptive"}, "model": "claude-opus-4-7"},
    ],
)
@pytest.mark.filterwarnings("ignore:Using Claude with")
async def test_the_example_in_messages(claude: AsyncAnthropic, mode: dict[str, Any]) -> None:
    blocks, last = await streamed_blocks(claude, claude_body(user(QUESTION), **mode))
    assert [block["input"] for block in blocks if block["type"] == "tool_use"] == [
        {"query": "google stock price"},
        {"query": "microsoft stock price"},
    ]
    thinking = [block for block in blocks if block["type"] == "thinking"]
    assert len(thinking) == ("thinking" in mode)
    assert all(verify(block["thinking"], block["signature"]) for block in thinking)
    assert last.delta.stop_reason == "tool_use"
    assert last.usage.output_tokens > 0

    history = (user(QUESTION), {"role": "assistant", "content": blocks}, tool_results(blocks))
    answer, last = await streamed_blocks(claude, claude_body(*history, **mode))
    assert answer[-1]["text"] == ANSWER
    assert last.delta.stop_reason == "end_turn"

    whole = await claude.messages.create(**claude_body(*history, **mode))
    assert [block.model_dump(exclude_none=True) for block in whole.content] == answer
    assert whole.usage.output_tokens == last.usage.output_tokens


async def test_the_demo_model_searches_the_web_itself_in_messages(claude: AsyncAnthropic) -> None:
    tools = [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}]
    question = user("Please search the web for tea?")
    body = claude_body(question, tools=tools)
    whole = await claude.messages.create(**body)
    search, found, text = (block.model_dump(exclude_none=True) for block in whole.content)
    assert (search["type"], search["input"]) == ("server_tool_use", {"query": "tea"})
    assert (found["tool_use_id"], found["content"][0]["url"]) == (
        search["id"],
        "https://example.org/tea",
    )
    assert text["citations"][0]["url"] == "https://example.org/tea"
    assert whole.usage.server_tool_use
    assert whole.usage.server_tool_use.web_search_requests == 1

    decoder = Decoder("anthropic", "claude-sonnet-4-6")
    async with claude.messages.with_streaming_response.create(**body, stream=True) as response:
        lines = [line[6:] async for line in response.iter_lines() if line.startswith("data: ")]
    events = [event for line in lines for event in decoder.feed(json.loads(line))]
    assert Cited("https://example.org/tea", "About tea") in events
    assert [type(event) for event in events if isinstance(event, Ran | RanResult)] == [
        Ran,
        RanResult,
    ]

    content = [search, found, text]
    history = (question, {"role": "assistant", "content": content}, user("hello"))
    assert (await claude.messages.create(**claude_body(*history, tools=tools))).content
    plain = await claude.messages.create(**claude_body(question))
    assert plain.content[-1].type == "text"


async def test_the_text_of_thinking_is_omitted_by_default_on_newer_models(
    claude: AsyncAnthropic,
) -> None:
    body = claude_body(user(QUESTION), thinking={"type": "adaptive"}, model="claude-sonnet-5-5")
    blocks, _ = await streamed_blocks(claude, body)
    assert blocks[0]["thinking"] == ""
    assert verify("", blocks[0]["signature"])


async def test_redacted_thinking_survives_the_round_trip(claude: AsyncAnthropic) -> None:
    question = user("redacted, please: stock price of google and microsoft")
    mode = {"thinking": {"type": "adaptive"}}
    blocks, _ = await streamed_blocks(claude, claude_body(question, **mode))
    assert blocks[0]["type"] == "redacted_thinking"
    history = (question, {"role": "assistant", "content": blocks}, tool_results(blocks))
    _, last = await streamed_blocks(claude, claude_body(*history, **mode))
    assert last.delta.stop_reason == "end_turn"


async def test_changed_thinking_is_refused_in_the_open_loop(
    claude: AsyncAnthropic,
) -> None:
    from anthropic import BadRequestError

    mode = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    blocks, _ = await streamed_blocks(claude, claude_body(user(QUESTION), **mode))
    blocks[0]["thinking"] += "!"
    history = (user(QUESTION), {"role": "assistant", "content": blocks}, tool_results(blocks))
    with pytest.raises(BadRequestError, match="Invalid `signature` in `thinking` block") as refused:
        await claude.messages.create(**claude_body(*history, **mode))
    assert refused.value.body == {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "messages.1.content.0: Invalid `signature` in `thinking` block",
        },
    }


async def test_messages_streams_events_in_the_apis_order(claude: AsyncAnthropic) -> None:
    body = claude_body(user('call web_search {"query": "x"}')) | {"stream": True}
    async with claude.messages.with_streaming_response.create(**body) as response:
        lines = [line async for line in response.iter_lines()]
    events = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    kinds = [kind for at, kind in enumerate(events) if at == 0 or events[at - 1] != kind]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert kinds == ["message_start", "ping", *block, *block, "message_delta", "message_stop"]
    inputs = [
        json.loads(line[6:])["delta"].get("partial_json")
        for line in lines
        if "input_json_delta" in line
    ]
    assert inputs[0] == ""
    assert "".join(inputs) == '{"query": "x"}'
    assert len(inputs) > 2


async def test_the_example_in_chat_completions(gpt: AsyncOpenAI) -> None:
    message, finish, usage = await streamed_chat(gpt, chat_body(user(QUESTION)))
    assert [json.loads(call["function"]["arguments"]) for call in message["tool_calls"]] == [
        {"query": "google stock price"},
        {"query": "microsoft stock price"},
    ]
    assert (message["content"], finish) == ("Let me search the web for both.", "tool_calls")
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens

    body = chat_body(user(QUESTION), message, *results_of(message["tool_calls"]))
    answer, finish, _ = await streamed_chat(gpt, body)
    assert (answer, finish) == ({"role": "assistant", "content": ANSWER}, "stop")
    whole = await gpt.chat.completions.create(**body)
    assert whole.choices[0].message.content == ANSWER
    first = await gpt.chat.completions.create(**chat_body(user(QUESTION)))
    assert [call.model_dump() for call in first.choices[0].message.tool_calls or []] == message[
        "tool_calls"
    ]


async def test_parallel_calls_are_interleaved_with_id_and_name_first(gpt: AsyncOpenAI) -> None:
    pieces = []
    async for chunk in await gpt.chat.completions.create(**chat_body(user(QUESTION)), stream=True):
        assert chunk.usage is None
        pieces += [piece for choice in chunk.choices for piece in choice.delta.tool_calls or []]
    assert [piece.index for piece in pieces[:6]] == [0, 1, 0, 1, 0, 1]
    heads = [(piece.id is not None, piece.function and piece.function.name) for piece in pieces]
    assert heads[:3] == [(True, "web_search"), (True, "web_search"), (False, None)]


async def test_the_example_in_responses(gpt: AsyncOpenAI) -> None:
    output: list[Any] = []
    arguments: dict[int, str] = {}
    kinds: list[str] = []
    async for event in await gpt.responses.create(**responses_body(user(QUESTION)), stream=True):
        assert event.sequence_number == len(kinds)
        kinds.append(event.type)
        if event.type == "response.function_call_arguments.delta":
            arguments[event.output_index] = arguments.get(event.output_index, "") + event.delta
        if event.type == "response.completed":
            output = [item.model_dump(exclude_none=True) for item in event.response.output]
            assert event.response.usage is not None
            assert event.response.usage.output_tokens_details.reasoning_tokens > 0
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    assert [item["type"] for item in output] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert unseal(output[0]["encrypted_content"]) == output[0]["summary"][0]["text"]
    assert [item["arguments"] for item in output[2:]] == list(arguments.values())

    results = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": text}
        for item, text in zip(output[2:], RESULTS, strict=True)
    ]
    whole = await gpt.responses.create(**responses_body(user(QUESTION), *output, *results))
    assert whole.output_text == ANSWER


async def test_any_text_arrives_unchanged_in_every_format(
    claude: AsyncAnthropic, gpt: AsyncOpenAI
) -> None:
    blocks, _ = await streamed_blocks(claude, claude_body(user(HOSTILE)))
    assert blocks == [{"type": "text", "text": ECHO}]
    message, _, _ = await streamed_chat(gpt, chat_body(user(HOSTILE)))
    assert message["content"] == ECHO
    text = ""
    async for event in await gpt.responses.create(**responses_body(user(HOSTILE)), stream=True):
        text += event.delta if event.type == "response.output_text.delta" else ""
    assert text == ECHO


async def test_a_reply_that_is_too_long_says_so_at_its_end(
    claude: AsyncAnthropic, gpt: AsyncOpenAI
) -> None:
    question = user("write 500 words")
    _, last = await streamed_blocks(claude, claude_body(question, max_tokens=20))
    assert (last.delta.stop_reason, last.usage.output_tokens) == ("max_tokens", 20)
    _, finish, _ = await streamed_chat(gpt, chat_body(question, max_tokens=20))
    assert finish == "length"
    whole = await gpt.responses.create(**responses_body(question, max_output_tokens=20))
    assert whole.status == "incomplete"
    assert whole.incomplete_details is not None
    assert whole.incomplete_details.reason == "max_output_tokens"


async def test_refusals_have_openais_shape(gpt: AsyncOpenAI) -> None:
    from openai import BadRequestError

    with pytest.raises(BadRequestError) as refused:
        await gpt.chat.completions.create(**chat_body(user("hi"), model="demo-text"))
    assert refused.value.body == {
        "message": '"demo-text" does not support tools',
        "type": "invalid_request_error",
        "param": None,
        "code": None,
    }
    call = {"type": "function_call", "call_id": "a", "name": "web_search", "arguments": "{}"}
    with pytest.raises(BadRequestError, match=r"No tool output found for function call a\."):
        await gpt.responses.create(**responses_body(user("hi"), call))


async def test_the_text_only_model_answers_without_tools(gpt: AsyncOpenAI) -> None:
    whole = await gpt.chat.completions.create(
        model="demo-text", messages=[{"role": "user", "content": "hello"}]
    )
    assert (whole.choices[0].message.content or "").startswith("Hello!")


@pytest.mark.parametrize("checks", [check, None], ids=["strict", "lenient"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", claude_body({"role": "user", "content": "hi"})),
        ("/v1/chat/completions", chat_body({"role": "user", "content": "hi"})),
        ("/v1/responses", responses_body({"role": "user", "content": "hi"})),
    ],
)
async def test_the_text_only_model_refuses_tools_in_every_api(
    path: str, body: dict[str, Any], checks: Check | None
) -> None:
    async with await start(pace=0, check=checks) as server, httpx2.AsyncClient() as client:
        refused = await client.post(f"{server.url}{path}", json=body | {"model": "demo-text"})
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == '"demo-text" does not support tools'


async def test_both_sdks_can_list_the_models(claude: AsyncAnthropic, gpt: AsyncOpenAI) -> None:
    assert [model.id async for model in claude.models.list()] == ["demo", "demo-text"]
    assert [model.id async for model in gpt.models.list()] == ["demo", "demo-text"]


async def test_the_last_requests_are_remembered(demo: DemoServer, gpt: AsyncOpenAI) -> None:
    for number in range(51):
        await gpt.chat.completions.create(**chat_body(user(f"say: {number}")))
    assert len(demo.requests) == 50
    path, body = demo.requests[-1]
    assert (path, body["messages"]) == ("/v1/chat/completions", [user("say: 50")])


@pytest.fixture
async def http(demo: DemoServer) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=demo.url) as client:
        yield client


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff"])
async def test_a_body_that_is_not_a_json_object_is_refused(
    http: httpx2.AsyncClient, content: bytes
) -> None:
    refused = await http.post("/v1/messages", content=content)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith("The request body is not valid JSON")


async def test_the_health_check_answers(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/health")).json() == {"status": "ok"}


SLOW = {"x-parley-pace": "30"}


async def until_streaming(demo: DemoServer, count: int) -> None:
    async with asyncio.timeout(5):
        while demo.streaming != count:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_a_client_that_disconnects_ends_its_stream_at_once(
    demo: DemoServer, claude: AsyncAnthropic
) -> None:
    stream = await claude.messages.create(
        **claude_body(user(QUESTION)), stream=True, extra_headers=SLOW
    )
    assert (await anext(aiter(stream))).type == "message_start"
    assert demo.streaming == 1
    await stream.close()
    await until_streaming(demo, 0)


async def test_stopping_ends_an_open_stream_at_once() -> None:
    from openai import APIConnectionError, AsyncOpenAI

    server = await start(pace=30, check=check)
    async with AsyncOpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as client:
        stream = await client.chat.completions.create(**chat_body(user(QUESTION)), stream=True)
        await anext(aiter(stream))
        async with asyncio.timeout(1):
            await server.stop()
        assert server.streaming == 0
        with pytest.raises((APIConnectionError, httpx2.TransportError)):
            async for _ in stream:
                pass


async def test_a_port_in_use_is_an_os_error(demo: DemoServer) -> None:
    with pytest.raises(OSError, match="in use"):
        await start(port=int(demo.url.rsplit(":", 1)[1]))


async def test_only_a_strict_server_refuses_what_the_provider_would() -> None:
    body = {
        "model": "demo",
        "max_tokens": 9,
        "messages": [{"role": "assistant", "content": "I begin."}],
    }
    for checks, status in ((check, 400), (None, 200)):
        async with await start(pace=0, check=checks) as server, httpx2.AsyncClient() as client:
            assert (await client.post(f"{server.url}/v1/messages", json=body)).status_code == status


@pytest.mark.parametrize("path", APIS)
@pytest.mark.parametrize(
    "body", [{}, {"model": 7, "messages": [3], "input": 3}, {"messages": {}, "input": [[]]}]
)
async def test_a_body_for_another_api_is_refused_by_any_server(
    path: str, body: dict[str, Any]
) -> None:
    async with await start(pace=0) as server, httpx2.AsyncClient() as client:
        refused = await client.post(f"{server.url}{path}", json=body)
    assert refused.status_code == 400
    assert "not valid for this API" in refused.json()["error"]["message"]
