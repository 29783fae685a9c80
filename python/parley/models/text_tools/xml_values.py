"""Converts the values between a call's tags: texts to JSON by the tool's schema, and back.

A text is converted to the type that its parameter's schema expects. Any other text remains a
string, and the check of the arguments then reports it. Knows nothing of streams.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from parley.chat.grammar import fit
from parley.late_patterns import late_pattern
from parley.models.encode import RAW, arguments_object, wire_name

_NAME = late_pattern(r"[\w.-]{1,128}", re.ASCII)
_INTEGER = late_pattern(r"-?(?:0|[1-9]\d*)", re.ASCII)
_NUMBER = late_pattern(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_SIMPLE = ("boolean", "integer", "number", "null")


def arguments_json(params: Iterable[tuple[str, str]], schema: object) -> str:
    """A call's arguments as JSON text; a repeated parameter becomes an array."""
    values: dict[str, list[str]] = {}
    for name, value in params:
        values.setdefault(name, []).append(value)
    known = _mapping(_mapping(schema).get("properties"))
    pairs = (f"{_string(name)}: {_value(texts, known.get(name))}" for name, texts in values.items())
    return f"{{{', '.join(pairs)}}}"


def unwrapped(value: str) -> str:
    """The intended value: tags on their own lines do not add a first and last line."""
    if not value.startswith("\n"):
        return value
    return value[1:].removesuffix("\n")


def _value(texts: list[str], schema: object) -> str:
    kinds = _kinds(schema)
    if "array" in kinds and (len(texts) > 1 or "string" not in kinds):
        return _array(texts, _mapping(schema).get("items"))
    if len(texts) > 1:
        return f"[{', '.join(_one(text, kinds) for text in texts)}]"
    return _one(texts[0], kinds)


def _array(texts: list[str], items: object) -> str:
    """The elements, one for each tag; a single tag may contain all of them, as JSON."""
    if len(texts) == 1 and isinstance(_decoded(texts[0]), list):
        return texts[0].strip()
    return f"[{', '.join(_value([text], items) for text in texts)}]"


def _one(text: str, kinds: frozenset[str]) -> str:
    word = text.strip()
    for kind in _SIMPLE:
        if kind in kinds and (literal := _literal(word, kind)):
            return literal
    if "object" in kinds and isinstance(_decoded(text), dict):
        return word
    return _string(text)


def _literal(word: str, kind: str) -> str | None:
    match kind:
        case "boolean":
            return word.lower() if word.lower() in ("true", "false") else None
        case "integer":
            return word if _INTEGER.fullmatch(word) else None
        case "number":
            return word if _NUMBER.fullmatch(word) else None
        case _:
            return "null" if word == "null" else None


def _kinds(schema: object) -> frozenset[str]:
    """The types that a value may have; empty if the schema does not specify them."""
    table = _mapping(schema)
    named = table.get("type")
    kinds = {named} if isinstance(named, str) else set(named) if isinstance(named, list) else set()
    for key in ("anyOf", "oneOf"):
        branches = table.get(key)
        for branch in branches if isinstance(branches, list) else []:
            kinds |= _kinds(branch)
    return frozenset(kinds)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# --- And back -------------------------------------------------------------------------------------


def xml_call(name: str, arguments: str) -> str:
    """A past call in tag syntax; arguments that cannot be tagged become JSON in one parameter."""
    value = arguments_object(arguments)
    tags = [tag for key, element in value.items() for tag in _tags(key, element)]
    if None in tags:
        whole = json.dumps(value, ensure_ascii=False).replace("</", "<\\/")
        tags = [f"<param:{RAW}>{whole}</param:{RAW}>"]
    lines = [f"<tool:{wire_name(name)}>", *filter(None, tags), f"</tool:{wire_name(name)}>"]
    return fit("\n".join(lines))


def _tags(key: str, value: object) -> Iterator[str | None]:
    """The tags of a parameter, one for each element of an array; None if it cannot be tagged."""
    closing = f"</param:{key}>"
    for text in _texts(value):
        is_sound = _NAME.fullmatch(key) and closing not in text
        block = f"\n{text}\n" if "\n" in text else text
        yield f"<param:{key}>{block}{closing}" if is_sound else None


def _texts(value: object) -> list[str]:
    elements = value if isinstance(value, list) and value else [value]
    return [
        element if isinstance(element, str) else json.dumps(element, ensure_ascii=False)
        for element in elements
    ]
