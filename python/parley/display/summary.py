"""Draws a call for the user who decides: one row, and the lines of its long arguments. Pure.

The drawing is unambiguous: strings are in quotes, numbers as they were written, no mark and no run
of right-to-left letters reaches beyond its own text, and a mark shows every cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from parley.chat.grammar import MARKERS
from parley.chat.transcript import Broken, Proposal, Result
from parley.policy.choice import UNREADABLE
from parley.text import contained, counted, legible, mixed_scripts, size_text, upright
from parley.tools.catalogue import Catalogue
from parley.tools.schema import decode_arguments

Chunk: TypeAlias = (
    tuple[str, str] | tuple[str, str, str] | tuple[str, str, str, Literal["tail", "size"]]
)
"""A text and its highlight group. With a third part it may be cut in a narrow window, and the
third part follows the mark. A `tail` keeps its first character and its end; a `size` is replaced
by its third part before anything is cut, without a mark.
"""
Chunks: TypeAlias = Sequence[Chunk]

SIGNS = {kind: marker.rstrip(":[\ufe0f") for kind, marker in MARKERS.items()}
"""The emoji of the markers: signs of what is drawn."""
_MOST_SHOWN = 600
_LONGEST_NAME = 60
_SHORT_NAME = 20
_LONGEST_WORD = 20
_ENDS = {'"': '"', "[": "]", "{": "}"}
"""The text after the mark of a cut value, by its start."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_FILE_NAME = re.compile("path|file|dir|folder", re.IGNORECASE)
"""Argument names whose values are paths, even with spaces."""
_SPELLINGS = {"\t": "→   ", "`": "`"}
"""Characters that need no escape in a text of several lines."""
_BRACKETS = str.maketrans("([)]", "‹‹››")


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def legible_line(text: str) -> str:
    """Text on one line, of bounded length, without hidden characters."""
    return contained(legible(_cut(text, _MOST_SHOWN)))


def page_line(text: str) -> str:
    """The same for a page, where a backtick is plain text and ends nothing."""
    return "`".join(contained(legible(part)) for part in _cut(text, _MOST_SHOWN).split("`"))


def summary(call: Proposal | Broken, catalogue: Catalogue | None) -> Chunks:
    """One line that describes a call; the first chunk is its sign, with any choice."""
    if isinstance(call, Broken):
        return [("  ", "ParleyNote"), (UNREADABLE, "ParleyNote")]
    tool = catalogue.get(call.call.name) if catalogue else None
    return call_row(call, (tool.name, tool.server) if tool else ())


def call_row(call: Proposal, names: Sequence[str]) -> Chunks:
    """The row of a call: choice, tool as the file has it, arguments. `names`: its own, then its
    server's.
    """
    sign = f"{SIGNS['proposal']} {call.choice} " if call.choice else f"{SIGNS['proposal']} "
    server = [_named(_title(name), "ParleyServer") for name in names[1:]]
    is_apart = all(_PLAIN.fullmatch(chunk[0]) for chunk in server)
    chunks: list[Chunk] = [(sign, "ParleyProposal"), _named(_title(call.call.name), "ParleyTool")]
    chunks += [
        ("(", "ParleyTool"),
        *arguments(call.call.arguments, is_apart=is_apart),
        (")", "ParleyTool"),
    ]
    chunks += [(" · ", "ParleyServer"), *server] if server else []
    if mixed := " ".join(dict.fromkeys(map(mixed_scripts, [call.call.name, *names]))).strip():
        chunks.append((f" [{mixed}]", "ParleyNote"))
    return chunks


def _named(title: str, group: str) -> Chunk:
    """A name: in a narrow window, values are cut before it, unless the name is long."""
    return (title, group) if len(title) <= _SHORT_NAME else (title, group, "")


def outcome(result: Result, row: Chunks) -> Chunk:
    """The outcome of a call, as shown after its row: `→ 61 B, ok`."""
    parts = [*_extents(result), result.status]
    # A number joins right-to-left letters before it; a word does not.
    is_latin = all(upright(chunk[0]) == chunk[0] for chunk in row)
    group = "ParleyNote" if result.status == "error" else "ParleyHint"
    return (
        f" → {', '.join(parts if is_latin else parts[::-1])}",
        group,
        f" → {result.status}",
        "size",
    )


def _extents(result: Result) -> list[str]:
    """The sizes of a result: its text (if long, its head and the whole), and its pictures."""
    wholes = [f" of {a.size}" for a in result.attachments if a.is_text and a.size]
    pictures = [f"{a.media_type} {a.size}".rstrip() for a in result.attachments if not a.is_text]
    return [
        *([extent(result.body) + "".join(wholes)] if result.body or not pictures else []),
        *pictures,
    ]


def extent(text: str) -> str:
    """The size of a text: its lines, if it has several, and its bytes."""
    size = size_text(len(text.encode()))
    lines = len(text.removesuffix("\n").split("\n"))
    return f"{lines} lines, {size}" if lines > 1 else size


