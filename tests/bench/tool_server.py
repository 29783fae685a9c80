"""An MCP server with one tool; it appends the time of each return to the file that its argument
names.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("bench")


@server.tool()
def look() -> str:
    """Look."""
    with Path(sys.argv[1]).open("a", encoding="utf-8") as file:
        file.write(f"{time.monotonic()}\n")
    return "seen"


server.run("stdio")
