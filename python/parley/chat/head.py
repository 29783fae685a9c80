"""Sets or removes one key in the front matter, and leaves every other line unchanged.

Knows how to find a key's lines in YAML; `front_matter` knows the meaning of keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from parley.chat.edits import Edit, LineDecoder, apply_edits
from parley.chat.front_matter import line_of, read_front_matter
from parley.chat.reader import parse
from parley.chat.transcript import Transcript, is_blank
from parley.late_patterns import late_pattern


def put_value(
    lines: LineDecoder, transcript: Transcript, key: str, value: str | Sequence[str] | None
) -> list[Edit]:
    """Set a key to a text or a list of texts; None removes the key, and also the front matter if
    this leaves it empty.

    Raises ValueError if the front matter cannot be read, or if the edit would change other keys.
    """
    edits = _put(lines, transcript.front_matter, key, value)
    after = {name: other for name, other in _keys(transcript).items() if name != key}
    if value is not None:
        after[key] = value if isinstance(value, str) else tuple(value)
    if _keys_after(lines, edits) != after:
        raise ValueError(
            f"cannot set {key} without changing the rest of the front matter. Set it by hand"
        )
    return edits


def put_values(
    lines: LineDecoder, transcript: Transcript, values: Mapping[str, str | None]
) -> list[Edit]:
    """Set or remove several keys in one edit. Raises ValueError as `put_value` does."""
    now = list(lines)
    for key, value in values.items():
        now = apply_edits(now, put_value(now, transcript, key, value))
        transcript = parse("\n".join([*now, ""]))
    below = 0
    while below < min(len(now), len(lines)) and now[-1 - below] == lines[len(lines) - 1 - below]:
        below += 1
    first, last = len(lines) - below, len(now) - below
    return [Edit(0, first, tuple(now[:last]))] if first or last else []


def height(transcript: Transcript) -> int:
    """The number of lines in the front matter, including the delimiters."""
    return 0 if transcript.front_matter is None else _count(transcript.front_matter) + 2


def lacks_topic(transcript: Transcript) -> bool:
    """Whether the front matter has an empty topic."""
    return len(_empty_topics(transcript)) == 1


def put_topic(lines: LineDecoder, transcript: Transcript, topic: str) -> list[Edit]:
    """Fill in an empty topic in the front matter; do nothing if that would change anything else."""
    rows = _empty_topics(transcript)
    if len(rows) != 1:
        return []
    edits = [Edit(rows[0], rows[0] + 1, (_entry("topic", topic),))]
    after = {name: value for name, value in _keys(transcript).items() if name != "topic"} | {
        "topic": topic
    }
    return edits if _keys_after(lines, edits) == after else []


_EMPTY_TOPIC = late_pattern(r"""topic:[ \t]*(?:""|''|~|null)?[ \t]*""")


def _empty_topics(transcript: Transcript) -> list[int]:
    """The file lines with an empty `topic` key."""
    lines = (transcript.front_matter or "").split("\n")
    return [number for number, line in enumerate(lines, 1) if _EMPTY_TOPIC.fullmatch(line)]


def _entry(key: str, value: str | Sequence[str]) -> str:
    """A key and its value on one line of YAML: unquoted text if possible, or else JSON."""
    if (
        isinstance(value, str)
        and read_front_matter(plain := f"{key}: {value}").keys.get(key) == value
    ):
        return plain
    return (
        f"{key}: {json.dumps(value if isinstance(value, str) else list(value), ensure_ascii=False)}"
    )


def _keys(transcript: Transcript) -> Mapping[str, Any]:
    return read_front_matter(transcript.front_matter).keys


def _keys_after(lines: LineDecoder, edits: Sequence[Edit]) -> Mapping[str, Any]:
    return _keys(parse("\n".join([*apply_edits(lines, edits), ""])))


def _put(
    lines: LineDecoder, raw: str | None, key: str, value: str | Sequence[str] | None
) -> list[Edit]:
    entry = [] if value is None else [_entry(key, value)]
    if raw is None:
        return [Edit(0, 0, ("---", *entry, "---", ""))] if entry else []
    place = _place(raw, key)
    if place is None:
        end = 1 + _count(raw)
        return [Edit(end if raw.strip() else 1, end, tuple(entry))] if entry else []
    if not entry and place == (0, _count(raw)):
        below = place[1] + 2
        return [Edit(0, below + (below < len(lines) and is_blank(lines[below])), ())]
    return [Edit(1 + place[0], 1 + place[1], tuple(entry))]


def _place(raw: str, key: str) -> tuple[int, int] | None:
    """A key's first line and the line after its value; None if the key is missing."""
    import yaml  # here because most chats are only opened for reading

    if any(problem.severity == "error" for problem in read_front_matter(raw).problems):
        raise ValueError("the front matter cannot be read. Fix it first")
    if not raw.strip():
        return None
    top = yaml.compose(raw, Loader=yaml.SafeLoader)
    if not isinstance(top, yaml.MappingNode):
        return None
    for name, value in top.value:
        if name.value == key:
            return line_of(raw, name.start_mark.index), _after(raw, value.end_mark.index)
    return None


def _after(raw: str, end: int) -> int:
    """The line after a value that ends at the character `end`.

    For a block, `end` is at the next content, so blank lines and comments above it are excluded.
    """
    line, lines = line_of(raw, end), raw.split("\n")
    if raw[:end].rpartition("\n")[2]:
        return line + 1
    while line > 0 and lines[line - 1].strip()[:1] in ("", "#"):
        line -= 1
    return line


def _count(raw: str) -> int:
    return raw.count("\n") + 1 if raw else 0
