"""Renames tools' parameters to their wire names, and calls' arguments back to their servers' names.

Pure. Renames only a tool's own parameters, because providers accept any names inside the
parameters' values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from parley.late_patterns import late_pattern
from parley.tools.catalogue import Tool
from parley.tools.convert import wire_schema
from parley.tools.names import parameter_names
from parley.tools.schema import decode_arguments

_TOKEN = late_pattern(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]', re.DOTALL)
_TO_PARAMETER = "#/properties/"


@lru_cache(maxsize=4096)
def wire_parameters(tool: Tool) -> Mapping[str, str]:
    """The wire names of a tool's parameters, if they differ from the parameters' own names."""
    return parameter_names(wire_schema(tool)["properties"])


@lru_cache(maxsize=4096)
def wire_tool(tool: Tool) -> Tool:
    """The tool with its parameters under their wire names; their titles keep the servers' names."""
    names = wire_parameters(tool)
    if not names:
        return tool
    schema = _of_same_object(_with_references(wire_schema(tool), names), names)
    return replace(tool, input_schema=schema)


def renamed(arguments: str, names: Mapping[str, str]) -> str:
    """Arguments as JSON text with their keys renamed and all other characters unchanged.

    Returns the text unchanged if it is not a JSON object, or if a key would occur twice.
    """
    if not names:
        return arguments
    try:
        keys = [names.get(key, key) for key in decode_arguments(arguments)]
    except ValueError:
        return arguments
    if len(set(keys)) < len(keys):
        return arguments
    pieces, end = list[str](), 0
    for (start, stop), key in zip(_keys(arguments), keys, strict=True):
        pieces += [arguments[end:start], _quoted(key, arguments[start:stop])]
        end = stop
    return "".join([*pieces, arguments[end:]])


def _keys(arguments: str) -> Iterator[tuple[int, int]]:
    """The places of the keys in an object's JSON text, without the keys of nested objects."""
    depth, before = 0, ""
    for token in _TOKEN.finditer(arguments):
        sign = token[0][0]
        if sign == '"' and depth == 1 and before in ("{", ","):
            yield token.span()
        depth += (sign in "{[") - (sign in "]}")
        before = sign


def _quoted(key: str, text: str) -> str:
    """The JSON text of a key; the existing text if it already means this key."""
    return text if json.loads(text) == key else json.dumps(key, ensure_ascii=False)


def _of_same_object(schema: Any, names: Mapping[str, str]) -> Any:
    """A schema for the whole arguments, or a list of such schemas, with renamed parameters."""
    match schema:
        case list():
            return [_of_same_object(item, names) for item in schema]
        case Mapping():
            return {key: _keyword(key, value, names) for key, value in schema.items()}
        case _:
            return schema


def _keyword(key: str, value: Any, names: Mapping[str, str]) -> Any:
    """The value of a keyword in a schema for the whole arguments."""
    match key, value:
        case "properties", Mapping():
            return {
                names.get(name, name): _titled(name, inner, names) for name, inner in value.items()
            }
        case "required", list():
            return _others(value, names)
        case "dependentRequired" | "dependentSchemas" | "dependencies", Mapping():
            return {
                names.get(name, name): _dependent(inner, names) for name, inner in value.items()
            }
        case "allOf" | "anyOf" | "oneOf" | "if" | "then" | "else" | "not", _:
            return _of_same_object(value, names)
        case _:
            return value


def _dependent(value: Any, names: Mapping[str, str]) -> Any:
    """The value for one parameter in such a keyword: a list of names, or a schema."""
    return _others(value, names) if isinstance(value, list) else _of_same_object(value, names)


def _others(names_of: list[Any], names: Mapping[str, str]) -> list[Any]:
    return [names.get(name, name) if isinstance(name, str) else name for name in names_of]


def _titled(name: str, schema: Any, names: Mapping[str, str]) -> Any:
    """A parameter's schema, with the server's name for it as the title if this name is not sent."""
    return {"title": name, **schema} if name in names and isinstance(schema, Mapping) else schema


def _with_references(value: Any, names: Mapping[str, str]) -> Any:
    """A schema whose references to its parameters use their new names."""
    match value:
        case {"$ref": str(reference)} if reference.startswith(_TO_PARAMETER):
            name, slash, rest = reference.removeprefix(_TO_PARAMETER).partition("/")
            own = unquote(name).replace("~1", "/").replace("~0", "~")
            reference = f"{_TO_PARAMETER}{names.get(own, name)}{slash}{rest}"
            others = {key: inner for key, inner in value.items() if key != "$ref"}
            return {"$ref": reference, **_with_references(others, names)}
        case Mapping():
            return {key: _with_references(inner, names) for key, inner in value.items()}
        case list():
            return [_with_references(inner, names) for inner in value]
        case _:
            return value
