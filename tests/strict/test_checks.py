"""A table of every reason for a 400: a valid body, one spoiled part, the refusal's text."""

import json
from base64 import b64encode
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from parley.demo.reading import read_anthropic, read_chat, read_responses
from parley.demo.replies import reply
from parley.demo.signing import seal, sign
from parley.demo.wire import anthropic, openai_chat, openai_responses
from tests.pictures import PDF, png
from tests.strict import check_anthropic, check_openai, check_responses

Body = dict[str, Any]
Spoil = Callable[[Body], object]

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}}


def messages_body() -> Body:
    """A tool loop in the Messages format: question, thinking and two calls, two results."""
    return {
        "model": "claude-sonnet-4-6",
        "max_tokens": 4096,
        "system": [{"type": "text", "text": "Be brief."}],
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "tools": [
            {"name": "web_search", "description": "search", "input_schema": deepcopy(SCHEMA)}
        ],
        "messages": [
            {"role": "user", "content": "two prices"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": sign("Hm.")},
                    {"type": "redacted_thinking", "data": seal("Hush.")},
                    {"type": "text", "text": "Let me search."},
                    {"type": "tool_use", "id": "a", "name": "web_search", "input": {"query": "x"}},
                    {"type": "tool_use", "id": "b", "name": "web_search", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "b",
                        "content": [{"type": "text", "text": "2"}],
                    },
                ],
            },
        ],
    }


def chat_body() -> Body:
    """The same loop in the Chat Completions format."""
    function = {"name": "web_search", "description": "search", "parameters": deepcopy(SCHEMA)}
    return {
        "model": "gpt-4.1",
        "tools": [{"type": "function", "function": function}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "two prices"},
            {"role": "assistant", "content": None, "tool_calls": [chat_call("a"), chat_call("b")]},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "tool", "tool_call_id": "b", "content": ""},
        ],
    }


def chat_call(identifier: str) -> Body:
    return {
        "id": identifier,
        "type": "function",
        "function": {"name": "web_search", "arguments": "{}"},
    }


def responses_body() -> Body:
    """The same loop in the Responses format."""
    return {
        "model": "gpt-5.5",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", "name": "web_search", "parameters": deepcopy(SCHEMA)}],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "two prices"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": seal("Hm.")},
            {"type": "function_call", "call_id": "a", "name": "web_search", "arguments": "{}"},
            {"type": "function_call", "call_id": "b", "name": "web_search", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "1"},
            {"type": "function_call_output", "call_id": "b", "output": "2"},
        ],
    }


def put(*path: Any) -> Spoil:
    """Set the value before the path's end to the value at its end."""

    def spoil(body: Body) -> None:
        *way, key, value = path
        place: Any = body
        for step in way:
            place = place[step]
        place[key] = value

    return spoil


def drop(*path: Any) -> Spoil:
    """Delete the part at `path`."""

    def spoil(body: Body) -> None:
        *way, key = path
        place: Any = body
        for step in way:
            place = place[step]
        del place[key]

    return spoil


def add(*path: Any, at: int = 9999) -> Spoil:
    """Insert the value at the end of `path` into the list before it, by default at the list's
    end."""

    def spoil(body: Body) -> None:
        *way, value = path
        place: Any = body
        for step in way:
            place = place[step]
        place.insert(at, value)

    return spoil


def turn_round(*path: Any) -> Spoil:
    """Reverse the list at `path`."""

    def spoil(body: Body) -> None:
        place: Any = body
        for step in path:
            place = place[step]
        place.reverse()

    return spoil


def all_of(*spoils: Spoil) -> Spoil:
    def spoil(body: Body) -> None:
        for each in spoils:
            each(body)

    return spoil


REPLY, RESULTS = ("messages", 1, "content"), ("messages", 2, "content")
TEXT, EMPTY, BLANK = (
    {"type": "text", "text": "more"},
    {"type": "text", "text": ""},
    {"type": "text", "text": " \n"},
)
MARK = {"type": "ephemeral"}

