"""Reads the tool calls in a JSON text: one, several in an array, or wrapped, with any common key
names.

The arguments are copied from the text, never decoded and encoded again. Knows nothing of streams.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from parley.late_patterns import late_pattern
from parley.models.text_tools.text_calls import Failed, TextCall

INVALID = 'Invalid JSON format - expected {"tool": "name", "params": {...}}'

NAMES = ("tool", "name", "tool_name", "function")
PARAMS = ("params", "parameters", "arguments", "args")
_WRAPPERS = ("function", "tool_call", "tool_calls", "function_call", "calls", "tools")
_BESIDE = frozenset((*NAMES, *PARAMS, "id", "type", "index", "thought", "thoughts", "reasoning"))
"""The keys of a call; an object with keys other than these and `name` is not a call."""
_WRAPPED_AT_MOST = 5

_Q = "[\"'“”„‘’]"
_FIRST = late_pattern(rf"(?:\[\s*)?\{{\s*{_Q}?tool{_Q}?\s*:")
_NAMED = late_pattern(rf"\b(?:{'|'.join(NAMES)}){_Q}?\s*:\s*{_Q}([^\"'“”„‘’\n]{{1,128}}){_Q}")


def calls_in(text: str, known: Collection[str]) -> tuple[TextCall | Failed, ...]:
    """The calls of a text that is one JSON value; () if it is not an attempt to call.

    `known` are the names of the tools: they distinguish a failed call from JSON that the model
    writes about.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return (Failed(INVALID, text),) if is_attempt(text, known) else ()
    return tuple(_calls(text.strip(), value, known, _WRAPPED_AT_MOST))


def is_attempt(text: str, known: Collection[str]) -> bool:
    """Whether text that is not JSON was meant as a call."""
    return bool(_FIRST.match(text)) or any(match[1] in known for match in _NAMED.finditer(text))


def _calls(raw: str, value: object, known: Collection[str], depth: int) -> list[TextCall | Failed]:
    match value:
        case list() if depth:
            per_part = [_calls(part, inner, known, depth - 1) for _, inner, part in _parts(raw)]
            is_list_of_calls = any(per_part)
            return [
                call
                for calls in per_part
                for call in (calls or [Failed(INVALID, raw)] * is_list_of_calls)
            ]
        case dict() if depth:
            parts = list(_parts(raw))
            if call := _call(raw, {key: (inner, part) for key, inner, part in parts}, known):
                return [call]
            wrapped = [p for p in parts if p[0] in _WRAPPERS] or (parts if len(parts) == 1 else [])
            return [c for _, inner, part in wrapped for c in _calls(part, inner, known, depth - 1)]
        case _:
            return []


def _call(
    raw: str, fields: dict[str, tuple[Any, str]], known: Collection[str]
) -> TextCall | Failed | None:
    named = next((key for key in NAMES if isinstance(fields.get(key, (None,))[0], str)), None)
    if named is None:
        return None
    name = fields[named][0].strip()
    parameters = next((fields[key] for key in PARAMS if key in fields), None)
    is_bare = set(fields) <= _BESIDE
    if parameters is None:
        if named != "tool" or name not in known:
            return None
        return TextCall(name, "{}") if is_bare else Failed(INVALID, raw)
    if not name or not (named == "tool" or name in known or is_bare):
        return None
    arguments = _arguments(*parameters)
    if arguments is None:
        return Failed(INVALID, raw) if named == "tool" or name in known else None
    return TextCall(name, arguments)


def _arguments(value: object, raw: str) -> str | None:
    """The text of the arguments; in OpenAI's format, they are JSON within a string."""
    if isinstance(value, dict):
        return raw
    if value is None or value == "":
        return "{}"
    if not isinstance(value, str):
        return None
    try:
        return value if isinstance(json.loads(value), dict) else None
    except (ValueError, RecursionError):
        return None


_DECODER = json.JSONDecoder()
_GAP = late_pattern(r"[\s,]*")
_COLON = late_pattern(r"\s*:\s*")


def _parts(raw: str) -> Iterator[tuple[str, Any, str]]:
    """The key ("" in an array), the value and the text of each part of a valid object or array."""
    at = _after(_GAP, raw, 1)
    while raw[at] not in "}]":
        key = ""
        if raw[0] == "{":
            key, at = _DECODER.raw_decode(raw, at)
            at = _after(_COLON, raw, at)
        start = at
        value, at = _DECODER.raw_decode(raw, at)
        yield key, value, raw[start:at]
        at = _after(_GAP, raw, at)


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    assert match is not None, "valid JSON"
    return match.end()
