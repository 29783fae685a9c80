"""The MCP server `workspace` with Parley's own file and command tools.

Runs in the host's process. Their definitions are in `tools.builtin_tools`; what the tools do is in
the modules next to this one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel

from parley.errors import ParleyError
from parley.programs import program
from parley.tools.builtin_tools import DEFINITIONS
from parley.tools.results import WHOLE_TEXT
from parley.tools.server_settings import WORKSPACE
from parley.tools.tasks import ORIGIN
from parley.workspace.change_tools import CallOrigin, ChangeTools
from parley.workspace.editor_code import CodeTools
from parley.workspace.file_views import read_file
from parley.workspace.listing import list_files
from parley.workspace.searching import search_text
from parley.workspace.toolbox import Workspace


def create_workspace_server(
    workspace: Callable[[], Workspace], *, has_command: bool = True, has_code: bool = False
) -> MCPServer:
    """A server for a workspace. Each call asks for it, because the settings may have changed.

    With `has_code`, the server has the tools that ask an editor's language servers.
    """
    reading, changing = _ReadOnlyTools(workspace), _ChangingTools(workspace)
    asking = _CodeTools(workspace)
    root = logging.getLogger()
    before = root.handlers[:], root.level
    server = MCPServer(
        WORKSPACE,
        title="Workspace",
        log_level="WARNING",
        tools=[
            _tool(reading.list_files),
            _tool(reading.search_text),
            _tool(reading.read_file),
            _tool(changing.edit_file),
            _tool(changing.write_file),
            _tool(changing.move_file),
            _tool(changing.delete_file),
            *([_tool(changing.run_command)] if has_command else []),
            *(asking.tools() if has_code else []),
        ],
    )
    # The SDK sets up logging for the whole process; undo that, because it is the host's choice.
    root.handlers[:], root.level = before
    return server


def _tool(function: Callable[..., Any]) -> Tool:
    """The tool for a function, exactly as it is defined for models."""
    definition = DEFINITIONS[function.__name__]
    tool = Tool.from_function(
        function,
        title=definition["title"],
        description=definition["description"],
        annotations=ToolAnnotations.model_validate(definition["annotations"]),
        structured_output=False,
    )
    return tool.model_copy(update={"parameters": definition["inputSchema"]})


class _ReadOnlyTools:
    """The tools that change nothing. Their names and parameters go to the model."""

    def __init__(self, workspace: Callable[[], Workspace]) -> None:
        self._workspace = workspace

    async def list_files(self, path: str = ".", glob: str = "", depth: int = 0) -> str:
        """List the files of the project as a tree.

        Paths are relative to the project's root. depth limits the levels.
        """
        return await _in_thread(list_files, self._workspace().boundary, path, glob, depth)

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
                self._workspace().boundary, pattern, path, glob, is_regex, context, rg=program("rg")
            )
        )

    async def read_file(
        self, path: str, first_line: int = 1, last_line: int = 0
    ) -> list[str | Image]:
        """Read a text file with line numbers, or see a picture. last_line 0 means the end."""
        try:
            work = self._workspace()
            view = await read_file(work.boundary, work.editor, path, first_line, last_line)
        except ParleyError as error:
            raise ToolError(str(error)) from error
        picture = [Image(data=view.picture, format=view.kind)] if view.picture else []
        return [view.text, *picture]


class _CodeTools:
    """The tools that ask an editor's language servers."""

    def __init__(self, workspace: Callable[[], Workspace]) -> None:
        self._workspace = workspace

    def tools(self) -> list[Tool]:
        """The definitions."""
        return [
            _tool(self.diagnostics),
            _tool(self.symbols),
            _tool(self.definition),
            _tool(self.references),
        ]

    async def diagnostics(self, path: str = "") -> str:
        """Get errors and warnings of the editor's language servers, for one open file or for all."""
        return await self._ask(lambda tools: tools.diagnostics(path))

    async def symbols(self, query: str) -> str:
        """Find functions, classes and other symbols of the project by name."""
        return await self._ask(lambda tools: tools.symbols(query))

    async def definition(self, path: str, line: int, name: str) -> str:
        """Find where a name that this line contains is defined."""
        return await self._ask(lambda tools: tools.definition(path, line, name))

    async def references(self, path: str, line: int, name: str) -> str:
        """Find all uses of a name that this line contains."""
        return await self._ask(lambda tools: tools.references(path, line, name))

    async def _ask(self, question: Callable[[CodeTools], Awaitable[str]]) -> str:
        work = self._workspace()
        if work.code is None:
            raise ToolError("there is no editor to ask")
        try:
            return await question(CodeTools(work.boundary, work.editor, work.code))
        except ParleyError as error:
            raise ToolError(str(error)) from error


class Replacing(BaseModel):
    """One edit, as the model writes it."""

    old: str
    new: str
    all: bool = False


class _ChangingTools:
    """The tools that change files, or may change anything."""

    def __init__(self, workspace: Callable[[], Workspace]) -> None:
        self._workspace = workspace

    async def edit_file(self, path: str, edits: list[Replacing], ctx: Context) -> str:
        """Replace text in a file. old must match one place exactly, or set all.

        Edits apply in order. Returns the diff.
        """
        values = [edit.model_dump() for edit in edits]
        return await self._change("edit_file", {"path": path, "edits": values}, ctx)

    async def write_file(self, path: str, content: str, ctx: Context) -> str:
        """Create a file, or replace all of its text. Prefer edit_file for existing files."""
        return await self._change("write_file", {"path": path, "content": content}, ctx)

    async def move_file(self, path: str, to: str, ctx: Context) -> str:
        """Move or rename a file."""
        return await self._change("move_file", {"path": path, "to": to}, ctx)

    async def delete_file(self, path: str, ctx: Context) -> str:
        """Delete a file."""
        return await self._change("delete_file", {"path": path}, ctx)

    async def run_command(
        self, command: str, ctx: Context, directory: str = ".", timeout_s: float = 0
    ) -> CallToolResult:
        """Run a shell command in the project, without input. Returns exit code and output."""
        work, origin = self._workspace(), _origin(ctx)
        if work.command is None or origin is None:
            raise ToolError("commands are switched off in the settings")

        async def on_output(line: str, seconds: float) -> None:
            await ctx.report_progress(seconds, None, line or None)

        try:
            text, whole = await work.command.run(
                command, directory, timeout_s, work.recorder(origin), on_output
            )
        except ParleyError as error:
            raise ToolError(str(error)) from error
        meta = {WHOLE_TEXT: whole} if whole else None
        return CallToolResult(content=[TextContent(text=text)], _meta=meta)

    async def _change(self, tool: str, arguments: dict[str, Any], ctx: Context) -> str:
        work = self._workspace()
        tools = ChangeTools(work.boundary, work.editor, work.recorder)
        try:
            return await tools.run(tool, arguments, _origin(ctx))
        except ParleyError as error:
            raise ToolError(str(error)) from error


def _origin(ctx: Context) -> CallOrigin | None:
    """The approved call that a request is for; None if Parley did not send the request."""
    meta: Any = ctx.request_context.meta or {}
    return CallOrigin.of(meta.get(ORIGIN) or {})


async def _in_thread(function: Callable[..., str], *arguments: Any) -> str:
    """The result of a function that reads files. Raises ToolError, which the model receives."""
    try:
        return await asyncio.to_thread(function, *arguments)
    except ParleyError as error:
        raise ToolError(str(error)) from error
