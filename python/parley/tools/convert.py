"""Converts MCP's tool definitions to values, and to and from the providers' shapes.

MCP: `{name, title?, description?, inputSchema, outputSchema?, annotations?}` as in a `tools/list`
result. Each wire format has its own shape (`models/formats.py`), in which some fields (title,
annotations, output schema) are lost.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from parley.tools.catalogue import Catalogue, Tool
from parley.tools.wire_schemas import referred, sound

Definition = Tool | Mapping[str, Any]

# "tools.N.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top
# level", says Anthropic, and OpenAI also refuses these
# (github.com/makenotion/notion-mcp-server/issues/340, of 2026-08-05, read 2026-11-22);
# platform.claude.com/docs/en/managed-agents/self-hosted-sandboxes states the rule.
_COMBINATORS = ("allOf", "anyOf", "oneOf")
# "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top
# level" (OpenAI, github.com/langchain-ai/langchainjs/issues/9804, read 2026-11-24).
_NOT_AT_THE_TOP = (*_COMBINATORS, "enum", "not")
_MOST_LEVELS = 3
"""How many levels of nested combinators are searched for properties."""
_MOST_BRANCHES = 200
"""How many branches are searched for properties; references can produce any number of branches."""


def shape(name: str, tool: Definition, schema_key: str) -> dict[str, Any]:
    """A tool's name, description and schema for a provider, with the schema under `schema_key`.

    Never sets `strict`, which requires more than MCP schemas promise.
    """
    # Strict functions have `additionalProperties: false` in each object and all their properties
    # required (developers.openai.com/api/docs/guides/function-calling, November 2026).
    if isinstance(tool, Tool):
        text, schema = tool.description or tool.title, wire_schema(tool)
    else:
        text = _text(tool.get("description")) or _text(tool.get("title"))
        schema = object_schema(tool.get("inputSchema"))
    described = {"name": name, "description": text} if text else {"name": name}
    return described | {schema_key: schema}


@lru_cache(maxsize=4096)
def wire_schema(tool: Tool) -> dict[str, Any]:
    """A tool's schema as it is sent; computed once, because every request contains it."""
    return object_schema(tool.input_schema)


def definition(shape: Mapping[str, Any], schema_key: str) -> dict[str, Any]:
    """The MCP definition for a provider's shape; raises ValueError if the shape has no name."""
    name = shape.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f'a tool needs a string as "name"; got {name!r}')
    text = _text(shape.get("description"))
    described = {"name": name, "description": text} if text else {"name": name}
    return described | {"inputSchema": object_schema(shape.get(schema_key))}


def from_mcp(
    definition: Mapping[str, Any],
    *,
    server: str = "",
    identity: str = "",
    trusted: bool = False,
    of_project: bool = False,
    instructions: str = "",
) -> Tool:
    """The value of an MCP definition; drops broken fields. Raises ValueError if the definition has
    no name.
    """
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f'a tool definition needs a string as "name"; got {name!r}')
    output = definition.get("outputSchema")
    return Tool(
        server=server,
        name=name,
        title=_text(definition.get("title")),
        description=_text(definition.get("description")),
        input_schema=_mapping(definition.get("inputSchema")),
        output_schema=output if isinstance(output, Mapping) else None,
        annotations=_mapping(definition.get("annotations")),
        identity=identity,
        trusted=trusted,
        of_project=of_project,
        instructions=instructions,
    )


def convert_all(
    definitions: object, shape: Callable[[str, Tool], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Convert MCP definitions (decoded JSON) to a format's shape, under their wire names, and sort
    them by these names.

    Takes a list, a `tools/list` result or response with a list, or a single definition. Raises
    ValueError with the number of an invalid definition.
    """
    tools = [
        _numbered(number, definition)
        for number, definition in enumerate(_listed(definitions), start=1)
    ]
    return [shape(name, tool) for name, tool in Catalogue.of(tools).tools]


def object_schema(schema: object) -> dict[str, Any]:
    """`schema` as providers accept it for a tool: an object with properties, sound at every depth.

    A missing or boolean schema becomes the empty object. Both providers refuse
    `allOf`/`anyOf`/`oneOf` at the top level, so the properties in these become optional properties.
    Parley still checks calls against the full schema.
    """
    if not isinstance(schema, Mapping):
        return {"type": "object", "properties": {}}
    merged = _dissolved(schema)
    properties = {"properties": dict(_mapping(merged.get("properties")))}
    return sound({"type": "object", "properties": {}} | merged | {"type": "object"} | properties)


def _dissolved(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without the keywords that providers refuse at the top, but with the properties."""
    whole = referred(schema, schema)
    rest = {key: value for key, value in whole.items() if key not in _NOT_AT_THE_TOP}
    if branches := list(islice(_branches(whole, schema, _MOST_LEVELS), _MOST_BRANCHES)):
        merged: dict[str, Any] = {}
        for branch in (*branches, rest):
            merged |= _mapping(branch.get("properties"))
        rest["properties"] = merged
    return rest


def _branches(
    schema: Mapping[str, Any], root: Mapping[str, Any], levels: int
) -> Iterator[Mapping[str, Any]]:
    """All schemas in `allOf`, `anyOf` and `oneOf`; nested schemas come before their parents."""
    for branch in (each for key in _COMBINATORS for each in _sequence(schema.get(key))):
        if isinstance(branch, Mapping) and levels:
            whole = referred(branch, root)
            yield from _branches(whole, root, levels - 1)
            yield whole


def _listed(definitions: object) -> Iterable[object]:
    match definitions:
        case {"result": {"tools": [*tools]}} | {"tools": [*tools]} | [*tools]:
            return tools
        case _:
            return [definitions]


def _numbered(number: int, definition: object) -> Tool:
    if not isinstance(definition, Mapping):
        kind = type(definition).__name__
        raise ValueError(f"tool {number}: expected an object, got {kind}")
    try:
        return from_mcp(definition)
    except ValueError as error:
        raise ValueError(f"tool {number}: {error}") from error


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
