"""Draws a call on which the user has to decide: one row, and the lines of long arguments. Pure.

The drawing is unambiguous: strings are in quotes, numbers appear as they were written, combining
marks and right-to-left text never affect the text around them, and every cut is marked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, TypeAlias

from parley.chat.grammar import MARKERS
from parley.chat.transcript import Broken, Proposal, Result
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.policy.choice import UNREADABLE
from parley.text import contained, counted, legible, mixed_scripts, size_text, upright
from parley.tools.agent_calls import shown_fields
from parley.tools.catalogue import Catalogue
from parley.tools.command_results import command_failure
from parley.tools.schema import decode_arguments

Chunk: TypeAlias = (
    tuple[str, str] | tuple[str, str, str] | tuple[str, str, str, Literal["tail", "size"]]
)
"""A text and its highlight group. If there is a third part, the text may be cut in a narrow window,
and the third part follows the mark. A `tail` keeps its first character and its end. A `size` is
replaced with its third part, without a mark, before anything is cut.
"""
Chunks: TypeAlias = Sequence[Chunk]

SIGNS = {kind: marker.rstrip(":[\ufe0f") for kind, marker in MARKERS.items()}
"""The markers' emoji, which label what is drawn."""
_MOST_SHOWN = 600
_LONGEST_NAME = 60
_SHORT_NAME = 20
_LONGEST_WORD = 20
_ENDS = {'"': '"', "[": "]", "{": "}"}
"""The text after a cut value's mark, by the value's first character."""
_PLAIN = late_pattern(r"[A-Za-z_][A-Za-z0-9_.-]*")
_MOST_LEAVES = 40
"""The maximum number of values in a list or an object whose texts are shown as lines."""
_FILE_NAME = late_pattern("path|file|dir|folder", re.IGNORECASE)
"""Argument names whose values are paths, even with spaces."""
_SPELLINGS = {"\t": "→   ", "`": "`"}
"""The display of characters that are not escaped in a text with several lines."""
_BRACKETS = str.maketrans("([)]", "‹‹››")


@frozen
class ChangedFile:
    """A file that a call changes, with the numbers of added and removed lines."""

    path: str
    added: int = 0
    removed: int = 0
    kind: str = ""
    """"new file" or another short remark; "" for a change of a file."""
    moved_to: str = ""


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def legible_line(text: str) -> str:
    """Text on one line, of bounded length, without hidden characters."""
    return contained(legible(_cut(text, _MOST_SHOWN)))


def page_line(text: str) -> str:
    """Does the same for a page on which a backtick is plain text."""
    return "`".join(contained(legible(part)) for part in _cut(text, _MOST_SHOWN).split("`"))


def summary(
    call: Proposal | Broken,
    catalogue: Catalogue | None,
    changes: Sequence[ChangedFile] = (),
    *,
    is_whole: bool = False,
    sandbox: str = "",
) -> Chunks:
    """One line that describes a call; the first chunk is its emoji, with the choice, if any.

    `changes` are the files that the call would change; `is_whole` says that they are all that it
    does, so they replace the arguments. `sandbox` says whether a command would run in one.
    """
    if isinstance(call, Broken):
        return [("  ", "ParleyNote"), (UNREADABLE, "ParleyNote")]
    tool = catalogue.get(call.call.name) if catalogue else None
    names = (tool.name, tool.server) if tool else ()
    return call_row(call, names, changes, is_whole=is_whole, sandbox=sandbox)


def call_row(
    call: Proposal,
    names: Sequence[str],
    changes: Sequence[ChangedFile] = (),
    *,
    is_whole: bool = False,
    sandbox: str = "",
) -> Chunks:
    """A call's row: the choice, the tool's name as in the file, the arguments, and the changes.

    `names` contains the tool's own name and its server's name, if known. For a call that others
    ran, the row says by whom it was run instead.
    """
    sign = f"{SIGNS['proposal']} {call.choice} " if call.choice else f"{SIGNS['proposal']} "
    server = [_named(_title(name), "ParleyServer") for name in names[1:]]
    server = [(f"run by the {call.ran_by}", "ParleyServer")] if call.ran_by else server
    is_apart = bool(call.ran_by) or all(_PLAIN.fullmatch(chunk[0]) for chunk in server)
    chunks: list[Chunk] = [(sign, "ParleyProposal"), _named(_title(call.call.name), "ParleyTool")]
    chunks += [
        ("(", "ParleyTool"),
        *(
            _paths(changes)
            if changes and is_whole
            else arguments(call.call.arguments, is_apart=is_apart, by=call.ran_by or "")
        ),
        (")", "ParleyTool"),
        *_sizes(changes),
    ]
    chunks += [(" · ", "ParleyServer"), *server] if server else []
    chunks += _sandbox(sandbox)
    if mixed := " ".join(dict.fromkeys(map(mixed_scripts, [call.call.name, *names]))).strip():
        chunks.append((f" [{mixed}]", "ParleyNote"))
    return chunks


