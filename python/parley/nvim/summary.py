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

Chunk: TypeAlias = tuple[str, str] | tuple[str, str, str]
"""A text and its highlight group; with a third part it may be cut where the window is too narrow, and that
part stands behind the mark."""
Chunks: TypeAlias = Sequence[Chunk]

UNREADABLE = "this tool call cannot be read: mend the line, or decline it with yn"
_MOST_SHOWN = 600
_LONGEST_NAME = 60
_ENDS = {'"': '"', "[": "]", "{": "}"}
"""The end behind the mark of a value that is cut, by how it starts."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def count(n: int, noun: str) -> str:
    """A number of things in words."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def legible_line(text: str) -> str:
    """Text on one line, of bounded length, in which nothing hides."""
    return contained(legible(_cut(text, _MOST_SHOWN)))


def summary(call: Proposal | Broken, catalogue: Catalogue | None) -> Chunks:
    """One line that says what a call would do."""
    if isinstance(call, Broken):
        return [("  " + UNREADABLE, "ParleyNote")]
    tool = catalogue.get(call.call.name) if catalogue else None
    label = tool.label if tool else call.call.name
    names = [label, tool.name, tool.server] if tool else [label]
    chunks: list[Chunk] = [("  ", "ParleyTool"), (_title(label), "ParleyTool", "")]
    if tool:
        chunks += [(" · ", "ParleyServer"), (_title(tool.server), "ParleyServer", "")]
    if mixed := " ".join(dict.fromkeys(map(mixed_scripts, names))).strip():
        chunks.append((f" [{mixed}]", "ParleyNote"))
    return [*chunks, *arguments(call.call.arguments)]


def _title(label: str) -> str:
    """A server's name for its tool or itself, in bounds in which it cannot pass for what is beside it."""
    title = " ".join(_unmarked(label).split()).replace("·", "-").replace(": ", " ").replace("[", "(")
    return upright(legible(_cut(title, _LONGEST_NAME)))


def arguments(raw: str) -> Chunks:
    """Arguments as names and values on one line; those that are no JSON object as they stand."""
    try:
        decoded = decoded_arguments(raw)
    except ValueError:
        return [
            ("  ", "ParleyValue"),
            (upright(legible(_cut(_unmarked(raw), _MOST_SHOWN))), "ParleyValue", ""),
        ]
    chunks: list[Chunk] = []
    for name, value in decoded.items():
        json_text = _unmarked(as_json(value))
        end = _ENDS.get(json_text[:1], "")
        label, text = _name(name), legible(_cut(json_text, _MOST_SHOWN, end))
        # Only a name of Latin letters keeps a run before it from the one behind it.
        text = contained(text) if label == name else upright(text)
        chunks += [(f"  {label}: ", "ParleyArgument"), (text, "ParleyValue", end)]
    return chunks


def _name(name: str) -> str:
    if len(name) <= _LONGEST_NAME and _PLAIN.fullmatch(name):
        return name
    return upright(legible(_cut(_unmarked(json.dumps(name, ensure_ascii=False)), _LONGEST_NAME, '"')))


def _cut(text: str, most: int, end: str = "") -> str:
    return text if len(text) <= most else text[:most] + "…" + end


def _unmarked(text: str) -> str:
    """`text` in which nothing looks as if it were cut there; JSON means the same."""
    return text.replace("…", "\\u2026")


def decoded_arguments(raw: str) -> dict[str, Any]:
    """Arguments with each number as the text that it is. Raises ValueError as `decode_arguments` does."""
    decode_arguments(raw)
    decoded: dict[str, Any] = json.loads(raw, parse_int=_Number, parse_float=_Number) if raw.strip() else {}
    return decoded


def as_json(value: Any, indent: str | None = None) -> str:
    """A value of decoded arguments as JSON, its numbers as they were; on one line without an `indent`."""
    match value:
        case _Number():
            return str(value)
        case Mapping():
            items = [
                f"{as_json(str(name))}: {as_json(item, _deeper(indent))}" for name, item in value.items()
            ]
            return _between("{", items, "}", indent)
        case list():
            return _between("[", [as_json(item, _deeper(indent)) for item in value], "]", indent)
        case _:
            return json.dumps(value, ensure_ascii=False)


def _deeper(indent: str | None) -> str | None:
    return None if indent is None else indent + "  "


def _between(start: str, items: list[str], end: str, indent: str | None) -> str:
    if indent is None or not items:
        return f"{start}{', '.join(items)}{end}"
    lines = ",\n".join(f"{indent}  {item}" for item in items)
    return f"{start}\n{lines}\n{indent}{end}"
