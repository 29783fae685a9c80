"""The callable tools as values: their definitions, names on the wire and digests.

Does not know running servers, the SDK that lists tools, or providers' requests.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from operator import itemgetter
from typing import Any, Self

from parley.frozen import frozen
from parley.tables import nearest
from parley.tools.names import fold, name_beside, qualified, wire_names


def canonical(value: object) -> str:
    """`value` as canonical JSON, with sorted keys, without spaces, in ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def own_identity(server: str = "") -> str:
    """The identity of Parley's own tool for the server with this identity; "" means no server."""
    return canonical({"parley": server})


_ANY_OWN = own_identity().partition('""')[0]


@frozen
class Tool:
    """One tool, as defined by its server.

    `identity` is the server's origin (command, args, cwd, or URL) as canonical JSON. Approvals are
    bound to it through `digest`, so Parley asks again for a server of the same name that comes from
    elsewhere.
    """

    server: str
    name: str
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    identity: str = ""
    trusted: bool = False
    of_project: bool = False
    """Whether a project set up the server, so that rules for the user's servers do not apply."""
    instructions: str = ""
    """The server's instructions for all its tools, part of each approval and each request."""
    unasked: str = field(default="", repr=False, compare=False)
    """Why a tool of Parley's own needs no approval; "" if Parley asks as usual."""
    definition: str = field(init=False, repr=False, compare=False)
    """Everything that the user approves with a call to this tool, as canonical JSON."""
    digest: str = field(init=False, repr=False, compare=False)
    """SHA-256 of the definition, in hex."""
    size: int = field(init=False, repr=False, compare=False)
    """The approximate number of bytes that a model receives for this tool."""

    def __post_init__(self) -> None:
        definition = canonical(
            {
                "name": self.name,
                "title": self.title,
                "description": self.description,
                "inputSchema": self.input_schema,
                "annotations": self.annotations,
                "identity": self.identity,
            }
            | ({"instructions": self.instructions} if self.instructions else {})
        )
        object.__setattr__(self, "definition", definition)
        object.__setattr__(self, "digest", hashlib.sha256(definition.encode()).hexdigest())
        offer = {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
        }
        text = json.dumps(offer, ensure_ascii=False)
        object.__setattr__(self, "size", len(text.encode("utf-8", "surrogatepass")))

    def __hash__(self) -> int:
        # Schemas are dicts; equal tools have equal digests, which is all that a hash must promise.
        return hash((self.server, self.digest))

    @property
    def is_own(self) -> bool:
        """Whether this is Parley's own tool, with or without a server."""
        return self.identity.startswith(_ANY_OWN)

    @property
    def only_reads(self) -> bool:
        """Whether the user trusts the server, and the server says that the tool changes nothing."""
        return self.trusted and self.annotations.get("readOnlyHint") is True

    @property
    def label(self) -> str:
        """The label for the user: the title, or else the name."""
        return self.title or str(self.annotations.get("title") or self.name)


@frozen
class Catalogue:
    """Every offered tool by its wire name; sorted, because providers cache requests by prefix."""

    tools: tuple[tuple[str, Tool], ...] = ()
    missing: tuple[str, ...] = ()
    """The servers whose tools are missing now, sorted; requests list these servers for a model that
    may need them.
    """
    names_only: frozenset[str] = frozenset()
    """The wire names of the tools for which the model receives only names, to save room."""

    @classmethod
    def of(cls, tools: Iterable[Tool], missing: Iterable[str] = ()) -> Self:
        """The catalogue of these tools; of several tools with the same server and name, only the
        last counts.
        """
        by_key = {(tool.server, tool.name): tool for tool in tools}
        names = wire_names(by_key)
        named = sorted(((names[key], tool) for key, tool in by_key.items()), key=itemgetter(0))
        return cls(tuple(named), tuple(sorted(missing)))

    def beside(self, tools: Iterable[Tool]) -> Self:
        """This catalogue with more tools, whose wire names include their servers; other names do
        not change.
        """
        names = dict(self.tools)
        for tool in sorted(set(tools).difference(names.values()), key=lambda tool: tool.server):
            names[name_beside((tool.server, tool.name), names)] = tool
        if len(names) == len(self.tools):
            return self
        return replace(self, tools=tuple(sorted(names.items(), key=itemgetter(0))))

    def without(self, tools: Collection[Tool]) -> Self:
        """This catalogue without these tools; the other tools keep their names."""
        left = tuple((wire, tool) for wire, tool in self.tools if tool not in tools)
        return self if len(left) == len(self.tools) else replace(self, tools=left)

    def get(self, name: str) -> Tool | None:
        """The tool with this wire name, else the only tool with this plain or qualified name."""
        for wire, tool in self.tools:
            if wire == name:
                return tool
        tools = [tool for _, tool in self.tools if name in _spellings(tool)]
        return tools[0] if len(tools) == 1 else None

    def wire(self, tool: Tool) -> str | None:
        """The name under which this catalogue offers `tool`."""
        return next((wire for wire, other in self.tools if other == tool), None)

    @property
    def in_full(self) -> tuple[tuple[str, Tool], ...]:
        """The tools that the model receives with their descriptions and schemas."""
        if not self.names_only:
            return self.tools
        return tuple((wire, tool) for wire, tool in self.tools if wire not in self.names_only)

    def is_name_only(self, tool: Tool) -> bool:
        """Whether the model receives only this tool's name."""
        return bool(self.names_only) and self.wire(tool) in self.names_only

    def names(self) -> tuple[str, ...]:
        """The wire names, sorted."""
        return tuple(wire for wire, _ in self.tools)

    def nearest(self, name: str) -> str | None:
        """The wire name most similar to `name`, for "did you mean"; None if none is similar."""
        return nearest(name, self.names())


def _spellings(tool: Tool) -> tuple[str, ...]:
    long = qualified(tool.server, tool.name)
    return tool.name, long, fold(tool.name), fold(long)
