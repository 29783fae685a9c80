"""The texts for a model whose provider does not support tools: tools, call syntax, past errors,
results.

All of this is text in a request, and is created again from the catalogue and the history each time.
Knows no wire format.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parley.chat.history import CallOutcome
from parley.models.encode import arguments_text, result_text, wire_name
from parley.models.request import TextTools
from parley.models.text_tools.template import Template
from parley.models.text_tools.xml_values import xml_call
from parley.text import fence
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.convert import object_schema

RESULTS = "Tool results:"
TOOLS_OFF = "No tool can be called any more. Answer in plain words with what you have."

_FORMATS: Mapping[str, str] = {"json": "valid JSON format", "xml": "the XML format exactly"}
_SAMPLES: Mapping[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}


def tool_prompt(text_tools: TextTools, catalogue: Catalogue) -> str:
    """The part of the system prompt that offers the tools and explains how to call them."""
    template = text_tools.template
    prompt = template.xml if text_tools.syntax == "xml" else template.json
    definitions = "\n".join(_definition(name, tool, template) for name, tool in catalogue.in_full)
    name, tool = catalogue.in_full[0]
    example = text_call(text_tools, name, json.dumps(_sample(tool), ensure_ascii=False))
    return string.Template(prompt).safe_substitute(tools=definitions, example=example)


def text_call(text_tools: TextTools, name: str, arguments: str) -> str:
    """A call in the syntax that the model must use."""
    if text_tools.syntax == "xml":
        return xml_call(name, arguments)
    return f'{{"tool": "{wire_name(name)}", "params": {arguments_text(arguments, exact=False)}}}'


def results(calls: Sequence[CallOutcome]) -> str:
    """The calls' results as a message; each result is quoted, so that it cannot imitate another
    result.
    """
    return "\n\n".join([RESULTS, *map(_result, range(1, len(calls) + 1), calls)])


def corrections(text_tools: TextTools) -> str:
    """The errors in earlier replies, for the next attempt."""
    attempts = "\n".join(
        f"Attempt {number}: {error}" for number, error in enumerate(text_tools.errors, 1)
    )
    return (
        f"IMPORTANT: Previous attempts failed with these errors:\n{attempts}\n\n"
        "Please correct these issues in your response. Ensure:\n"
        f"1. Tool calls use {_FORMATS[text_tools.syntax or 'json']}\n"
        "2. Parameter names match the schema exactly\n"
        "3. Required parameters are not missing"
    )


def _result(number: int, outcome: CallOutcome) -> str:
    content = result_text(outcome)
    ticks = fence(content)
    suffix = "" if outcome.status == "ok" else " failed"
    return f"{number}. {wire_name(outcome.call.name)}{suffix}\n{ticks}\n{content}\n{ticks}"


def _definition(name: str, tool: Tool, template: Template) -> str:
    schema = object_schema(tool.input_schema)
    about = tool.description or tool.title
    if template.style == "code":
        return "\n".join(_signature(name, about, schema))
    described = {"name": name} | ({"description": about} if about else {}) | {"parameters": schema}
    return json.dumps(described, ensure_ascii=False, separators=(",", ":"))


def _signature(name: str, about: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """The tool as a function without a body, with its parameters in its docstring."""
    properties, required = schema["properties"], schema.get("required", ())
    params = [
        f"{key}: {_type(subschema)}{'' if key in required else ' = ...'}"
        for key, subschema in properties.items()
    ]
    yield f"def {name}({', '.join(params)}):"
    notes = [
        f"{key}: {json.dumps(rest, ensure_ascii=False)}"
        for key, subschema in properties.items()
        if isinstance(subschema, Mapping)
        and (rest := {k: v for k, v in subschema.items() if k not in ("type", "title")})
    ]
    yield from (
        f"    # {line}" for line in "\n".join([*filter(None, [about]), *notes]).split("\n") if line
    )


def _type(schema: object) -> str:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return _TYPES.get(kind, "object") if isinstance(kind, str) else "object"


def _sample(tool: Tool) -> dict[str, Any]:
    """Example arguments: for the required parameters, or if there are none, for the first
    parameter.
    """
    schema = object_schema(tool.input_schema)
    properties = schema["properties"]
    names = [name for name in schema.get("required", ()) if name in properties] or list(properties)[
        :1
    ]
    return {name: _sample_value(properties[name]) for name in names}


def _sample_value(schema: object) -> Any:
    if not isinstance(schema, Mapping):
        return "text"
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    kind = schema.get("type")
    return _SAMPLES.get(kind, "text") if isinstance(kind, str) else "text"