def _paths(changes: Sequence[ChangedFile]) -> Iterator[Chunk]:
    """The paths of the files that a call changes; their ends remain visible."""
    for number, change in enumerate(changes):
        yield from [(", ", "ParleyTool")] if number else []
        yield shown_path(change.path), "ParleyValue", "", "tail"
        if change.moved_to:
            yield " → ", "ParleyTool"
            yield shown_path(change.moved_to), "ParleyValue", "", "tail"


def _sizes(changes: Sequence[ChangedFile]) -> Iterator[Chunk]:
    """How much a call changes."""
    if added := sum(change.added for change in changes):
        yield f" +{added}", "ParleyAdded"
    if removed := sum(change.removed for change in changes):
        yield f" −{removed}", "ParleyRemoved"
    kinds = {change.kind for change in changes if change.kind}
    if kinds:
        yield f" {', '.join(sorted(kinds))}", "ParleyNote"


def _sandbox(text: str) -> Iterator[Chunk]:
    """Whether a command would run in a sandbox. A narrow window leaves out the reason, so that the
    command stays complete.
    """
    state, _, reason = text.partition(": ")
    if state:
        yield " · ", "ParleyServer"
        yield state, "ParleyNote" if reason else "ParleyServer"
    if reason:
        yield f": {upright(legible(_cut(reason, _MOST_SHOWN)))}", "ParleyNote", "", "size"


def shown_path(path: str) -> str:
    """A path for display, which cannot be mistaken for the text around it."""
    return upright(legible(_cut(_unmarked(path), _MOST_SHOWN)))


def _named(title: str, group: str) -> Chunk:
    """A name's chunk; only a long name can be cut in a narrow window."""
    return (title, group) if len(title) <= _SHORT_NAME else (title, group, "")


def outcome(result: Result, row: Chunks) -> Chunk:
    """A call's outcome, as shown after its row: `→ 61 B, ok`, or `→ 61 B, exit 1` for a command that
    failed.
    """
    failure = command_failure(result.body) if result.status == "ok" else ""
    status = failure or result.status
    parts = [*_extents(result), status]
    # Right-to-left letters before a number change its position, but do not affect a word.
    is_latin = all(upright(chunk[0]) == chunk[0] for chunk in row)
    group = "ParleyNote" if failure or result.status == "error" else "ParleyHint"
    return (
        f" → {', '.join(parts if is_latin else parts[::-1])}",
        group,
        f" → {status}",
        "size",
    )


def _extents(result: Result) -> list[str]:
    """The sizes of a result's text (of its beginning and of the whole text, if it is long) and of
    its pictures.
    """
    wholes = [f" of {a.size}" for a in result.attachments if a.is_text and a.size]
    pictures = [f"{a.media_type} {a.size}".rstrip() for a in result.attachments if not a.is_text]
    return [
        *([extent(result.body) + "".join(wholes)] if result.body or not pictures else []),
        *pictures,
    ]


def extent(text: str) -> str:
    """A text's size: the number of lines, if there are several, and bytes."""
    size = size_text(len(text.encode()))
    lines = len(text.removesuffix("\n").split("\n"))
    return f"{lines} lines, {size}" if lines > 1 else size


def length(text: str) -> str:
    """A text's length in words, or its size if its script does not use spaces."""
    words = len(text.split())
    return (
        counted(words, "word")
        if len(text) <= words * _LONGEST_WORD
        else size_text(len(text.encode()))
    )


def _title(name: str) -> str:
    """A tool's or a server's name, changed so that it cannot be mistaken for text around it."""
    title = (
        " ".join(_unmarked(name).split()).replace("·", "-").replace(": ", " ").translate(_BRACKETS)
    )
    return upright(legible(_cut(title, _LONGEST_NAME)))


def arguments(raw: str, *, is_apart: bool = True, by: str = "") -> Chunks:
    """Arguments as names and values on one line, paths first; as a string if they are not a JSON
    object. If a call was run `by` an agent, only the title that the agent gave it.

    `is_apart` means that the text right after the arguments keeps right-to-left text in them from
    affecting the text that follows.
    """
    try:
        decoded = decoded_arguments(raw)
    except ValueError:
        text = _unmarked(json.dumps(raw, ensure_ascii=False))
        return [
            ("no JSON: ", "ParleyNote"),
            (upright(legible(_cut(text, _MOST_SHOWN, '"'))), "ParleyValue", '"'),
        ]
    decoded = dict(shown_fields(decoded, is_brief=by == "agent"))
    decoded = dict(sorted(decoded.items(), key=lambda item: not _names_file(*item)))
    chunks, labels = list[Chunk](), [label(name) for name in decoded]
    followers = [*map(_PLAIN.fullmatch, labels[1:]), is_apart]
    for title, value, is_kept in zip(labels, decoded.values(), followers, strict=False):
        comma = ", " if chunks else ""
        if is_long(value):
            size = extent(value) if isinstance(value, str) else _items(value)
            chunks += [
                (f"{comma}{title}", "ParleyArgument"),
                (f": {size}", "ParleyHint", "", "size"),
            ]
            continue
        chunks.append((f"{comma}{title}: ", "ParleyArgument"))
        # Only a name in Latin letters separates the text runs before and after it.
        is_kept = is_kept and _PLAIN.fullmatch(title)
        text, group, end = _value(value, contained if is_kept else upright)
        chunks.append((text, group, end, "tail") if _is_path(title, value) else (text, group, end))
    return chunks


