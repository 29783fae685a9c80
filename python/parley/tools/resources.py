"""Servers' resources as values and as links in results, and the built-in tool that reads resources.
Pure.

Works on definitions as JSON; knows neither an SDK nor which resources a chat has seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.text import one_line
from parley.tools.catalogue import Tool, own_identity

MOST_OF_A_URI = 2_000
"""The maximum number of characters in a URI: a longer URI is useless to the user."""
_MOST_OF_A_TEXT = 200


@frozen
class Resource:
    """A resource that a server lists, or a template, whose `uri` has variables in braces."""

    uri: str
    name: str = ""
    description: str = ""
    mime_type: str = ""

    @property
    def about(self) -> str:
        """The one-line description that the user sees next to the URI."""
        title = f"{self.name} ({self.mime_type})" if self.mime_type else self.name
        return f"{title}: {self.description}" if self.description else title


@frozen
class ResourceList:
    """One server's resources and templates; `unlisted` may contain the reason why some are
    missing.
    """

    resources: tuple[Resource, ...] = ()
    templates: tuple[Resource, ...] = ()
    unlisted: str = ""


def resource_from_mcp(definition: Mapping[str, Any]) -> Resource:
    """The value of a definition; raises ValueError if the definition has no usable URI."""
    uri = definition.get("uri") or definition.get("uriTemplate")
    if not isinstance(uri, str) or len(uri) > MOST_OF_A_URI:
        raise ValueError("a resource needs a URI")
    return Resource(
        uri,
        _line(definition.get("title")) or _line(definition.get("name")),
        _line(definition.get("description")),
        _line(definition.get("mimeType")),
    )


def _line(value: object) -> str:
    return one_line(value, _MOST_OF_A_TEXT) if isinstance(value, str) else ""


_LINK = late_pattern(r"^\[resource (?P<uri>[A-Za-z][A-Za-z0-9+.-]*:\S*?)(?:, .*)?\]$", re.MULTILINE)


def links_in(body: str) -> list[str]:
    """The URIs of the resources to which a result's text links."""
    return [match["uri"] for match in _LINK.finditer(body)] if "[resource " in body else []


def without_links(text: str) -> str:
    """Text without resource links: a line that looks like a link is prefixed with a backslash."""
    return _LINK.sub(r"\\\g<0>", text) if "[resource " in text else text


READ_RESOURCE = "read_resource"


def reader(tool: Tool) -> Tool:
    """The tool that reads resources from `tool`'s server; an approval applies only to this server.

    It has no annotations, so `approval.auto_read_only` does not cover it: only the server knows the
    effects of reading there.
    """
    return Tool(
        tool.server,
        READ_RESOURCE,
        title="Read a resource",
        description=(
            f"Reads a resource that results of the MCP server {tool.server} named: [resource URI]."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "uri": {"type": "string", "description": "The URI, as the result has it."}
            },
            "required": ["uri"],
            "additionalProperties": False,
        },
        identity=own_identity(tool.identity),
        trusted=tool.trusted,
        of_project=tool.of_project,
        instructions=tool.instructions,
    )


def is_reader(tool: Tool) -> bool:
    """Whether a tool is Parley's resource reader, and not a server's tool with that name."""
    return tool.is_own and tool.name == READ_RESOURCE
