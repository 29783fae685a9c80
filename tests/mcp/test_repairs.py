"""Real servers' definitions and results with a broken part: Parley uses the rest and reports the
part.
"""

from __future__ import annotations

from typing import Any

import pytest

from parley.tools.results import Outcome
from parley.tools.server_settings import Protocol
from tests.mcp_servers import only, servers_of, table, tool_of

REVISIONS: tuple[Protocol, ...] = ("2025-03-26", "2026-07-28")
OBJECT = {"type": "object"}
ECHO = {"name": "echo", "inputSchema": OBJECT}
ODD = {"name": "odd", "inputSchema": OBJECT}

LOST: dict[str, tuple[Any, str]] = {
    "a number": (5, "5"),
    "nothing": (None, "null"),
    "a text": ("odd", "odd"),
    "a list": ([1], "[1]"),
    "no name": ({"inputSchema": OBJECT}, "null"),
    "a number for a name": ({**ODD, "name": 7}, "7"),
    "a text for a schema": ({**ODD, "inputSchema": "none"}, "odd"),
    "a schema of a list": ({**ODD, "inputSchema": {"type": "array"}}, "odd"),
    "true for a schema": ({**ODD, "inputSchema": True}, "odd"),
}
USED: dict[str, Any] = {
    "no schema": {"name": "odd"},
    "null for a schema": {**ODD, "inputSchema": None},
    "a schema without a type": {**ODD, "inputSchema": {}},
    "a number for a description": {**ODD, "description": 5},
    "a number for a title": {**ODD, "title": 5},
    "a text for annotations": {**ODD, "annotations": "none"},
    "a hint that is none": {**ODD, "annotations": {"readOnlyHint": "perhaps"}},
    "a text for an output schema": {**ODD, "outputSchema": "none"},
    "a text for icons": {**ODD, "icons": "none"},
    "a text for remarks": {**ODD, "_meta": "none"},
    "tasks in a way nobody knows": {**ODD, "execution": {"taskSupport": "perhaps"}},
}


async def test_a_tool_with_an_invalid_header_parameter_is_reported() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "no token"}}}
    listed = {"tools/list": {"tools": [{**ODD, "inputSchema": schema}, ECHO]}}
    async with servers_of(table(listed, protocol="2026-07-28")) as servers:
        assert (await servers.catalogue()).names() == ("echo",)
        assert only(servers).error == "left out: tools with a broken definition (1: odd)"


@pytest.mark.parametrize("protocol", REVISIONS)
@pytest.mark.parametrize("kind", LOST)
async def test_a_broken_definition_costs_only_itself_and_is_reported(
    kind: str, protocol: Protocol
) -> None:
    definition, name = LOST[kind]
    server = table({"tools/list": {"tools": [definition, ECHO]}}, protocol=protocol)
    async with servers_of(server) as servers:
        assert (await servers.catalogue()).names() == ("echo",)
        told = f"left out: tools with a broken definition (1: {name})"
        assert (only(servers).state, only(servers).error) == ("ready", told)
        assert servers.news(()) == {"table": f"MCP server 'table': {told}. See :ParleyTools"}


@pytest.mark.parametrize("protocol", REVISIONS)
@pytest.mark.parametrize("kind", USED)
async def test_a_definition_with_a_broken_optional_field_is_used(
    kind: str, protocol: Protocol
) -> None:
    answers = {
        "tools/list": {"tools": [USED[kind], ECHO], "_meta": "none"},
        "tools/call": {"content": [{"type": "text", "text": "done"}]},
    }
    async with servers_of(table(answers, protocol=protocol)) as servers:
        odd = await tool_of(servers, "odd")
        assert odd.input_schema["type"] == "object"
        assert await servers.call(odd, {}) == Outcome("ok", "done")
        assert only(servers).error == ""


TEXT = {"type": "text", "text": "one"}
BLOCKS: dict[str, tuple[Any, str]] = {
    "an unknown kind": ({"type": "video", "data": "AAAA"}, "[unknown content video]"),
    "no kind": ({"data": "AAAA"}, "[unknown content]"),
    "no kind, but a text": ({"text": "two"}, "two"),
    "a bare text": ("two", "two"),
    "a number": (5, "[unknown content]"),
    "a text without text": ({"type": "text"}, "[text that cannot be read]"),
    "a picture that is a number": (
        {"type": "image", "mimeType": "image/png", "data": 5},
        "[image image/png, 0 B]",
    ),
    "a link without a name": ({"type": "resource_link", "uri": "a:b"}, "[resource a:b]"),
    "a reader that nobody knows": (
        {**TEXT, "text": "two", "annotations": {"audience": ["bots"]}},
        "two",
    ),
}


@pytest.mark.parametrize("protocol", REVISIONS)
@pytest.mark.parametrize("kind", BLOCKS)
async def test_an_unknown_block_becomes_words_and_costs_no_other_block(
    kind: str, protocol: Protocol
) -> None:
    block, words = BLOCKS[kind]
    result = {"content": [TEXT, block, {**TEXT, "text": "three"}]}
    server = table({"tools/list": {"tools": [ECHO]}, "tools/call": result}, protocol=protocol)
    async with servers_of(server) as servers:
        called = await servers.call(await tool_of(servers, "echo"), {})
    assert called == Outcome("ok", f"one\n{words}\nthree")


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({}, "(no output)"),
        ({"content": None}, "(no output)"),
        ({"content": "one"}, "one"),
        ({"content": TEXT}, "one"),
        ({"content": [TEXT], "_meta": 5}, "one"),
        ({"structuredContent": [1]}, "[1]"),
        ({"content": [], "structuredContent": "two"}, '"two"'),
    ],
)
@pytest.mark.parametrize("protocol", REVISIONS)
async def test_a_malformed_result_is_used_as_far_as_possible(
    result: dict[str, Any], words: str, protocol: Protocol
) -> None:
    server = table({"tools/list": {"tools": [ECHO]}, "tools/call": result}, protocol=protocol)
    async with servers_of(server) as servers:
        assert await servers.call(await tool_of(servers, "echo"), {}) == Outcome("ok", words)


OUTPUT = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}
UNFIT: dict[str, dict[str, Any]] = {
    "nothing": {},
    "null": {"structuredContent": None},
    "a text for a number": {"structuredContent": {"price": "much"}},
}


@pytest.mark.parametrize("protocol", REVISIONS)
@pytest.mark.parametrize("kind", UNFIT)
async def test_a_result_that_violates_its_output_schema_is_kept(
    kind: str, protocol: Protocol
) -> None:
    answers = {
        "tools/list": {"tools": [{**ECHO, "outputSchema": OUTPUT}]},
        "tools/call": {"content": [TEXT], **UNFIT[kind]},
    }
    async with servers_of(table(answers, protocol=protocol)) as servers:
        called = await servers.call(await tool_of(servers, "echo"), {})
    assert (called.status, called.text) == ("ok", "one")


async def test_a_malformed_prompt_or_resource_is_used_as_far_as_possible() -> None:
    answers = {
        "tools/list": {"tools": []},
        "prompts/list": {"prompts": [5, {"name": "greet", "arguments": "none"}]},
        "prompts/get": {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Hello"}},
                {"role": "user", "content": {"type": "video"}},
                5,
            ]
        },
        "resources/read": {"contents": [5, {"uri": "a:b", "text": "one", "_meta": "none"}]},
    }
    async with servers_of(table(answers)) as servers:
        assert [prompt.name for prompt in await servers.prompts()] == ["greet"]
        assert await servers.get_prompt("table", "greet") == "Hello\n\n[unknown content video]"
        assert await servers.read_resource("table", "a:b") == "one"