MESSAGES: list[tuple[str, Spoil, str]] = [
    ("no model", drop("model"), "model: Field required"),
    ("no max_tokens", drop("max_tokens"), "max_tokens: Field required"),
    ("no messages", drop("messages"), "messages: Field required"),
    ("messages no list", put("messages", "hi"), "messages: Input should be a valid array"),
    ("empty messages", put("messages", []), "messages: at least one message is required"),
    ("unknown field", put("choice", 1), "choice: Extra inputs are not permitted"),
    (
        "unknown message field",
        put("messages", 0, "choice", 1),
        "messages.0.choice: Extra inputs are not",
    ),
    (
        "unknown block field",
        put(*REPLY, 3, "index", 0),
        "tool_use.index: Extra inputs are not permitted",
    ),
    ("system role", put("messages", 0, "role", "system"), 'messages: Unexpected role "system"'),
    (
        "tool role",
        put("messages", 0, "role", "tool"),
        "messages.0.role: Input should be 'user' or 'assistant'",
    ),
    ("no content", drop("messages", 0, "content"), "messages.0.content: Field required"),
    (
        "unknown block",
        put(*REPLY, 2, "type", "texts"),
        "Input tag 'texts' found using 'type' does not match",
    ),
    ("first not user", drop("messages", 0), 'messages: first message must use the "user" role'),
    ("prefill", drop("messages", 2), "does not support assistant message prefill"),
    (
        "trailing whitespace",
        add("messages", {"role": "assistant", "content": "so "}),
        "messages: final assistant content cannot end with trailing whitespace",
    ),
    (
        "empty message",
        put("messages", 0, "content", ""),
        "messages.0: all messages must have non-empty content",
    ),
    (
        "no blocks",
        put("messages", 0, "content", []),
        "messages.0: all messages must have non-empty content",
    ),
    ("empty text", add(*RESULTS, EMPTY), "messages: text content blocks must be non-empty"),
    (
        "blank text",
        add(*RESULTS, BLANK),
        "messages: text content blocks must contain non-whitespace text",
    ),
    (
        "empty text in a result",
        put(*RESULTS, 1, "content", [EMPTY]),
        "text content blocks must be non-empty",
    ),
    ("empty system text", put("system", [EMPTY]), "system: text content blocks must be non-empty"),
    ("unanswered", drop(*RESULTS, 1), "immediately after: b. Each `tool_use` block must have"),
    (
        "text before results",
        add(*RESULTS, TEXT, at=0),
        "messages.1: `tool_use` ids were found without",
    ),
    (
        "text after calls",
        add(*REPLY, TEXT),
        "messages.1: `tool_use` ids were found without `tool_result`",
    ),
    (
        "results later",
        add("messages", {"role": "user", "content": "wait"}, at=2),
        "immediately after: a, b.",
    ),
    (
        "unknown result",
        put(*RESULTS, 1, "tool_use_id", "c"),
        "unexpected `tool_use_id` found in `tool_result`",
    ),
    (
        "answered twice",
        add(*RESULTS, {"type": "tool_result", "tool_use_id": "a"}),
        "multiple `tool_result`",
    ),
    ("one id twice", put(*REPLY, 4, "id", "a"), "messages: `tool_use` ids must be unique"),
    (
        "bad id",
        put(*REPLY, 3, "id", "a.b"),
        "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    (
        "bad called name",
        put(*REPLY, 3, "name", "a b"),
        "tool_use.name: String should match pattern",
    ),
    (
        "input no object",
        put(*REPLY, 3, "input", "{}"),
        "messages.1.content.3.input: Input should be a valid object",
    ),
    (
        "call by the user",
        put("messages", 1, "role", "user"),
        "blocks can only be in `assistant` messages",
    ),
    (
        "bad tool name",
        put("tools", 0, "name", "a.b"),
        "tools.0.custom.name: String should match pattern",
    ),
    (
        "long tool name",
        put("tools", 0, "name", "a" * 65),
        "tools.0.custom.name: String should match pattern",
    ),
    (
        "schema no object",
        put("tools", 0, "input_schema", {"type": "string"}),
        "Input should be 'object'",
    ),
    (
        "odd parameter",
        put("tools", 0, "input_schema", "properties", {"file name": {}}),
        "tools.0.custom.input_schema.properties: Property keys should match pattern",
    ),
    (
        "long parameter",
        put("tools", 0, "input_schema", "properties", {"a" * 65: {}}),
        "tools.0.custom.input_schema.properties: Property keys should match pattern",
    ),
    (
        "another draft",
        put("tools", 0, "input_schema", "$schema", "http://json-schema.org/draft-07/schema#"),
        (
            "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft "
            "2020-12"
        ),
    ),
    (
        "choices at the top",
        put("tools", 0, "input_schema", "oneOf", [{}]),
        "input_schema does not support oneOf, allOf, or anyOf at the top level",
    ),
    ("no schema", drop("tools", 0, "input_schema"), "tools.0.custom.input_schema: Field required"),
    (
        "tools alike",
        lambda body: body["tools"].append(body["tools"][0]),
        "tools: Tool names must be unique.",
    ),
    ("history without tools", drop("tools"), "blocks in `messages` must define `tools`"),
    (
        "unknown choice",
        put("tool_choice", {"type": "tool", "name": "x"}),
        "Tool 'x' not found in provided",
    ),
    (
        "forced while thinking",
        put("tool_choice", {"type": "any"}),
        "Thinking may not be enabled when",
    ),
    (
        "choice without tools",
        all_of(drop("tools"), put("tool_choice", {"type": "none"})),
        "may only be specified while providing tools",
    ),
    ("temperature", put("temperature", 1.0), "temperature: Extra inputs are not permitted"),
    ("top_k", put("top_k", 5), "top_k: Extra inputs are not permitted"),
    ("small budget", put("thinking", "budget_tokens", 1023), "greater than or equal to 1024"),
    (
        "budget too large",
        put("thinking", "budget_tokens", 4096),
        "`max_tokens` must be greater than",
    ),
    (
        "no budget",
        drop("thinking", "budget_tokens"),
        "thinking.enabled.budget_tokens: Field required",
    ),
    ("enabled on 4.7", put("model", "claude-opus-4-7"), '"thinking.type.enabled" is not supported'),
    ("enabled on 5", put("model", "claude-sonnet-5"), '"thinking.type.enabled" is not supported'),
    (
        "budget in adaptive",
        put("thinking", "type", "adaptive"),
        "thinking.adaptive.budget_tokens: Extra inputs",
    ),
    (
        "adaptive on 4.5",
        all_of(put("model", "claude-haiku-4-5-20251001"), put("thinking", {"type": "adaptive"})),
        "adaptive thinking is not supported on this model",
    ),
    (
        "never off on Opus 5.5",
        all_of(put("model", "claude-opus-5-5"), put("thinking", {"type": "disabled"})),
        '"thinking.type.disabled" is not supported',
    ),
    (
        "unknown effort",
        put("output_config", {"effort": "huge"}),
        "output_config.effort: Input should be",
    ),
    (
        "effort on 4.5",
        all_of(put("model", "claude-sonnet-4-5"), put("output_config", {"effort": "low"})),
        "This model does not support the effort parameter",
    ),
    (
        "thinking changed",
        put(*REPLY, 0, "thinking", "Ha."),
        "Invalid `signature` in `thinking` block",
    ),
    (
        "foreign signature",
        put(*REPLY, 0, "signature", "EqQB"),
        "Invalid `signature` in `thinking` block",
    ),
    (
        "unsigned",
        drop(*REPLY, 0, "signature"),
        "messages.1.content.0.thinking.signature: Field required",
    ),
    (
        "redacted changed",
        put(*REPLY, 1, "data", "EqQB"),
        "Invalid `data` in `redacted_thinking` block",
    ),
    (
        "thinking after calls",
        turn_round(*REPLY),
        "`thinking` blocks must come before `tool_use` blocks",
    ),
    (
        "loop without thinking",
        lambda body: body["messages"][1]["content"].__delitem__(slice(0, 2)),
        "Expected `th",
    ),
    (
        "five cache marks",
        lambda body: _mark(body, *["5m"] * 5),
        "maximum of 4 blocks with cache_control may be provided",
    ),
    (
        "a long cache after a short one",
        lambda body: _mark(body, "5m", "1h"),
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
    ),
    ("lone surrogate", put(*RESULTS, 0, "content", "\ud83d"), "The request body is not valid JSON"),
]