def length(text: str) -> str:
    """The length of a text: its words, or its size if its script has no spaces."""
    words = len(text.split())
    return (
        counted(words, "word")
        if len(text) <= words * _LONGEST_WORD
        else size_text(len(text.encode()))
    )


def _title(name: str) -> str:
    """A tool's or server's name, delimited: it cannot pass for the text around it."""
    title = (
        " ".join(_unmarked(name).split()).replace("·", "-").replace(": ", " ").translate(_BRACKETS)
    )
    return upright(legible(_cut(title, _LONGEST_NAME)))


def arguments(raw: str, *, is_apart: bool = True) -> Chunks:
    """Arguments as names and values on one line; as a string if they are not a JSON object.

    `is_apart` says that the text right after them keeps a right-to-left run from the text that
    follows.
    """
    try:
        decoded = decoded_arguments(raw)
    except ValueError:
        text = _unmarked(json.dumps(raw, ensure_ascii=False))
        return [
            ("no JSON: ", "ParleyNote"),
            (upright(legible(_cut(text, _MOST_SHOWN, '"'))), "ParleyValue", '"'),
        ]
    chunks, labels = list[Chunk](), [label(name) for name in decoded]
    followers = [*map(_PLAIN.fullmatch, labels[1:]), is_apart]
    for title, value, is_kept in zip(labels, decoded.values(), followers, strict=False):
        comma = ", " if chunks else ""
        if is_long(value):
            chunks += [
                (f"{comma}{title}", "ParleyArgument"),
                (f": {extent(value)}", "ParleyHint", "", "size"),
            ]
            continue
        chunks.append((f"{comma}{title}: ", "ParleyArgument"))
        # Only a name in Latin letters separates the runs before and after it.
        is_kept = is_kept and _PLAIN.fullmatch(title)
        text, group, end = _value(value, contained if is_kept else upright)
        chunks.append((text, group, end, "tail") if _is_path(title, value) else (text, group, end))
    return chunks


def _value(value: Any, shape: Callable[[str], str]) -> tuple[str, str, str]:
    """A value on one line, and its end mark when it is cut."""
    json_text = _unmarked(as_json(value))
    end = _ENDS.get(json_text[:1], "")
    return shape(legible(_cut(json_text, _MOST_SHOWN, end))), "ParleyValue", end


def _is_path(name: str, value: Any) -> bool:
    """Whether a value is a path, whose end says most. A command or an address is not."""
    if not isinstance(value, str) or "://" in value or not ("/" in value or "\\" in value):
        return False
    return " " not in value or _FILE_NAME.search(name) is not None


def is_long(value: Any) -> bool:
    """Whether a value is text of several lines, shown as lines."""
    return isinstance(value, str) and "\n" in value.removesuffix("\n")


def long_arguments(raw: str) -> Iterator[tuple[str, list[str], Chunk]]:
    """The arguments with line breaks: each name, its lines as shown, and the whole on one line."""
    try:
        decoded = decoded_arguments(raw)
    except ValueError:
        return
    for name, value in decoded.items():
        if is_long(value):
            yield label(name), value.removesuffix("\n").split("\n"), _value(value, upright)


def shown_line(line: str, most: int | None = _MOST_SHOWN) -> str:
    """A line of text as shown: tabs as an arrow and spaces, at most so many characters."""
    parts = re.split("([\t`])", line if most is None else _cut(_unmarked(line), most))
    return contained("".join(_SPELLINGS.get(part) or legible(part) for part in parts))


def label(name: str) -> str:
    """The name of an argument as shown: in quotes if it could be mistaken for other text."""
    if len(name) <= _LONGEST_NAME and _PLAIN.fullmatch(name):
        return name
    return upright(
        legible(_cut(_unmarked(json.dumps(name, ensure_ascii=False)), _LONGEST_NAME, '"'))
    )


def _cut(text: str, most: int, end: str = "") -> str:
    return text if len(text) <= most else text[:most] + "…" + end


def _unmarked(text: str) -> str:
    """`text` without anything that looks like a cut; the JSON means the same."""
    return text.replace("…", "\\u2026")


def decoded_arguments(raw: str) -> dict[str, Any]:
    """Arguments with each number as its own text. Raises ValueError as `decode_arguments` does."""
    decode_arguments(raw)
    decoded: dict[str, Any] = (
        json.loads(raw, parse_int=_Number, parse_float=_Number) if raw.strip() else {}
    )
    return decoded


def as_json(value: Any, indent: str | None = None) -> str:
    """A decoded value as JSON, its numbers as written; on one line without an `indent`."""
    match value:
        case _Number():
            return str(value)
        case Mapping():
            items = [
                f"{as_json(str(name))}: {as_json(item, _deeper(indent))}"
                for name, item in value.items()
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
