"""A connected MCP server as values of this project: what it offers, what it answers.

Knows the SDK's types, which stop here; not how the server is reached nor when it is started.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from parley.drivers.owner import LostError, Progress, Watch
from parley.tools.catalogue import Tool
from parley.tools.convert import from_mcp
from parley.tools.results import Outcome, result_text
from parley.tools.servers import ServerSettings

if TYPE_CHECKING:
    from mcp import Client

_CONNECTION_CLOSED = -32000
_METHOD_NOT_FOUND = -32601
_INVALID_PARAMS = -32602


class Guest:
    """A connected server as the values of this project."""

    def __init__(self, client: "Client", settings: ServerSettings, watch: Watch, max_bytes: int) -> None:
        self.protocol = str(client.protocol_version)
        self._client = client
        self._settings = settings
        self._watch = watch
        self._max_bytes = max_bytes

    async def tools(self) -> tuple[Tool, ...]:
        """The tools of all pages that the settings take; a definition that is none is left out."""
        from mcp.shared.exceptions import MCPError

        found: dict[str, Tool] = {}
        try:
            async for definition in self._definitions():
                with suppress(ValueError, TypeError, RecursionError):
                    tool = from_mcp(
                        definition,
                        server=self._settings.name,
                        identity=self._settings.identity,
                        trusted=self._settings.trusted,
                    )
                    found[tool.name] = tool
        except MCPError as error:
            if error.code == _CONNECTION_CLOSED:
                raise LostError(str(error)) from error
            if error.code != _METHOD_NOT_FOUND:  # a server of prompts or resources alone has no tools
                raise
        return tuple(tool for tool in found.values() if self._settings.takes(tool.name))

    async def _definitions(self) -> AsyncIterator[dict[str, Any]]:
        cursor: str | None = None
        seen: set[str | None] = set()
        while cursor not in seen:  # a server that repeats a cursor would have us list for ever
            seen.add(cursor)
            page = await self._client.list_tools(cursor=cursor, cache_mode="refresh")
            for tool in page.tools:
                yield tool.model_dump(mode="json", by_alias=True, exclude_none=True)
            cursor = page.next_cursor
            if cursor is None:
                return

    async def call(self, name: str, arguments: dict[str, Any], tell: Progress | None) -> Outcome:
        """The result as text, an error that the tool reports too; raises LostError if the connection ends."""
        from mcp.shared.exceptions import MCPError

        async def report(progress: float, total: float | None, message: str | None) -> None:
            if tell is not None:
                tell(progress, total, message)

        try:
            result = await self._client.call_tool(name, arguments, progress_callback=report)
        except MCPError as error:
            if error.code != _INVALID_PARAMS and self._settings.url is not None:
                self._watch.connection_lost()  # perhaps its session has expired: connect anew next time
            if error.code == _CONNECTION_CLOSED:
                raise LostError(str(error)) from error
            raise
        content = [block.model_dump(by_alias=True, exclude_none=True) for block in result.content]
        text = result_text(content, result.structured_content, self._max_bytes)
        return Outcome("error" if result.is_error else "ok", text)
