"""The workspace's MCP server: its definitions, and calls through a real client."""

from __future__ import annotations

import logging
from base64 import b64decode
from pathlib import Path

from mcp import Client
from mcp.server import MCPServer
from mcp_types import CallToolResult, ImageContent, TextContent

from parley.mock_server import PIXEL
from parley.models.tool_room import tokens_of
from parley.tools.catalogue import Tool
from parley.tools.convert import from_mcp
from parley.workspace.boundary import Boundary
from parley.workspace.tool_server import create_workspace_server
from parley.workspace.toolbox import Workspace
from tests.workspace.trees import work_tree

MOST_TOKENS = 1_500
READING = {"list_files", "search_text", "read_file"}
ASKING = {"diagnostics", "symbols", "definition", "references"}
FILES: dict[str, str | bytes] = {"src/app.py": "x = 1\n", "pixel.png": PIXEL}


def server(root: Path, *, has_code: bool = False) -> MCPServer:
    return create_workspace_server(lambda: Workspace(Boundary(root)), has_code=has_code)


async def tools_of(server: MCPServer) -> list[Tool]:
    async with Client(server) as client:
        listed = (await client.list_tools()).tools
    return [from_mcp(tool.model_dump(by_alias=True, exclude_none=True)) for tool in listed]


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def test_the_definitions_are_small_and_say_which_tools_only_read(tmp_path: Path) -> None:
    handlers = logging.getLogger().handlers[:]
    without, tools = (
        await tools_of(server(tmp_path)),
        await tools_of(server(tmp_path, has_code=True)),
    )
    assert {t.name for t in without if t.annotations.get("readOnlyHint")} == READING
    assert {t.name for t in tools if t.annotations.get("readOnlyHint")} == READING | ASKING
    assert [tool for tool in tools if tool.name not in ASKING] == without
    assert tokens_of(tools) <= MOST_TOKENS
    assert tokens_of([tool for tool in tools if tool.name in READING]) <= MOST_TOKENS // 4
    properties = {tool.name: list(tool.input_schema["properties"]) for tool in tools}
    assert {name: properties[name] for name in READING | ASKING} == {
        "list_files": ["path", "glob", "depth"],
        "search_text": ["pattern", "path", "glob", "is_regex", "context"],
        "read_file": ["path", "first_line", "last_line"],
        "diagnostics": ["path"],
        "symbols": ["query"],
        "definition": ["path", "line", "name"],
        "references": ["path", "line", "name"],
    }
    assert logging.getLogger().handlers == handlers


async def test_each_tool_reads_the_workspace(tmp_path: Path) -> None:
    root = work_tree(tmp_path / "tree", FILES)
    async with Client(server(root)) as client:
        tree = await client.call_tool("list_files", {})
        assert text(tree) == "pixel.png\nsrc/\n  app.py"
        found = await client.call_tool("search_text", {"pattern": r"x\s", "is_regex": True})
        assert text(found) == "src/app.py:1: x = 1"
        lines = await client.call_tool("read_file", {"path": "src/app.py"})
        assert text(lines) == "src/app.py, 1 line\n1\tx = 1"
        picture = await client.call_tool("read_file", {"path": "pixel.png"})
        image = picture.content[1]
        assert isinstance(image, ImageContent)
        assert (b64decode(image.data), image.mime_type) == (PIXEL, "image/png")


async def test_a_refusal_is_an_error_for_the_model(tmp_path: Path) -> None:
    async with Client(server(tmp_path)) as client:
        for name, arguments in (
            ("list_files", {"path": ".."}),
            ("search_text", {"pattern": "x", "path": "/etc"}),
            ("read_file", {"path": "../x"}),
        ):
            result = await client.call_tool(name, arguments)
            assert result.is_error
            assert "is outside the workspace. Paths are relative to its root" in text(result)
