"""Python functions as the tools of an MCP server in this process; the SDK derives their schemas.

Knows how to pass functions to the SDK, but not who calls them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from parley.errors import SettingsError
from parley.tools.server_settings import ServerSettings

if TYPE_CHECKING:
    from mcp.server import MCPServer

    InProcess: TypeAlias = MCPServer[Any]
    """A server in this process, as the SDK's object."""
else:
    InProcess: TypeAlias = Any  # the SDK takes a second to import

WorkspaceServer: TypeAlias = Callable[[ServerSettings], InProcess]
"""Creates the workspace server for its settings."""


def no_workspace(settings: ServerSettings) -> InProcess:
    """Without a workspace, its server cannot start. Raises SettingsError."""
    raise SettingsError(f"{settings.name}: there is no workspace")


FUNCTIONS = "python"
"""The name of the server whose tools are functions."""


def server_of(functions: Sequence[Callable[..., object]]) -> InProcess:
    """A server whose tools are these functions, with their names, docstrings and parameters.

    Raises SettingsError for a function that cannot become a tool.
    """
    from mcp.server import MCPServer

    root = logging.getLogger()
    before = root.handlers[:], root.level
    server, names = MCPServer[Any](FUNCTIONS, log_level="WARNING"), set[str]()
    # Undo the SDK's logging setup for the whole process, because logging is the program's choice.
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    for function in functions:
        name = getattr(function, "__name__", repr(function))
        try:
            server.add_tool(function)
        except Exception as error:
            raise SettingsError(f"tools: {name} cannot become a tool: {error}") from error
        if name in names:
            raise SettingsError(f"tools: two functions have the name {name}")
        names.add(name)
    return server