CALLS = ("messages", 2, "tool_calls")
FUNCTION = ("tools", 0, "function")

PAGE: Body = {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "Eq"}
FOUND: Body = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [PAGE]}
USED: Body = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
CLAUDE_TOOL: Body = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}


def claude_search(*path: Any, blocks: tuple[Body, ...] = (USED, FOUND)) -> Spoil:
    """Insert a search above the first call, and offer it instead of the tool of its name; the
    blocks are changed as in `put`."""

    def spoil(body: Body) -> None:
        added = deepcopy([*blocks])
        if path:
            put(*path)(added)  # type: ignore[arg-type]
        body["tools"] = [{"name": "note", "input_schema": deepcopy(SCHEMA)}, dict(CLAUDE_TOOL)]
        body["messages"][1]["content"][3:3] = added

    return spoil


LATER: Body = {"role": "assistant", "content": [FOUND, TEXT]}
CLAUDE_SEARCHES: list[tuple[str, Spoil, str]] = [
    ("foreign id", claude_search(0, "id", "ws_1"), "pattern '^srvtoolu_[a-zA-Z0-9_]+$'"),
    ("search without input", claude_search(0, "input", None), "input: Input should not be null"),
    ("result twice", claude_search(blocks=(USED, FOUND, FOUND)), "must have a single result."),
    ("call twice", claude_search(blocks=(USED, USED, FOUND)), "ids must be unique"),
    ("result without call", claude_search(blocks=(FOUND,)), "`server_tool_use` block before it."),
    ("result before call", claude_search(blocks=(FOUND, USED)), "block before it."),
    ("result as text", claude_search(1, "content", "x"), "Input should be a valid object or array"),
    ("foreign block", claude_search(1, "content", 0, "type", "text"), "does not match"),
    ("more fields", claude_search(1, "content", 0, "caller", {}), "caller: Extra inputs are not"),
    (
        "changed content",
        claude_search(1, "content", 0, "encrypted_content", ""),
        "Invalid `encrypted_content` in `search_result` block",
    ),
    ("no title", claude_search(1, "content", 0, "title", None), "title: Field required"),
    (
        "unknown error",
        claude_search(1, "content", {"type": "web_search_tool_result_error", "error_code": "x"}),
        "error_code: Input should be one of",
    ),
    (
        "text after a mixed turn",
        all_of(claude_search(blocks=(USED,)), add(*RESULTS, TEXT)),
        "was found without a corresponding `web_search_tool_result` block",
    ),
    (
        "no tool for a waiting search",
        all_of(claude_search(blocks=(USED,)), drop("tools", 1)),
        "but no `web_search` tool was provided",
    ),
    ("no tool", all_of(claude_search(), drop("tools", 1)), "no `web_search` tool was provided"),
    ("no uses", all_of(claude_search(), put("tools", 1, "max_uses", 0)), "greater than 0"),
    ("other name", all_of(claude_search(), put("tools", 1, "name", "s")), "'web_search'"),
    ("unknown variant", all_of(claude_search(), put("tools", 1, "type", "web_search_1")), "match"),
    ("with schema", all_of(claude_search(), put("tools", 1, "input_schema", {})), "Extra inputs"),
]


