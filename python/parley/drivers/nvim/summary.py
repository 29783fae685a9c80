"""A call as it is drawn for the one who decides on it: its tool, its server, its arguments. Pure.

What is drawn cannot be taken for anything else: strings stand in quotes and numbers as they were written, no
mark and no run of right-to-left letters reaches beyond the text it is in, and what is cut has a mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from parley.chat.transcript import Broken, Proposal
from parley.text import contained, legible, mixed_scripts, upright
from parley.tools.catalogue import Catalogue
from parley.tools.schema import decode_arguments

Chunk: TypeAlias = tuple[str, str] | tuple[str, str, bool]
"""A text and its highlight group; a third part says that it may be cut where the window is too narrow."""
Chunks: TypeAlias = Sequence[Chunk]

UNREADABLE = "this tool call cannot be read: mend the line, or decline it with yn"
_MOST_SHOWN = 600
_LONGEST_NAME = 60
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def shown(text: str) -> str:
    """Text on one line, of bounded length, in which nothing hides."""
    return contained(legible(_cut(text, _MOST_SHOWN)))


def summary(call: Proposal | Broken, catalogue: Catalogue | None) -> Chunks:
    """One line that says what a call would do."""
    if isinstance(call, Broken):
        return [("  " + UNREADABLE, "ParleyNote")]
    tool = catalogue.get(call.call.name) if catalogue else None
    label = tool.label if tool else call.call.name
    names = [label, tool.name, tool.server] if tool else [label]
    chunks: list[Chunk] = [("  ", "ParleyTool"), (_title(label), "ParleyTool", True)]
    if tool:
        chunks += [(" · ", "ParleyServer"), (_title(tool.server), "ParleyServer", True)]
    if mixed := " ".join(dict.fromkeys(map(mixed_scripts, names))).strip():
        chunks.append((f" [{mixed}]", "ParleyNote"))
    return [*chunks, *arguments(call.call.arguments)]


def _title(label: str) -> str:
    """What a server calls its tool or itself, in bounds in which it cannot pass for what is beside it."""
    title = " ".join(label.split()).replace("·", "-").replace(": ", " ").replace("[", "(")
    return upright(legible(_cut(title, _LONGEST_NAME)))


def arguments(raw: str) -> Chunks:
    """Arguments as names and values on one line; those that are no JSON object as they stand."""
    try:
        decoded = decoded_arguments(raw)
    except ValueError:
        return [("  ", "ParleyValue"), (upright(legible(_cut(raw, _MOST_SHOWN))), "ParleyValue", True)]
    chunks: list[Chunk] = []
    for name, value in decoded.items():
        label, text = _name(name), legible(_cut(written(value), _MOST_SHOWN))
        # Only a name of Latin letters keeps a run before it from the one behind it.
        text = contained(text) if label == name else upright(text)
        chunks += [(f"  {label}: ", "ParleyArgument"), (text, "ParleyValue", True)]
    return chunks


def _name(name: str) -> str:
    cut = _cut(name, _LONGEST_NAME)
    return name if _PLAIN.fullmatch(cut) else upright(legible(json.dumps(cut, ensure_ascii=False)))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"


def decoded_arguments(raw: str) -> dict[str, Any]:
    """Arguments with each number as the text that it is. Raises ValueError as `decode_arguments` does."""
    decode_arguments(raw)
    decoded: dict[str, Any] = json.loads(raw, parse_int=_Number, parse_float=_Number) if raw.strip() else {}
    return decoded


def written(value: Any, indent: str | None = None) -> str:
    """A value of decoded arguments as JSON, its numbers as they were; on one line without an `indent`."""
    match value:
        case _Number():
            return str(value)
        case Mapping():
            items = [
                f"{written(str(name))}: {written(each, _deeper(indent))}" for name, each in value.items()
            ]
            return _between("{", items, "}", indent)
        case list():
            return _between("[", [written(each, _deeper(indent)) for each in value], "]", indent)
        case _:
            return json.dumps(value, ensure_ascii=False)


def _deeper(indent: str | None) -> str | None:
    return None if indent is None else indent + "  "


def _between(start: str, items: list[str], end: str, indent: str | None) -> str:
    if indent is None or not items:
        return f"{start}{', '.join(items)}{end}"
    lines = ",\n".join(f"{indent}  {item}" for item in items)
    return f"{start}\n{lines}\n{indent}{end}"
