"""Tool definitions of MCP as values, and what the shapes of the providers are made of, both ways.

MCP: `{name, title?, description?, inputSchema, outputSchema?, annotations?}` as in a `tools/list` result.
Each wire format has a shape of its own (`models/formats.py`); what that has no place for (title, annotations,
output schema) is lost on the way.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from parley.tools.catalogue import Catalogue, Tool

Definition = Tool | Mapping[str, Any]

# "tools.N.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", says
# Anthropic, and OpenAI refuses the same (github.com/makenotion/notion-mcp-server/issues/340, of 2026-08-05,
# read 2026-11-22); platform.claude.com/docs/en/managed-agents/self-hosted-sandboxes has the rule in words.
_COMBINATORS = ("allOf", "anyOf", "oneOf")


def shape(name: str, tool: Definition, schema_key: str) -> dict[str, Any]:
    """Name, description and schema of a tool, which all providers want; each has its own key for the schema.

    Never `strict`: that demands what MCP schemas do not promise.
    """
    # Strict functions have `additionalProperties: false` in each object and all their properties required
    # (developers.openai.com/api/docs/guides/function-calling, November 2026).
    if isinstance(tool, Tool):
        text, schema = tool.description or tool.title, object_schema(tool.input_schema)
    else:
        text = _text(tool.get("description")) or _text(tool.get("title"))
        schema = object_schema(tool.get("inputSchema"))
    described = {"name": name, "description": text} if text else {"name": name}
    return described | {schema_key: schema}


def definition(shape: Mapping[str, Any], schema_key: str) -> dict[str, Any]:
    """The way back, to the definition of MCP; raises ValueError if the shape has no name."""
    name = shape.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f'a tool needs a "name", a string; got {name!r}')
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
    """The value of an MCP definition; raises ValueError if it has no name. Broken parts count as absent."""
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f'a tool definition needs a "name", a string; got {name!r}')
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


def convert_all(definitions: object, shape: Callable[[str, Tool], dict[str, Any]]) -> list[dict[str, Any]]:
    """MCP definitions, as decoded JSON, in the shape of a format, under wire names and sorted by them.

    Takes a list, a `tools/list` result or response around one, or a single definition.
    Raises ValueError naming the one that is not a definition.
    """
    tools = [_numbered(number, definition) for number, definition in enumerate(_listed(definitions), start=1)]
    return [shape(name, tool) for name, tool in Catalogue.of(tools).tools]


def object_schema(schema: object) -> dict[str, Any]:
    """`schema` as providers take it at the top of a tool: an object with properties.

    A missing or boolean schema becomes the empty object; `allOf`/`anyOf`/`oneOf` at the top, which both
    providers refuse, are dissolved into optional properties: the full schema is still checked before a call.
    """
    if not isinstance(schema, Mapping):
        return {"type": "object", "properties": {}}
    merged = _dissolved(schema)
    properties = _mapping(merged.get("properties"))
    plain = {name: _no_boolean(subschema) for name, subschema in properties.items()}
    return {"type": "object", "properties": {}} | merged | {"type": "object", "properties": plain}


def _dissolved(schema: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in schema.items() if key not in _COMBINATORS}
    branches = [
        branch for key in _COMBINATORS for branch in _sequence(schema.get(key)) if isinstance(branch, Mapping)
    ]
    if branches:
        merged: dict[str, Any] = {}
        for branch in (*branches, rest):
            merged |= _mapping(branch.get("properties"))
        rest["properties"] = merged
    return rest


def _no_boolean(schema: object) -> object:
    # `true` is `{}` and `false` is `{"not": {}}` (JSON Schema 2020-12, json-schema.org/draft/2020-12/
    # json-schema-core#section-4.3.2, read 2026-11-22).
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return schema


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