def _value(value: Any, shape: Callable[[str], str]) -> tuple[str, str, str]:
    """A value on one line, with its group, and with the text that follows the mark if the value is
    cut.
    """
    json_text = _unmarked(as_json(value))
    end = _ENDS.get(json_text[:1], "")
    return shape(legible(_cut(json_text, _MOST_SHOWN, end))), "ParleyValue", end


def _is_path(name: str, value: Any) -> bool:
    """Whether a value is a path (not a command or a URL); the end is a path's most informative
    part.
    """
    if not isinstance(value, str) or "://" in value or not ("/" in value or "\\" in value):
        return False
    return " " not in value or _FILE_NAME.search(name) is not None


def _names_file(name: str, value: Any) -> bool:
    """Whether a value says which file the call is about."""
    is_short = isinstance(value, str) and not is_long(value)
    return is_short and (_is_path(name, value) or _FILE_NAME.search(name) is not None)


def _items(value: Any) -> str:
    """The size of a list or an object."""
    return f"{counted(len(value), 'item')}, {size_text(len(as_json(value).encode()))}"


def is_long(value: Any) -> bool:
    """Whether a value is shown as lines: a text with several lines, or a list or an object that
    contains such a text.
    """
    if isinstance(value, str):
        return "\n" in value.removesuffix("\n")
    leaves = [leaf for _, leaf in islice(_leaves("", value), _MOST_LEAVES + 1)]
    return len(leaves) <= _MOST_LEAVES and any(
        isinstance(leaf, str) and is_long(leaf) for leaf in leaves
    )


def long_values(decoded: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The values that are shown as lines, with the labels that say where they are: of a list or an
    object, each value in it.
    """
    for name, value in decoded.items():
        if is_long(value):
            yield from _leaves(label(name), value)


def _leaves(title: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The texts, numbers and constants in a value; an empty list or object counts as one of them."""
    match value:
        case dict() if value:
            for name, member in value.items():
                is_plain = _PLAIN.fullmatch(name) and "." not in name
                yield from _leaves(f"{title}.{name if is_plain else label(as_json(name))}", member)
        case [_, *_]:
            for number, member in enumerate(value, 1):
                yield from _leaves(f"{title}[{number}]", member)
        case _:
            yield title, value


def long_arguments(raw: str) -> Iterator[tuple[str, list[str], Chunk]]:
    """The values that are shown as lines: each with its label, its lines, and the whole value on
    one line.
    """
    try:
        decoded = shown_fields(decoded_arguments(raw))
    except ValueError:
        return
    for title, value in long_values(decoded):
        lines = value.removesuffix("\n").split("\n") if is_long(value) else [as_json(value)]
        yield title, lines, _value(value, upright)


def shown_line(line: str, most: int | None = _MOST_SHOWN) -> str:
    """A line of text for display: tabs as an arrow and spaces, at most `most` characters."""
    parts = re.split("([\t`])", line if most is None else _cut(_unmarked(line), most))
    return contained("".join(_SPELLINGS.get(part) or legible(part) for part in parts))


def label(name: str) -> str:
    """An argument's name for display: in quotes if it could be mistaken for other text."""
    if len(name) <= _LONGEST_NAME and _PLAIN.fullmatch(name):
        return name
    return upright(
        legible(_cut(_unmarked(json.dumps(name, ensure_ascii=False)), _LONGEST_NAME, '"'))
    )


def _cut(text: str, most: int, end: str = "") -> str:
    return text if len(text) <= most else text[:most] + "…" + end


def _unmarked(text: str) -> str:
    """`text` without anything that looks like a cut; if it is JSON, its value is unchanged."""
    return text.replace("…", "\\u2026")


def decoded_arguments(raw: str) -> dict[str, Any]:
    """Decode arguments, but keep numbers as they were written. Raises ValueError like
    `decode_arguments`."""
    decode_arguments(raw)
    decoded: dict[str, Any] = (
        json.loads(raw, parse_int=_Number, parse_float=_Number) if raw.strip() else {}
    )
    return decoded


def as_json(value: Any, indent: str | None = None) -> str:
    """A decoded value as JSON, with numbers as written; on one line if `indent` is None."""
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
