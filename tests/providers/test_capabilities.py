"""Requests are repeated in the form that their refusal asks for, and the client remembers it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from parley.chat.options import ThinkingSettings
from parley.chat.reader import parse
from parley.engine import End, run_turn
from parley.errors import ModelError
from parley.models.events import Aside, Event, RateLimits, TextDelta
from parley.models.model_facts import ModelFacts
from parley.models.request import Request, TextTools
from parley.models.searches import sealed
from parley.models.text_tools.template import builtin_templates, template_for
from parley.providers.client import ProviderClient
from parley.runtime.app import App
from parley.runtime.asyncio_ports import Callbacks
from parley.settings.values import Agent, ProviderSettings, Settings
from parley.storage.chat_file import TextDocument
from parley.tools.catalogue import Catalogue, Tool
from tests.chats import TOOLS
from tests.fakes import LoggedTools, ScriptedModel, Turns
from tests.faulty_providers import QUESTION, FaultyProviders, ProviderModel
from tests.faulty_server import SAYS, STREAM, Response, event
from tests.ledgers import open_ledger

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"


def refused(status: int, message: str) -> Response:
    body = event({"error": {"message": message}}).removeprefix(b"data: ")
    return Response([body], status, {"content-type": "application/json"})


def fresh(faulty: FaultyProviders) -> ProviderClient:
    """A client that has learned nothing yet."""
    return ProviderClient({"FAULTY_KEY": "k"}, faulty.client._builtin_url)


async def events_of(
    client: ProviderClient, provider: ProviderSettings, request: Request
) -> list[Event]:
    events = [each async for each in client.stream(provider, request, print)]
    return [each for each in events if isinstance(each, TextDelta | Aside | RateLimits)]


@pytest.mark.parametrize(
    ("model", "first", "second", "kind", "name"),
    [
        ("gpt-4.1", CHAT, RESPONSES, "responses", "the Responses API"),
        ("gpt-5.6", RESPONSES, CHAT, "chat", "Chat Completions"),
    ],
)
async def test_a_refusal_switches_the_api_which_is_remembered_and_reported_once(
    faulty: FaultyProviders, model: str, first: str, second: str, kind: str, name: str
) -> None:
    client, provider = fresh(faulty), faulty.provider("chat", api="auto", official=True)
    words = f"This model is only supported in {second[1:]} and not in {first[1:]}."
    faulty.server.plan(refused(404, words), Response(SAYS[kind]("Whole")))
    request = Request(QUESTION, 0, provider.name, model)
    notice = Aside(f"{model} is reached through {name}, as faulty requires")
    assert await events_of(client, provider, request) == [notice, TextDelta("Whole")]
    assert faulty.server.paths == [first, second]
    assert await events_of(client, provider, request) == [TextDelta("Whole")]
    assert faulty.server.paths == [first, second, second]
    assert client.settled(request).api == kind
    await client.close()


async def test_a_chat_refused_as_too_long_is_shortened_and_so_are_later_ones(
    faulty: FaultyProviders,
) -> None:
    client, provider = fresh(faulty), faulty.provider("anthropic")
    exchanges = "".join(
        f"💬: {n} {'word ' * 500}\n\n🤖:\n\nfine\n\n📝: sum {n}\n\n" for n in range(4)
    )
    request = Request(parse(f"{exchanges}💬: and now?\n"), 4, "faulty", "some-model")
    faulty.server.plan(
        refused(400, "prompt is too long: 3000 tokens > 2000 maximum"),
        Response(SAYS["anthropic"]("A")),
    )
    assert await events_of(client, provider, request) == [TextDelta("A")]
    first, second = faulty.server.requests
    assert "[Previous messages omitted]" not in str(first)
    assert str(second).count("[Previous messages omitted]") == 3
    assert await events_of(client, provider, request) == [TextDelta("A")]
    assert faulty.server.requests[2:] == [second]
    await client.close()


LONG = f"💬: {'word ' * 500}\n\n🤖:\n\nfine\n\n💬: and now?\n"


async def test_a_request_refused_at_any_length_teaches_nothing(faulty: FaultyProviders) -> None:
    client, provider = fresh(faulty), faulty.provider("anthropic")
    request = Request(
        parse(f"💬: {'word ' * 500}\n\n🤖:\n\nfine\n\n💬: and now?\n"), 1, "faulty", "some-model"
    )
    faulty.server.plan(refused(400, "prompt is too long"))
    with pytest.raises(ModelError):
        await events_of(client, provider, request)
    assert len(faulty.server.requests) > 1
    assert client.settled(request) == request
    await client.close()


@pytest.mark.parametrize("kind", ["anthropic", "chat", "responses"])
async def test_a_chat_refused_as_too_long_in_the_stream_is_shortened(
    faulty: FaultyProviders, kind: str
) -> None:
    client, provider = fresh(faulty), faulty.provider(kind)
    request = Request(
        parse(f"💬: {'word ' * 500}\n\n🤖:\n\nfine\n\n💬: and now?\n"), 1, "faulty", "some-model"
    )
    error = {
        "code": "context_length_exceeded",
        "message": "Your input exceeds the context window of this model.",
    }
    stream = (
        {"type": "response.failed", "response": {"error": error}}
        if kind == "responses"
        else {"type": "error", "error": error}
    )
    faulty.server.plan(Response([event(stream)]), Response(SAYS[kind]("Whole")))
    assert await events_of(client, provider, request) == [TextDelta("Whole")]
    assert "[Previous messages omitted]" in str(faulty.server.requests[1])
    await client.close()


def no_room(text: str) -> list[bytes]:
    """A reply that ran out of room."""
    stop = {"type": "message_delta", "delta": {"stop_reason": "model_context_window_exceeded"}}
    return [*SAYS["anthropic"](text)[:4], event(stop), event({"type": "message_stop"})]


async def test_after_a_reply_ran_out_of_room_the_next_request_is_smaller(
    faulty: FaultyProviders,
) -> None:
    exchanges = "".join(
        f"💬: {n} {'word ' * 500}\n\n🤖:\n\nfine\n\n📝: sum {n}\n\n" for n in range(4)
    )
    turns = Turns(
        f"{exchanges}💬: and now?\n", ScriptedModel(), LoggedTools(TOOLS), provider="roomless"
    )
    turns.ports.model.stream = ProviderModel(faulty, faulty.provider("anthropic"), turns).stream  # type: ignore[method-assign]
    faulty.plan(Response(no_room("Half")))
    assert (await turns.run()).kind == "interrupted"
    assert (
        "Half\n\n🔒: [Interrupted: the chat is larger than the model's context window]"
        in turns.text
    )
    faulty.plan(Response(SAYS["anthropic"]("Whole")))
    assert await turns.run() == End("complete")
    assert str(faulty.server.requests[0]).count("[Previous messages omitted]") == 2


async def test_limits_in_headers_are_reported(faulty: FaultyProviders) -> None:
    headers = {
        "anthropic-ratelimit-requests-remaining": "9",
        "X-RateLimit-Reset-Tokens": "6ms",
        "x-other": "1",
    }
    faulty.plan(Response(SAYS["chat"]("Whole"), headers={**STREAM, **headers}))
    limits = RateLimits((("requests-remaining", "9"), ("reset-tokens", "6ms")))
    events = await events_of(
        faulty.client, faulty.provider("chat"), Request(QUESTION, 0, "faulty", "m")
    )
    assert events == [limits, TextDelta("Whole")]


@pytest.mark.parametrize(
    ("kind", "model", "thinking", "has_notice"),
    [
        ("anthropic", "claude-3-5-haiku-latest", {"budget_tokens": 2000}, True),
        ("chat", "gemini-3-pro", {"effort": "high"}, True),
        ("chat", "gemini-3-pro", {"effort": "high", "enabled": False}, False),
        ("chat", "gemini-3-pro", {}, False),
        ("anthropic", "claude-sonnet-5-5", {"budget_tokens": 2000}, False),
    ],
)
async def test_unsupported_thinking_is_left_out_and_reported_once(
    faulty: FaultyProviders, kind: str, model: str, thinking: dict[str, Any], has_notice: bool
) -> None:
    client = fresh(faulty)
    faulty.server.plan(Response(SAYS[kind]("Whole")))
    request = Request(QUESTION, 0, "faulty", model, thinking=ThinkingSettings(**thinking))
    words = f"Parley cannot control the thinking of {model}, so the setting `thinking` is ignored"
    assert await events_of(client, faulty.provider(kind), request) == [
        *([Aside(words)] if has_notice else []),
        TextDelta("Whole"),
    ]
    assert await events_of(client, faulty.provider(kind), request) == [TextDelta("Whole")]
    assert ("thinking" in faulty.server.requests[0]) == (model == "claude-sonnet-5-5")
    assert "reasoning_effort" not in faulty.server.requests[0]
    await client.close()


async def test_the_user_is_told_once_about_unsent_parts_of_a_chat(
    faulty: FaultyProviders,
) -> None:
    exchanges = "".join(
        f"💬: {n} {'word ' * 50_000}\n\n🤖:\n\nfine\n\n📝: sum {n}\n\n" for n in range(3)
    )
    lab = ProviderSettings("lab", base_url=f"{faulty.server.url}/v1")
    agent = Agent("A", "lab", "gpt-4o")
    app = App(Settings(agent="A", agents=(agent,), providers={"lab": lab}), {}, open_ledger())
    asides = list[str]()

    def on_event(what: object) -> None:
        if isinstance(what, Aside):
            asides.append(what.text)

    document = TextDocument(f"{exchanges}💬: and now?\n", 10**6)
    faulty.server.plan(Response(SAYS["chat"]("Fine.")))
    for _ in range(3):
        ports = app.ports(document, "", Callbacks(on_event=on_event))
        assert await run_turn(ports, app.resolve(None)) == End("complete")
        document = TextDocument(f"{document.text}and then?\n", 10**6)
    assert asides == [
        "this chat is too long for gpt-4o; not sent: all of 2 exchanges except for the 📝: line"
    ]
    assert str(faulty.server.requests[0]).count("[Previous messages omitted]") == 2
    await app.close()


REFUSED_TOOL = {
    "anthropic": "tools.0.custom.input_schema: JSON schema is invalid.",
    "chat": "Invalid schema for function 'read_file': array schema missing items.",
    "responses": "Invalid schema for function 'read_file': array schema missing items.",
}


@pytest.mark.parametrize("kind", REFUSED_TOOL)
async def test_a_refused_tool_is_left_out_from_then_on_and_reported_once(
    faulty: FaultyProviders, kind: str
) -> None:
    client, provider = fresh(faulty), faulty.provider(kind)
    faulty.server.plan(refused(400, REFUSED_TOOL[kind]), Response(SAYS[kind]("Whole")))
    request = Request(QUESTION, 0, provider.name, "gpt-4.1", catalogue=TOOLS)
    notice, *said = await events_of(client, provider, request)
    assert isinstance(notice, Aside)
    assert notice.text.startswith("faulty refused the tool read_file (")
    assert said == [TextDelta("Whole")]
    assert await events_of(client, provider, request) == [TextDelta("Whole")]
    offered = [json.dumps(body["tools"]) for body in faulty.server.requests]
    assert ["read_file" in tools for tools in offered] == [True, False, False]
    assert all("web_search" in tools for tools in offered)
    assert client.settled(replace(request, model="gpt-4o")).catalogue == TOOLS
    await client.close()


UNSUPPORTED = "Unsupported parameter: '{}' is not supported with this model."


def in_stream(kind: str, message: str) -> Response:
    """The refusal as the first event of a stream."""
    error = {"type": "invalid_request_error", "message": message}
    failed = {"type": "response.failed", "response": {"error": error}}
    return Response([event(failed if kind == "responses" else {"type": "error", "error": error})])


REFUSED_FIELDS = [
    ("chat", "temperature", "temperature", "the setting `temperature`"),
    ("responses", "temperature", "temperature", "the setting `temperature`"),
    ("chat", "reasoning_effort", "reasoning_effort", "the setting `thinking`"),
    ("responses", "reasoning.summary", "reasoning", "the setting `thinking.show`"),
    ("anthropic", "output_config", "output_config", "the setting `thinking`"),
    ("anthropic", "top_k", "top_k", "the parameter `top_k`"),
    ("chat", "top_p", "top_p", "the parameter `top_p`"),
    ("chat", "stop", "stop", "the parameter `stop`"),
    (
        "responses",
        "parallel_tool_calls",
        "parallel_tool_calls",
        "the parameter `parallel_tool_calls`",
    ),
]
MODELS = {"temperature": "my-model", "output_config": "claude-sonnet-5-5"}
OF_USER = {"top_k": 40, "top_p": 0.5, "stop": ["END"], "parallel_tool_calls": False}


@pytest.mark.parametrize("is_in_stream", [False, True])
@pytest.mark.parametrize(("kind", "named", "field", "what"), REFUSED_FIELDS)
async def test_a_refused_field_is_left_out_from_then_on_and_reported_once(
    faulty: FaultyProviders, kind: str, named: str, field: str, what: str, is_in_stream: bool
) -> None:
    client, provider = fresh(faulty), faulty.provider(kind)
    words = UNSUPPORTED.format(named)
    refusal = in_stream(kind, words) if is_in_stream else refused(400, words)
    faulty.server.plan(refusal, Response(SAYS[kind]("Whole")))
    request = Request(
        QUESTION,
        0,
        provider.name,
        MODELS.get(field, "gpt-5.1" if kind != "anthropic" else "my-model"),
        temperature=0.5 if field == "temperature" else None,
        thinking=ThinkingSettings(effort="high")
        if "the setting `thinking" in what
        else ThinkingSettings(),
        parameters={field: OF_USER[field], "seed": 7} if field in OF_USER else {"seed": 7},
    )
    notice, *said = await events_of(client, provider, request)
    assert isinstance(notice, Aside)
    assert notice.text.startswith(f"faulty refused {what} (")
    assert notice.text.endswith(f"): Parley asks {request.model} without it")
    assert said == [TextDelta("Whole")]
    assert await events_of(client, provider, request) == [TextDelta("Whole")]
    first, second, third = faulty.server.requests
    assert field in first
    assert second == third
    assert second == {k: v for k, v in first.items() if k != field} | (
        {"reasoning": {"effort": "high"}} if named == "reasoning.summary" else {}
    )
    assert second["seed"] == 7
    await client.close()


async def test_the_limit_of_a_reply_gets_the_name_that_the_model_knows(
    faulty: FaultyProviders,
) -> None:
    client, provider = fresh(faulty), faulty.provider("chat")
    words = f"{UNSUPPORTED.format('max_tokens')} Use 'max_completion_tokens' instead."
    faulty.server.plan(refused(400, words), Response(SAYS["chat"]("Whole")))
    request = Request(QUESTION, 0, provider.name, "my-model", max_tokens=77, quirks=("max_tokens",))
    assert await events_of(client, provider, request) == [TextDelta("Whole")]
    first, second = faulty.server.requests
    assert (first["max_tokens"], second.get("max_tokens")) == (77, None)
    assert second["max_completion_tokens"] == 77
    await client.close()


async def test_a_limit_is_never_left_out(faulty: FaultyProviders) -> None:
    client, provider = fresh(faulty), faulty.provider("chat")
    faulty.server.plan(
        refused(400, UNSUPPORTED.format("max_tokens")),
        refused(400, UNSUPPORTED.format("max_completion_tokens")),
    )
    request = Request(QUESTION, 0, provider.name, "my-model", max_tokens=7, quirks=("max_tokens",))
    with pytest.raises(ModelError, match="max_completion_tokens"):
        await events_of(client, provider, request)
    assert all({"max_tokens", "max_completion_tokens"} & b.keys() for b in faulty.server.requests)
    assert len(faulty.server.requests) <= 3
    await client.close()


@pytest.mark.parametrize("kind", ["anthropic", "chat", "responses"])
async def test_a_value_is_refused_but_another_one_is_sent(
    faulty: FaultyProviders, kind: str
) -> None:
    client, provider = fresh(faulty), faulty.provider(kind)
    faulty.server.plan(
        refused(400, "top_k: Input should be less than or equal to 20"),
        Response(SAYS[kind]("Whole")),
    )
    request = Request(QUESTION, 0, provider.name, "my-model", parameters={"top_k": 40})
    assert len(await events_of(client, provider, request)) == 2
    request = replace(request, parameters={"top_k": 20})
    assert await events_of(client, provider, request) == [TextDelta("Whole")]
    assert [body.get("top_k") for body in faulty.server.requests] == [40, None, 20]
    await client.close()


async def test_a_refusal_that_names_nothing_is_an_error(faulty: FaultyProviders) -> None:
    client, provider = fresh(faulty), faulty.provider("chat")
    faulty.server.plan(refused(400, "the server does not support this"))
    request = Request(QUESTION, 0, provider.name, "my-model", temperature=0.5)
    with pytest.raises(ModelError):
        await events_of(client, provider, request)
    assert len(faulty.server.requests) == 1
    await client.close()


@pytest.mark.parametrize(
    ("kind", "model", "is_sent"),
    [
        ("anthropic", "claude-sonnet-5-5", False),
        ("chat", "gpt-5.1", False),
        ("responses", "gpt-5.6", False),
        ("chat", "my-model", True),
        ("responses", "gpt-4.1", True),
    ],
)
async def test_a_temperature_that_no_request_may_have_is_reported_once(
    faulty: FaultyProviders, kind: str, model: str, is_sent: bool
) -> None:
    client, provider = fresh(faulty), faulty.provider(kind)
    faulty.server.plan(Response(SAYS[kind]("Whole")))
    request = Request(QUESTION, 0, provider.name, model, temperature=0.5)
    words = f"{model} accepts no temperature, so the setting `temperature` is ignored"
    notices = [] if is_sent else [Aside(words)]
    assert await events_of(client, provider, request) == [*notices, TextDelta("Whole")]
    assert await events_of(client, provider, request) == [TextDelta("Whole")]
    assert [("temperature" in body) for body in faulty.server.requests] == [is_sent] * 2
    await client.close()


@pytest.mark.parametrize("kind", ["anthropic", "chat", "responses"])
async def test_parameters_that_parley_sets_itself_are_reported_once(
    faulty: FaultyProviders, kind: str
) -> None:
    client, provider = fresh(faulty), faulty.provider(kind)
    faulty.server.plan(Response(SAYS[kind]("Whole")))
    parameters = {"stream": False, "metadata": {"user": "a\ud800"}, "model": "other"}
    request = Request(QUESTION, 0, provider.name, "my-model", parameters=parameters)
    notices = [
        Aside(f"the parameter {name} is ignored: Parley sets it itself")
        for name in ("model", "stream")
    ]
    assert await events_of(client, provider, request) == [*notices, TextDelta("Whole")]
    assert await events_of(client, provider, request) == [TextDelta("Whole")]
    for body in faulty.server.requests:
        assert (body["model"], body["stream"]) == ("my-model", True)
        assert body["metadata"] == {"user": "a\ufffd"}
    await client.close()


NO_SEARCH = [
    ("responses", "Hosted tool 'web_search' is not supported with gpt-4.1-nano.", 400),
    (
        "responses",
        "The following tools cannot be used with reasoning.effort 'minimal': web_search.",
        400,
    ),
    ("anthropic", "Web search is not enabled for your organization.", 403),
    ("anthropic", "'claude-x' does not support the tool 'web_search_20250305'.", 400),
]


@pytest.mark.parametrize(("kind", "words", "status"), NO_SEARCH)
async def test_a_refused_search_is_left_out_from_then_on_and_reported_once(
    faulty: FaultyProviders, kind: str, words: str, status: int
) -> None:
    client, provider = fresh(faulty), faulty.provider(kind)
    faulty.server.plan(refused(status, words), Response(SAYS[kind]("Whole")))
    request = Request(QUESTION, 0, provider.name, "my-model", web_search=True)
    notice, *said = await events_of(client, provider, request)
    assert isinstance(notice, Aside)
    assert notice.text.startswith("faulty refused to search the web (")
    assert notice.text.endswith("), so Parley asks my-model without it")
    assert said == [TextDelta("Whole")]
    assert await events_of(client, provider, request) == [TextDelta("Whole")]
    _, second, third = faulty.server.requests
    assert second == third
    assert "web_search" not in json.dumps(second)
    await client.close()


async def test_a_model_of_chat_completions_searches_through_the_other_api(
    faulty: FaultyProviders,
) -> None:
    client, provider = fresh(faulty), faulty.provider("chat", api="auto", official=True)
    faulty.server.plan(Response(SAYS["responses"]("Whole")))
    request = Request(QUESTION, 0, provider.name, "gpt-4.1", web_search=True)
    assert await events_of(client, provider, request) == [TextDelta("Whole")]
    assert faulty.server.paths == [RESPONSES]
    assert faulty.server.requests[0]["tools"] == [{"type": "web_search"}]
    assert faulty.server.requests[0]["include"] == ["web_search_call.action.sources"]
    await client.close()


def searches_by(name: str, description: str) -> Catalogue:
    return Catalogue.of([Tool("web", name, description=description)])


async def test_a_model_whose_tools_are_text_does_not_search(faulty: FaultyProviders) -> None:
    client, provider = fresh(faulty), faulty.provider("responses")
    faulty.server.plan(Response(SAYS["responses"]("Whole")))
    as_text = TextTools("json", template_for("m", builtin_templates()), "single", 99)
    request = Request(QUESTION, 0, provider.name, "m", web_search=True, text_tools=as_text)
    notice, *_ = await events_of(client, provider, request)
    assert isinstance(notice, Aside)
    assert notice.text.startswith("m cannot search the web in Parley")
    assert "tools" not in faulty.server.requests[0]
    await client.close()


async def test_a_model_that_cannot_search_according_to_its_list_is_not_asked_to(
    faulty: FaultyProviders,
) -> None:
    client, provider = fresh(faulty), faulty.provider("anthropic")
    faulty.server.plan(Response(SAYS["anthropic"]("Whole")))
    facts = ModelFacts(searches=False)
    request = Request(QUESTION, 0, provider.name, "claude-x", web_search=True, facts=facts)
    notice, *_ = await events_of(client, provider, request)
    assert isinstance(notice, Aside)
    assert notice.text.startswith("claude-x cannot search the web in Parley")
    assert "tools" not in faulty.server.requests[0]
    await client.close()


async def test_a_refused_search_of_the_past_is_left_out_and_the_model_may_search_again(
    faulty: FaultyProviders,
) -> None:
    client, provider = fresh(faulty), faulty.provider("anthropic")
    words = "messages.1.content.1: Invalid `encrypted_content` in `search_result` block"
    faulty.server.plan(refused(400, words), Response(SAYS["anthropic"]("Whole")))
    call = '{"id":"srvtoolu_1","function":{"name":"web_search","arguments":"{}"}}'
    path = f"a.assets/{0:064x}.txt"
    found = f"❓:[provider] `{call}`\n\n🛠️: [web_search][srvtoolu_1] [1 kB]({path})\n\n`x`\n"
    chat = parse(f"💬: q\n\n🤖:\n\n{found}\nSo.\n\n💬: q\n")
    pictures = {path: sealed("anthropic", {"content": []}).encode()}
    request = Request(chat, 1, provider.name, "claude-x", web_search=True, pictures=pictures)
    await events_of(client, provider, request)
    first, second = map(json.dumps, faulty.server.requests)
    assert ("web_search_tool_result" in first, "web_search_tool_result" in second) == (True, False)
    assert "web_search_20250305" in second
    await client.close()


@pytest.mark.parametrize(
    ("further", "is_told"),
    [
        ({}, True),
        ({"catalogue": searches_by("find_files", "Searches the folder.")}, True),
        ({"catalogue": searches_by("web_search", "Looks it up.")}, False),
        ({"catalogue": searches_by("brave", "Search the internet.")}, False),
        ({"tools_on": False}, False),
        ({"web_search": False}, False),
    ],
)
async def test_the_user_is_told_once_that_neither_the_provider_nor_a_tool_can_search(
    faulty: FaultyProviders, further: dict[str, Any], is_told: bool
) -> None:
    client, provider = fresh(faulty), faulty.provider("chat", api="auto")
    faulty.server.plan(Response(SAYS["chat"]("Whole")))
    request = Request(QUESTION, 0, provider.name, "m", **({"web_search": True} | further))
    first, second = [await events_of(client, provider, request) for _ in range(2)]
    notices = [event.text for event in first if isinstance(event, Aside)]
    assert [notice.split(",")[0] for notice in notices] == (
        ["faulty cannot search the web in Parley"] if is_told else []
    )
    assert second == [TextDelta("Whole")]
    assert "search" not in json.dumps([{**body, "tools": 0} for body in faulty.server.requests])
    await client.close()