@pytest.mark.parametrize(("name", "change", "reason"), CLAUDE_SEARCHES)
def test_searches_that_anthropic_refuses_are_refused(name: str, change: Spoil, reason: str) -> None:
    body = messages_body()
    change(body)
    assert any(reason in each for each in check_anthropic(body)), (name, check_anthropic(body))


CHAT: list[tuple[str, Spoil, str]] = [
    ("no model", drop("model"), "you must provide a model parameter"),
    ("no messages", drop("messages"), "Missing required parameter: 'messages'."),
    ("empty messages", put("messages", []), "Invalid 'messages': empty array."),
    (
        "unknown role",
        put("messages", 1, "role", "human"),
        "Invalid value: 'human'. Supported values are:",
    ),
    ("unknown field", put("thinking", {}), "Unrecognized request argument supplied: thinking"),
    (
        "unknown message field",
        put("messages", 2, "choice", "yA"),
        "Unknown parameter: 'messages[2].choice'.",
    ),
    (
        "unknown call field",
        put(*CALLS, 0, "extra_content", {}),
        "'messages[2].tool_calls[0].extra_content'.",
    ),
    (
        "unanswered",
        drop("messages", 4),
        "The following tool_call_ids did not have response messages: b",
    ),
    (
        "results later",
        add("messages", {"role": "user", "content": "wait"}, at=3),
        "response messages: a, b",
    ),
    (
        "result without call",
        drop("messages", 2),
        "messages with role 'tool' must be a response to a preceeding",
    ),
    (
        "unknown result",
        put("messages", 4, "tool_call_id", "c"),
        "'tool_call_id' of 'c' not found in 'tool_calls'",
    ),
    (
        "answered twice",
        put("messages", 4, "tool_call_id", "a"),
        "Duplicate value for 'tool_call_id' of 'a'",
    ),
    ("one id twice", put(*CALLS, 1, "id", "a"), "Invalid 'tool_calls': duplicate id 'a'."),
    (
        "empty id",
        put(*CALLS, 0, "id", ""),
        "Invalid 'messages[2].tool_calls[0].id': string too short.",
    ),
    ("long id", put(*CALLS, 0, "id", "x" * 65), "Expected a string with maximum length 64"),
    (
        "no type",
        drop(*CALLS, 0, "type"),
        "Missing required parameter: 'messages[2].tool_calls[0].type'.",
    ),
    (
        "bad called name",
        put(*CALLS, 0, "function", "name", "a.b"),
        "string does not match pattern.",
    ),
    (
        "arguments no string",
        put(*CALLS, 0, "function", "arguments", {}),
        "function.arguments': expected string",
    ),
    (
        "no calls",
        put(*CALLS[:2], "tool_calls", []),
        "Invalid 'messages[2].tool_calls': empty array.",
    ),
    (
        "empty question",
        put("messages", 1, "content", ""),
        "Invalid 'messages[1].content': string too short.",
    ),
    ("null question", put("messages", 1, "content", None), "expected a string, got null."),
    (
        "empty part",
        put("messages", 1, "content", [EMPTY]),
        "'messages[1].content[0].text': string too short.",
    ),
    (
        "null result",
        put("messages", 3, "content", None),
        "Missing required parameter: 'messages[3].content'.",
    ),
    (
        "first not user",
        drop("messages", 1),
        "first message after the system message must have role 'user'",
    ),
    (
        "last is assistant",
        add("messages", {"role": "assistant", "content": "so"}),
        "the last message must have role 'user' or 'tool'",
    ),
    ("empty tools", put("tools", []), "Invalid 'tools': empty array."),
    (
        "bad tool name",
        put(*FUNCTION, "name", "a b"),
        "Invalid 'tools[0].function.name': string does not match",
    ),
    (
        "long tool name",
        put(*FUNCTION, "name", "a" * 65),
        "'tools[0].function.name': string too long.",
    ),
    ("no tool type", drop("tools", 0, "type"), "Missing required parameter: 'tools[0].type'."),
    (
        "schema no object",
        put(*FUNCTION, "parameters", {"type": "array"}),
        "must be a JSON Schema of 'type: \"obj",
    ),
    (
        "array without items",
        put(*FUNCTION, "parameters", "properties", {"a": {"anyOf": [{"type": ["array", "null"]}]}}),
        "array schema missing items.",
    ),
    ("choices at the top", put(*FUNCTION, "parameters", "anyOf", [{}]), "at the top level."),
    (
        "schema of draft 4",
        put(*FUNCTION, "parameters", "properties", {"a": 3}),
        "of draft 2020-12.",
    ),
    (
        "reference to nothing",
        put(*FUNCTION, "parameters", "properties", {"a": {"$ref": "#/$defs/a"}}),
        "reference '#/$defs/a' cannot be resolved.",
    ),
    (
        "schema bare",
        put(*FUNCTION, "parameters", {"type": "object"}),
        "object schema missing properties.",
    ),
    (
        "tools alike",
        lambda body: body["tools"].append(body["tools"][0]),
        "duplicate function name 'web_search'",
    ),
    ("history without tools", drop("tools"), "Missing required parameter: 'tools'."),
    (
        "unknown choice",
        put("tool_choice", {"type": "function", "function": {"name": "x"}}),
        "no function named 'x' was specified",
    ),
    (
        "choice unlike any",
        put("tool_choice", "any"),
        "Supported values are: 'none', 'auto', and 'required'.",
    ),
    (
        "choice without tools",
        all_of(drop("tools"), put("tool_choice", "none")),
        "'tool_choice' is only allowed when 'tools' are specified.",
    ),
    (
        "max_tokens of a reasoning model",
        all_of(put("model", "gpt-5"), put("max_tokens", 9)),
        "Use 'max_completion_tokens' instead.",
    ),
    (
        "temperature of a reasoning model",
        all_of(put("model", "o3"), put("temperature", 0.2)),
        "'temperature' does not support 0.2 with this model.",
    ),
    (
        "effort of a plain model",
        put("reasoning_effort", "low"),
        "'reasoning_effort' is not supported with this",
    ),
    (
        "tools of gpt-5.4",
        put("model", "gpt-5.4"),
        (
            "Function tools with reasoning_effort are not supported for gpt-5.4 in "
            "/v1/chat/completions."
        ),
    ),
    (
        "stream options alone",
        put("stream_options", {"include_usage": True}),
        "only allowed when 'stream'",
    ),
    ("lone surrogate", put("messages", 4, "content", "\udc00"), "We could not parse the JSON body"),
]

