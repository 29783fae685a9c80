"""Rules of both OpenAI APIs about function tools, their names and `tool_choice`.

Chat Completions nests a tool's name and schema under `function`; Responses has them flat.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.strict.kinds import Path, bracketed
from tests.strict.schemas import arrays_without_items, dangling, is_of_2020, top_level
from tests.strict.shapes import NAME, Body, twice

TEXT_TOO_SHORT = (
    "Invalid '{place}': string too short. "
    "Expected a string with minimum length 1, but got an empty string instead."
)
FUNCTION_KINDS = {"name": str, "description": str, "parameters": dict, "strict": bool}
_EMPTY = (
    "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an "
    "empty array instead."
)
_FIELDS = frozenset(("type", "name", "description", "parameters", "strict"))


def kind_words(path: Path, noun: str) -> str:
    """The complaint about a value of the wrong kind."""
    return f"Invalid type for '{bracketed(path)}': expected {noun}."


def string_range(place: str, value: object, least: int, most: int) -> Iterator[str]:
    """Complaints about a required string with a limited length."""
    if not isinstance(value, str):
        yield f"Missing required parameter: '{place}'."
    elif len(value) < least:
        yield TEXT_TOO_SHORT.format(place=place)
    elif len(value) > most:
        yield (
            f"Invalid '{place}': string too long. Expected a string with maximum length {most}, "
            f"but got a string with length {len(value)} instead."
        )


def tool_name(place: str, value: object) -> Iterator[str]:
    """Complaints about the name of a function."""
    yield from string_range(place, value, 1, 64)
    if isinstance(value, str) and 1 <= len(value) <= 64 and not NAME.fullmatch(value):
        yield (
            f"Invalid '{place}': string does not match pattern. "
            "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        )


def function_tools(body: Body, *, nested: bool) -> Iterator[str]:
    """Complaints about `tools`, `tool_choice` and `parallel_tool_calls`."""
    tools = body.get("tools")
    if tools == []:
        yield _EMPTY
    if tools and len(tools) > 128:
        yield (
            "Invalid 'tools': array too long. Expected an array with maximum length 128, "
            f"but got an array with length {len(tools)} instead."
        )
    functions = [(tool.get("function") or {}) if nested else tool for tool in tools or []]
    for at, (tool, function) in enumerate(zip(tools or [], functions, strict=True)):
        yield from _tool(f"tools[{at}]", tool, function, nested=nested)
    for again in twice(str(function.get("name")) for function in functions):
        yield f"Invalid 'tools': duplicate function name '{again}'."
    yield from _choice(body, [str(function.get("name")) for function in functions], nested=nested)


def _tool(
    place: str, tool: Mapping[str, Any], function: Mapping[str, Any], *, nested: bool
) -> Iterator[str]:
    if tool.get("type") != "function":
        yield f"Missing required parameter: '{place}.type'."
    inner = f"{place}.function" if nested else place
    for field in function.keys() - _FIELDS:
        yield f"Unknown parameter: '{inner}.{field}'."
    yield from tool_name(f"{inner}.name", function.get("name"))
    yield from _schema(str(function.get("name")), function.get("parameters"))


def _schema(name: str, schema: Mapping[str, Any] | None) -> Iterator[str]:
    if schema is None:
        return
    start = f"Invalid schema for function '{name}'"
    if not is_of_2020(schema):
        yield f"{start}: it is not valid under the meta-schema of draft 2020-12."
    elif schema.get("type") != "object":
        kind = schema.get("type")
        yield (
            f"{start}: schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
        )
    elif "properties" not in schema:
        yield f"{start}: In context=(), object schema missing properties."
    else:
        yield from _at_each_depth(start, schema)


def _at_each_depth(start: str, schema: Mapping[str, Any]) -> Iterator[str]:
    if top_level(schema):
        yield (
            f"{start}: schema must have type 'object' and not have "
            "'oneOf'/'anyOf'/'allOf'/'enum'/'not' "
            "at the top level."
        )
    if arrays_without_items(schema):
        yield f"{start}: In context=(), array schema missing items."
    for reference in dangling(schema):
        yield f"{start}: reference '{reference}' cannot be resolved."


def _choice(body: Body, names: list[str], *, nested: bool) -> Iterator[str]:
    choice = body.get("tool_choice")
    for field in ("tool_choice", "parallel_tool_calls"):
        if body.get(field) is not None and not names:
            yield (
                f"Invalid value for '{field}': '{field}' is only allowed when 'tools' are "
                "specified."
            )
    if isinstance(choice, str) and choice not in ("none", "auto", "required"):
        yield f"Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'."
    if isinstance(choice, dict):
        chosen = ((choice.get("function") or {}) if nested else choice).get("name")
        if chosen not in names:
            yield (
                f"Invalid value for 'tool_choice': no function named '{chosen}' was specified "
                "in 'tools'."
            )
