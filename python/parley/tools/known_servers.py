"""Ten well-known MCP servers: how to start or reach each server, and its requirements. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from parley.frozen import frozen
from parley.tools.server_settings import ServerSettings


@frozen
class KnownServer:
    """A well-known server: its purpose, its settings, and a hint for the user."""

    about: str
    settings: ServerSettings
    hint: str = ""


_HERE = 'its folder, `cwd = "."`, is the folder that you are working in'
_LOGIN = "to sign in, run :ParleyLogin linear"


def _npx(name: str, about: str, package: str, *args: str) -> KnownServer:
    is_here = "." in args
    settings = ServerSettings(name, "npx", ("-y", package, *args), cwd="." if is_here else None)
    return KnownServer(about, settings, _HERE if is_here else "")


def _uvx(name: str, about: str, package: str, *, is_here: bool = False) -> KnownServer:
    settings = ServerSettings(name, "uvx", (package,), cwd="." if is_here else None)
    return KnownServer(about, settings, _HERE if is_here else "")


_REFERENCE = "@modelcontextprotocol/server-"

KNOWN_SERVERS: Mapping[str, KnownServer] = {
    server.settings.name: server
    for server in (
        _npx("files", "reads and writes files", f"{_REFERENCE}filesystem", "."),
        _npx("memory", "keeps facts in a graph", f"{_REFERENCE}memory"),
        _npx("thinking", "thinks in steps", f"{_REFERENCE}sequential-thinking"),
        _npx("browser", "drives a web browser", "@playwright/mcp@latest"),
        _uvx("fetch", "fetches web pages as text", "mcp-server-fetch"),
        _uvx("git", "reads and changes a Git repository", "mcp-server-git", is_here=True),
        _uvx("time", "tells the time and converts time zones", "mcp-server-time"),
        KnownServer(
            "works with GitHub repositories and issues",
            ServerSettings(
                "github",
                url="https://api.githubcopilot.com/mcp/",
                headers={"Authorization": "Bearer ${GITHUB_TOKEN}"},
            ),
            "set the variable GITHUB_TOKEN to your token",
        ),
        KnownServer(
            "has library documentation",
            ServerSettings("context7", url="https://mcp.context7.com/mcp"),
        ),
        KnownServer(
            "works with Linear issues",
            ServerSettings("linear", url="https://mcp.linear.app/mcp"),
            _LOGIN,
        ),
    )
}


def hint_for(server: ServerSettings) -> str:
    """The hint for a server with exactly the known settings; "" for any other."""
    known = KNOWN_SERVERS.get(server.name)
    return known.hint if known and known.settings == server else ""