SEARCH: Body = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "find_in_page", "url": "https://a.example/", "pattern": "x"},
}


def search(*path: Any, at: int = 2) -> Spoil:
    """Insert a search, changed as in `put`, above the first call, which its reasoning led to."""
    item = deepcopy(SEARCH)
    if path:
        put(*path)(item)
    return all_of(add("tools", {"type": "web_search"}), add("input", item, at=at))


RESPONSES: list[tuple[str, Spoil, str]] = [
    ("no input", drop("input"), "Missing required parameter: 'input'."),
    (
        "chat field",
        put("messages", []),
        "In the Responses API, this parameter has moved to 'input'.",
    ),
    ("unknown field", put("choice", 1), "Unknown parameter: 'choice'."),
    (
        "unknown item",
        put("input", 2, "type", "call"),
        "Invalid value: 'call'. Supported values are:",
    ),
    ("index", put("input", 2, "index", 0), "Unknown parameter: 'input[2].index'."),
    (
        "wrong part",
        put("input", 0, "content", 0, "type", "output_text"),
        "Invalid value: 'output_text'.",
    ),
    (
        "empty text",
        put("input", 0, "content", 0, "text", ""),
        "'input[0].content[0].text': string too short.",
    ),
    ("unanswered", drop("input", 5), "No tool output found for function call b."),
    ("unasked", drop("input", 3), "No tool call found for function call output with call_id b."),
    (
        "answered twice",
        put("input", 5, "call_id", "a"),
        "Duplicate function call output found with call_id a.",
    ),
    ("foreign item id", put("input", 2, "id", "call_1"), "Expected an ID that begins with 'fc'."),
    (
        "arguments no string",
        put("input", 2, "arguments", {}),
        "'input[2].arguments': expected string.",
    ),
    ("reasoning alone", drop("input", slice(2, 6)), "without its required following item."),
    ("reasoning not ours", put("input", 1, "encrypted_content", "gAAA"), "could not be verified."),
    (
        "reasoning unsealed",
        drop("input", 1, "encrypted_content"),
        "Items are not persisted when `store`",
    ),
    (
        "item twice",
        lambda body: body["input"].insert(1, body["input"][1]),
        "Duplicate item found with id rs_1.",
    ),
    (
        "nested tool",
        put("tools", 0, {"type": "function", "function": {}}),
        "Unknown parameter: 'tools[0].func",
    ),
    (
        "unknown choice",
        put("tool_choice", {"type": "function", "name": "x"}),
        "no function named 'x'",
    ),
    ("history without tools", drop("tools"), "Missing required parameter: 'tools'."),
    ("few tokens", put("max_output_tokens", 15), "Expected a value >= 16, but got 15 instead."),
    ("temperature", put("temperature", 1), "Unsupported parameter: 'temperature' is not supported"),
    (
        "stored history",
        put("previous_response_id", "resp_1"),
        "Previous response with id 'resp_1' not found.",
    ),
    (
        "last is a call",
        add("input", {"role": "assistant", "content": "so"}),
        "the last item must be a user",
    ),
    ("lone surrogate", put("input", 5, "output", "\ud800"), "We could not parse the JSON body"),
    ("search without id", search("id", None), "Missing required parameter: 'input[2].id'."),
    ("search with a foreign id", search("id", "srv_1"), "Expected an ID that begins with 'ws'."),
    ("search with a name", search("name", "x"), "Unknown parameter: 'input[2].name'."),
    ("search with results", search("results", []), "Unknown parameter: 'input[2].results'."),
    ("unknown status of a search", search("status", "ok"), "Invalid value: 'ok'."),
    ("unknown action", search("action", "type", "buy"), "Invalid value: 'buy'."),
    (
        "action without url",
        search("action", "url", None),
        "Missing required parameter: 'input[2].action.url'.",
    ),
    (
        "action with more",
        search("action", "query", "x"),
        "Unknown parameter: 'input[2].action.query'.",
    ),
    ("queries no list", search("action", {"type": "search", "queries": "x"}), "expected array"),
    ("search without reasoning", search(at=1), "without its required 'reasoning' item."),
    (
        "reasoning without its search",
        all_of(search(at=1), drop("input", slice(3, 7))),
        "without its required following item.",
    ),
    (
        "hosted tool with a name",
        add("tools", {"type": "web_search", "name": "web_search"}),
        "Unknown parameter: 'tools.name'.",
    ),
    (
        "search in a model without it",
        all_of(search(), put("model", "gpt-4.1-nano")),
        "Hosted tool 'web_search' is not supported with gpt-4.1-nano.",
    ),
    (
        "search with little effort",
        all_of(search(), put("reasoning", {"effort": "minimal"})),
        "cannot be used with reasoning.effort 'minimal': web_search.",
    ),
    ("unknown inclusion", add("include", "sources"), "Invalid value: 'sources'."),
]


