"""Repairs servers' results, so that only the broken parts are lost.

The SDK rejects a whole result for any flaw in it. Works on results as JSON; the caller decides
which results are valid.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from parley.text import one_line
from parley.tools.results import result_text

_PARTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "tools/call": "content",
    "prompts/get": "messages",
    "resources/read": "contents",
}
_NEEDS = {
    "tools/list": ("name", "inputSchema"),
    "prompts/list": ("name",),
    "resources/list": ("uri", "name"),
    "resources/templates/list": ("uriTemplate", "name"),
    "resources/read": ("uri", "text", "blob"),
}
"""The fields that a part requires; all others may be dropped."""
_HINTED = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)
"""Methods whose results need cache hints in revision 2026-07-28; rmcp 3 omits them."""
_MOST_OF_A_NAME = 40

Sound: TypeAlias = Callable[[Mapping[str, Any]], bool]
"""Whether the SDK accepts a result."""


def mends(method: str) -> bool:
    """Whether results of this method can be repaired."""
    return method in _HINTED or method in _PARTS


def mended(
    method: str, result: Mapping[str, Any], is_sound: Sound
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The result in a form that the SDK accepts, and the names of the dropped parts.

    A text block replaces a broken block in a call's result.
    """
    fields = _prepared(method, result)
    key = _PARTS.get(method)
    if key is None or is_sound(fields):
        return fields, ()
    frame: dict[str, Any] = {
        name: fields[name] for name in ("ttlMs", "cacheScope", "resultType") if name in fields
    }
    parts, lost = list[Any](), list[str]()
    listed = fields.pop(key, None)
    if method == "tools/call" and not isinstance(listed, list):
        listed = [] if listed is None else [listed]
    if not isinstance(listed, list):
        return dict(result), ()
    for part in listed:
        fixed = _repaired_part(method, part, lambda other: is_sound({**frame, key: [other]}))
        if fixed is None:
            lost.append(_name(part))
        else:
            parts.append(fixed)
    whole: dict[str, Any] = {**frame, key: parts}
    for name, value in fields.items():
        if is_sound({**whole, name: value}):
            whole[name] = value
        elif name == "structuredContent" and not any("text" in part for part in parts):
            parts.append({"type": "text", "text": json.dumps(value, ensure_ascii=False)})
    return whole, tuple(lost)


def _prepared(method: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """A result's fields, without output schemas but with the fields that the newest revision
    requires.
    """
    fields = {"resultType": "complete", **result}
    if method in _HINTED:
        fields |= _hints(result)
    if method == "tools/list" and isinstance(tools := fields.get("tools"), list):
        fields["tools"] = list(map(_without_output, tools))
    return fields


def _hints(result: Mapping[str, Any]) -> dict[str, Any]:
    """Defaults for missing or invalid cache hints: the result is private and not cached."""
    hints: dict[str, Any] = {}
    if not isinstance(result.get("ttlMs"), int | float):
        hints["ttlMs"] = 0
    if result.get("cacheScope") not in ("public", "private"):
        hints["cacheScope"] = "private"
    return hints


def _without_output(definition: object) -> object:
    """A definition without its output schema: the SDK would reject results that do not match it."""
    if not isinstance(definition, Mapping):
        return definition
    return {name: value for name, value in definition.items() if name != "outputSchema"}


def _repaired_part(method: str, part: object, is_sound: Callable[[object], bool]) -> object:
    """The part itself if it is valid, or else its usable fields; None if it cannot be repaired."""
    if is_sound(part):
        return part
    if method == "tools/call":
        return _bare(part, is_sound) or _in_words(part)
    if not isinstance(part, Mapping):
        return None
    if method == "prompts/get":
        fixed = {"role": part.get("role"), "content": _in_words(part.get("content"))}
        return fixed if is_sound(fixed) else None
    fixed = {name: part[name] for name in _NEEDS[method] if name in part}
    if method == "tools/list":
        fixed["inputSchema"] = _schema(fixed.get("inputSchema"))
    if not is_sound(fixed):
        return None
    for name, value in part.items():
        if name not in fixed and is_sound({**fixed, name: value}):
            fixed[name] = value
    return fixed


def _schema(schema: object) -> object:
    """The schema of the arguments; adds a missing `type`, which can only be "object"."""
    if schema is None:
        return {"type": "object"}
    return {"type": "object", **schema} if isinstance(schema, Mapping) else schema


def _bare(block: object, is_sound: Callable[[object], bool]) -> object:
    """A block without annotations, in which a link has at least an empty name; None if it is still
    broken.
    """
    if not isinstance(block, Mapping):
        return None
    bare = {name: value for name, value in block.items() if name not in ("annotations", "_meta")}
    if block.get("type") == "resource_link":
        bare.setdefault("name", "")
    return bare if is_sound(bare) else None


def _in_words(block: object) -> dict[str, str]:
    """A text block that replaces an unknown or broken block."""
    match block:
        case str(text) | {"text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "text"} | None:
            return {"type": "text", "text": "[text that cannot be read]"}
        case {"type": str()}:
            return {"type": "text", "text": result_text([block], max_bytes=1_000)}
        case _:
            return {"type": "text", "text": "[unknown content]"}


def _name(part: object) -> str:
    """A name by which the user can recognize a broken part."""
    name = part.get("name") if isinstance(part, Mapping) else part
    return one_line(name if isinstance(name, str) else json.dumps(name, ensure_ascii=False))[
        :_MOST_OF_A_NAME
    ]
