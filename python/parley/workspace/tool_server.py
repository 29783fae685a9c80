"""The MCP server `workspace`: the definitions of Parley's own file tools.

Runs in the host's process. What the tools do is in the modules next to it.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations

from parley.errors import ParleyError
from parley.programs import program
from parley.tools.server_settings import WORKSPACE
from parley.workspace.boundary import Boundary
from parley.workspace.editor_files import EditorFiles, NoEditor
from parley.workspace.file_views import read_file
from parley.workspace.listing import list_files
from parley.workspace.searching import search_text

_READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder that the tools work in, and the editor's files."""

    root: Path
    editor: EditorFiles = field(default_factory=NoEditor)


def create_workspace_server(workspace: Workspace) -> MCPServer:
    """A server for this workspace."""
    tools = _ReadOnlyTools(Boundary(workspace.root), workspace.editor)
    root = logging.getLogger()
    before = root.handlers[:], root.level
    server = MCPServer(
        WORKSPACE,
        title="Workspace",
        log_level="WARNING",
        tools=[
            _tool(tools.list_files, "List files", _READ_ONLY),
            _tool(tools.search_text, "Search text", _READ_ONLY),
            _tool(tools.read_file, "Read file", _READ_ONLY),
        ],
    )
    # The SDK sets up logging for the whole process; undo that, because it is the host's choice.
    root.handlers[:], root.level = before
    return server


def _tool(function: Callable[..., Any], title: str, annotations: ToolAnnotations) -> Tool:
    """The tool for a function; its docstring is the description."""
    tool = Tool.from_function(
        function,
        title=title,
        description=" ".join((function.__doc__ or "").split()),
        annotations=annotations,
        structured_output=False,
    )
    return tool.model_copy(update={"parameters": _without_titles(tool.parameters)})


def _without_titles(schema: Any) -> Any:
    """A schema without the titles that the SDK makes from the parameters' names."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_titles(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


class _ReadOnlyTools:
    """The tools that change nothing. Their names, parameters and docstrings go to the model."""

    def __init__(self, boundary: Boundary, editor: EditorFiles) -> None:
        self._boundary = boundary
        self._editor = editor

    async def list_files(self, path: str = ".", glob: str = "", depth: int = 0) -> str:
        """List the files of the project as a tree.

        Paths are relative to the project's root. depth limits the levels.
        """
        return await _in_thread(list_files, self._boundary, path, glob, depth)

    async def search_text(
        self,
        pattern: str,
        path: str = ".",
        glob: str = "",
        is_regex: bool = False,
        context: int = 0,
    ) -> str:
        """Find the lines of files that contain a pattern.

        context adds lines around each match. Leaves out hidden files and files that Git ignores.
        """
        return await _in_thread(
            lambda: search_text(
                self._boundary, pattern, path, glob, is_regex, context, rg=program("rg")
            )
        )

    async def read_file(
        self, path: str, first_line: int = 1, last_line: int = 0
    ) -> list[str | Image]:
        """Read a text file with line numbers, or see a picture. last_line 0 means the end."""
        try:
            view = await read_file(self._boundary, self._editor, path, first_line, last_line)
        except ParleyError as error:
            raise ToolError(str(error)) from error
        picture = [Image(data=view.picture, format=view.kind)] if view.picture else []
        return [view.text, *picture]


async def _in_thread(function: Callable[..., str], *arguments: Any) -> str:
    """The result of a function that reads files. Raises ToolError, which the model receives."""
    try:
        return await asyncio.to_thread(function, *arguments)
    except ParleyError as error:
        raise ToolError(str(error)) from error
