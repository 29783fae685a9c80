"""Names of resources behind `@@`: those that servers list, and those that their templates lead to.

Knows what servers propose; when it is asked for, and where it is shown, `completion.lua` knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from parley.chat.references import Resource, can_be_named, name_of
from parley.mcp.servers import Servers
from parley.nvim.editor import Editor
from parley.tools.templates import blank_of, start_of

_MOST_BLANKS = 5
"""The templates that one name is asked about."""


class ResourceNames:
    """What is told to the editor, which asks for it at keys and never waits."""

    def __init__(self, editor: Editor, servers: Callable[[], Servers]) -> None:
        self._editor = editor
        self._servers = servers
        self._templates = list[tuple[str, str]]()

    async def resources(self) -> None:
        """Tell what servers list; of a template its beginning, with all of it to look at."""
        lists = await self._servers().resources()
        listed = [(server, r.uri) for server, each in lists.items() for r in each.resources]
        self._templates = [(server, r.uri) for server, each in lists.items() for r in each.templates]
        starts = [(server, start_of(uri), uri) for server, uri in self._templates]
        self._editor.tell(
            "resources",
            [*_names(listed)],
            [
                [name, uri]
                for server, start, uri in starts
                for name in _names([(server, start)])
                if _shows(uri)
            ],
        )

    async def values(self, base: str) -> None:
        """Tell which names begin as one that is typed does, by what servers propose for their templates."""
        server, _, uri = base.partition(":")
        names = dict[str, bool]()
        blanks = (blank_of(template, uri) for name, template in self._templates if name == server)
        for blank in islice(filter(None, blanks), _MOST_BLANKS):
            values = await self._servers().values(server, blank)
            for name in _names([(server, blank.uri(value)) for value in values]):
                names.setdefault(name, not blank.is_last)
        self._editor.tell("resource_values", base, list(names.items()))


def _names(resources: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The names that references can have, and that show for what they are."""
    for server, uri in resources:
        if can_be_named(resource := Resource(server, uri)) and _shows(uri):
            yield name_of(resource)


def _shows(text: str) -> bool:
    return text.isprintable()
