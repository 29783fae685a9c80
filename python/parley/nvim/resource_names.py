"""Resource names for completion after `@@`: from servers' lists and templates.

Knows the servers' proposals; `completion.lua` knows when to ask for names and where to show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from parley.chat.references import ResourceReference, can_be_named, name_of
from parley.mcp.servers import Servers
from parley.nvim.editor import Editor
from parley.tools.templates import blank_of, start_of

_MOST_BLANKS = 5
"""The maximum number of templates to ask servers about for one name."""


class ResourceNames:
    """Sends names to the editor, which asks for them on a key press and does not wait for the
    reply.
    """

    def __init__(self, editor: Editor, servers: Callable[[], Servers]) -> None:
        self._editor = editor
        self._servers = servers
        self._templates = list[tuple[str, str]]()

    async def resources(self) -> None:
        """Send the servers' resources, and each template with its beginning."""
        lists = await self._servers().resources()
        listed = [(server, r.uri) for server, each in lists.items() for r in each.resources]
        self._templates = [
            (server, r.uri) for server, each in lists.items() for r in each.templates
        ]
        starts = [(server, start_of(uri), uri) for server, uri in self._templates]
        self._editor.tell(
            "resources",
            [*_names(listed)],
            [
                {"start": name, "uri": uri}
                for server, start, uri in starts
                for name in _names([(server, start)])
                if _shows(uri)
            ],
        )

    async def values(self, base: str) -> None:
        """Send names that begin with the typed text, from the servers' proposals for templates."""
        server, _, uri = base.partition(":")
        names = dict[str, bool]()
        blanks = (blank_of(template, uri) for name, template in self._templates if name == server)
        for blank in islice(filter(None, blanks), _MOST_BLANKS):
            values = await self._servers().values(server, blank)
            for name in _names([(server, blank.uri(value)) for value in values]):
                names.setdefault(name, not blank.is_last)
        self._editor.tell(
            "resource_values",
            base,
            [{"name": name, "is_open": is_open} for name, is_open in names.items()],
        )


def _names(resources: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The names that a reference can contain, without hidden characters."""
    for server, uri in resources:
        if can_be_named(resource := ResourceReference(server, uri)) and _shows(uri):
            yield name_of(resource)


def _shows(text: str) -> bool:
    return text.isprintable()
