"""Resources that servers list, as values. Pure.

Works on definitions as they are in JSON; knows no SDK, nor who reads a resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from parley.text import one_line

MOST_OF_A_URI = 2_000
"""Characters: one that is longer is no name that anybody reads."""
_MOST_OF_A_TEXT = 200


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource that a server lists, or a template of resources: then its `uri` has variables in braces."""

    uri: str
    name: str = ""
    description: str = ""
    mime_type: str = ""

    @property
    def about(self) -> str:
        """What a person reads of it beside its URI, on one line."""
        title = f"{self.name} ({self.mime_type})" if self.mime_type else self.name
        return f"{title}: {self.description}" if self.description else title


@dataclass(frozen=True, slots=True)
class ResourceList:
    """The resources and templates of one server; `unlisted` says why some are missing, "" where none is."""

    resources: tuple[Resource, ...] = ()
    templates: tuple[Resource, ...] = ()
    unlisted: str = ""


def resource_from_mcp(definition: Mapping[str, Any]) -> Resource:
    """The value of a definition; raises ValueError where it has no URI that can be used."""
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