def _mark(body: Body, *times: str) -> None:
    blocks = [body["tools"][0], body["system"][0], *body["messages"][1]["content"][2:]]
    for block, ttl in zip(blocks, times, strict=False):
        block["cache_control"] = MARK | {"ttl": ttl}


CASES = [
    pytest.param(check, make, spoil, words, id=f"{form}: {name}")
    for form, check, make, table in (
        ("messages", check_anthropic, messages_body, MESSAGES),
        ("chat", check_openai, chat_body, CHAT),
        ("responses", check_responses, responses_body, RESPONSES),
    )
    for name, spoil, words in table
]


@pytest.mark.parametrize(("check", "make", "spoil", "words"), CASES)
def test_a_spoiled_body_is_refused_in_the_providers_words(
    check: Callable[[Body], list[str]], make: Callable[[], Body], spoil: Spoil, words: str
) -> None:
    body = make()
    spoil(body)
    assert any(words in reason for reason in check(body)), check(body)


def picture(content: bytes, media_type: str = "image/png", kind: str = "image") -> Body:
    """A picture, or another file, as a block in the Messages format."""
    data = b64encode(content).decode()
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}


def data_url(content: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{b64encode(content).decode()}"


def chat_pictures(*urls: str) -> Spoil:
    """Pictures in the question of a Chat Completions body."""
    return put(
        "messages", 1, "content", [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    )


def responses_pictures(*urls: str) -> Spoil:
    """Pictures in a result of a Responses body."""
    return put("input", 4, "output", [{"type": "input_image", "image_url": url} for url in urls])


QUESTION = ("messages", 0, "content")
NO_IMAGE = "The image data you provided does not represent a valid image. - "
PICTURES = [
    (
        messages_body,
        put(*QUESTION, [picture(png()), TEXT, picture(PDF, "application/pdf", "document")]),
        "",
    ),
    (messages_body, put(*RESULTS, 0, "content", [picture(png())]), ""),
    (messages_body, put(*QUESTION, [picture(png(), "image/jpeg")]), "Could not process image"),
    (messages_body, put(*QUESTION, [picture(png(), "image/bmp")]), "Could not process image"),
    (
        messages_body,
        put(*QUESTION, [picture(png(), "application/pdf", "document")]),
        "Could not process PDF",
    ),
    (
        messages_body,
        all_of(put(*QUESTION, [picture(png())]), put(*QUESTION, 0, "source", "data", "?")),
        "Could not process image",
    ),
    (
        messages_body,
        put(*QUESTION, [picture(png(more=4_000_000))]),
        "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: ",
    ),
    (
        messages_body,
        all_of(put(*RESULTS, 0, "content", [picture(png())]), put(*RESULTS, 0, "is_error", True)),
        "all content must be type 'text' if 'is_error' is true",
    ),
    (chat_body, chat_pictures(data_url(png()), data_url(png(1))), ""),
    (chat_body, chat_pictures(data_url(b"GIF8", "image/png")), NO_IMAGE),
    (chat_body, chat_pictures("data:image/png;base64,?"), NO_IMAGE),
    (chat_body, chat_pictures("file:///a.png"), NO_IMAGE),
    (responses_body, responses_pictures(data_url(png())), ""),
    (
        responses_body,
        responses_pictures(data_url(png(), "image/gif")),
        NO_IMAGE + "'input[4].output[0]'",
    ),
]


@pytest.mark.parametrize(("make", "spoil", "refusal"), PICTURES)
def test_pictures_that_match_their_type_are_accepted(
    make: Callable[[], Body], spoil: Spoil, refusal: str
) -> None:
    body = make()
    spoil(body)
    reasons = ANSWER[make][0](body)
    assert any(refusal in reason for reason in reasons) if refusal else not reasons, reasons


ANSWER = {
    messages_body: (check_anthropic, read_anthropic, anthropic),
    chat_body: (check_openai, read_chat, openai_chat),
    responses_body: (check_responses, read_responses, openai_responses),
}


@pytest.mark.parametrize("make", [messages_body, chat_body, responses_body])
def test_a_body_with_a_part_of_any_wrong_type_is_refused_or_answered(
    make: Callable[[], Body],
) -> None:
    check, read, wire = ANSWER[make]
    for path in _paths(make()):
        for value in WRONG:
            body = make()
            put(*path, deepcopy(value))(body)
            if not check(body):
                said = reply(read(body))
                assert json.dumps(wire.whole(said, body))
                assert "".join(wire.stream(said, body))


WRONG: list[Any] = [None, 7, "x", [], {}]


def _paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: Any = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path for key, part in inner for path in [(*here, key), *_paths(part, (*here, key))]]


@pytest.mark.parametrize(
    ("check", "make"),
    [
        (check_anthropic, messages_body),
        (check_openai, chat_body),
        (check_responses, responses_body),
    ],
)
def test_a_finished_tool_loop_is_accepted_and_unchanged(
    check: Callable[[Body], list[str]], make: Callable[[], Body]
) -> None:
    body = make()
    assert check(body) == []
    assert body == make()


MESSAGES_ACCEPTED: list[tuple[str, Spoil]] = [
    ("a search", claude_search()),
    ("a search without pages", claude_search(1, "content", [])),
    (
        "a search that failed",
        claude_search(
            1, "content", {"type": "web_search_tool_result_error", "error_code": "unavailable"}
        ),
    ),
    ("a search that waits for calls", claude_search(blocks=(USED,))),
    (
        "its result in the next reply",
        all_of(
            claude_search(blocks=(USED,)),
            add("messages", LATER),
            add("messages", {"role": "user", "content": "and now?"}),
        ),
    ),
    (
        "a paused reply",
        lambda body: (
            claude_search()(body),
            drop("thinking")(body),
            add("messages", {"role": "user", "content": "and now?"})(body),
            add("messages", {"role": "assistant", "content": [dict(USED, id="srvtoolu_2")]})(body),
        ),
    ),
    ("neighbours of one role", add("messages", {"role": "user", "content": "and now?"})),
    ("text after results", add(*RESULTS, TEXT)),
    ("a result without content", drop(*RESULTS, 0, "content")),
    ("tools switched off", put("tool_choice", {"type": "none"})),
    ("four cache marks", lambda body: _mark(body, "1h", "1h", "5m", "5m")),
    ("old thinking unsigned by us", all_of(put(*REPLY, 0, "signature", "x"), add(*RESULTS, TEXT))),
    (
        "adaptive without thinking",
        lambda body: (
            put("thinking", {"type": "adaptive"})(body),
            body["messages"][1]["content"].__delitem__(slice(0, 2)),
        ),
    ),
    ("an unnumbered model", put("model", "demo")),
]


@pytest.mark.parametrize(("name", "change"), MESSAGES_ACCEPTED)
def test_messages_that_the_real_api_accepts_are_accepted(name: str, change: Spoil) -> None:
    body = messages_body()
    change(body)
    assert check_anthropic(body) == [], name


RESPONSES_ACCEPTED: list[tuple[str, Spoil]] = [
    ("a search below its reasoning", search()),
    ("two searches below it", all_of(search(), search("id", "ws_2"), drop("tools", 2))),
    (
        "a search without reasoning in a model that does not reason",
        all_of(search(at=1), drop("input", 2), put("model", "gpt-4.1")),
    ),
    (
        "only the provider's search",
        lambda body: body.update(
            tools=[{"type": "web_search"}],
            include=["web_search_call.action.sources"],
            input="news?",
            tool_choice="none",
        ),
    ),
]


@pytest.mark.parametrize(("name", "change"), RESPONSES_ACCEPTED)
def test_searches_that_the_real_api_accepts_are_accepted(name: str, change: Spoil) -> None:
    body = responses_body()
    change(body)
    assert check_responses(body) == [], name


def test_an_older_api_version_accepts_a_temperature() -> None:
    body = messages_body() | {"temperature": 0.5}
    assert check_anthropic(body, version="2023-06-01") == []


def test_index_in_a_call_and_name_in_a_tool_message_are_accepted() -> None:
    body = chat_body()
    put(*CALLS, 0, "index", 0)(body)
    put("messages", 3, "name", "web_search")(body)
    assert check_openai(body) == []


def test_the_newest_gpt_accepts_tools_without_reasoning() -> None:
    assert check_openai(chat_body() | {"model": "gpt-5.6", "reasoning_effort": "none"}) == []


def test_gemini_requires_the_thought_signature_of_a_steps_first_call() -> None:
    body = chat_body()
    wanted = "Function call is missing a thought_signature in functionCall parts."
    assert check_openai(body, host="gemini") == [wanted]
    put(*CALLS, 0, "extra_content", {"google": {"thought_signature": "s"}})(body)
    assert check_openai(body, host="gemini") == []
    asked_again = deepcopy(chat_body())
    add("messages", {"role": "user", "content": "and now?"})(asked_again)
    assert check_openai(asked_again, host="gemini") == []


def test_another_host_accepts_its_own_fields() -> None:
    body = chat_body() | {"think": True}
    put("messages", 2, "reasoning_content", "Hm.")(body)
    assert check_openai(body, host="ollama") == []


def test_tuples_count_as_arrays() -> None:
    body = chat_body()
    body["messages"] = tuple(body["messages"])
    assert check_openai(body) == []
    assert check_openai(json.loads(json.dumps(body))) == []
