"""The corpora of texts that contain tool calls, and the expected result for each reader."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from parley.models.text_tools.json import JsonExtractor
from parley.models.text_tools.text_calls import (
    Failed,
    Item,
    Prose,
    ReplyReader,
    TextCall,
    Thought,
    ThoughtEnd,
)
from parley.models.text_tools.xml import XmlParser
from parley.tools.catalogue import Catalogue, Tool

STREAMS = Path(__file__).parent / "streams"


def _tool(name: str, required: list[str], **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": required}
    return Tool("demo", name, description=f"To {name}.", input_schema=schema)


TOOLS = Catalogue.of(
    [
        _tool("web_search", ["query"], query={"type": "string"}, limit={"type": "integer"}),
        _tool("read_file", ["path"], path={"type": "string"}, binary={"type": "boolean"}),
        _tool(
            "edit",
            [],
            paths={"type": "array", "items": {"type": "string"}},
            lines={"type": "array", "items": {"type": "integer"}},
            diff={"type": "string"},
            weight={"type": ["number", "null"]},
            options={"type": "object"},
            anything={},
        ),
    ]
)

Plain = list[str]
"""`["prose", text]`, `["call", name, arguments]`, `["failed", error]`, `["thought", text]`,
`["end"]` or `["limit"]`.
"""


def reader(kind: str) -> ReplyReader:
    """A corpus's reader: `json_tools`, or `xml_tools` with `single` or `unlimited` after a dot."""
    if kind == "json_tools":
        return JsonExtractor(TOOLS.names())
    return XmlParser(TOOLS, single=kind.endswith("single"))


def read(kind: str, pieces: Iterable[str]) -> list[Plain]:
    """The reader's result for a text in these pieces; adjacent pieces of one kind are joined."""
    items, text_reader = list[Item](), reader(kind)
    for piece in pieces:
        items += text_reader.feed(piece)
        if text_reader.limit:
            break
    items += text_reader.end()
    lines = list[Plain]()
    for item in map(plain, items):
        if lines and item[0] == lines[-1][0] and item[0] in ("prose", "thought"):
            lines[-1] = [item[0], lines[-1][1] + item[1]]
        else:
            lines.append(item)
    return lines + ([["limit"]] if text_reader.limit else [])


def plain(item: Item) -> Plain:
    """An item in the corpus's notation."""
    match item:
        case Prose(text):
            return ["prose", text]
        case TextCall(name, arguments):
            return ["call", name, arguments]
        case Failed(error):
            return ["failed", error]
        case Thought(text):
            return ["thought", text]
        case ThoughtEnd():
            return ["end"]


def cases() -> list[tuple[str, Path]]:
    """Each text with each of its readers."""
    texts = sorted(STREAMS.glob("json_tools/*.txt")), sorted(STREAMS.glob("xml_tools/*.txt"))
    kinds = "xml_tools.single", "xml_tools.unlimited"
    return [("json_tools", path) for path in texts[0]] + [
        (k, path) for path in texts[1] for k in kinds
    ]


def expected(kind: str, path: Path) -> list[Plain]:
    """The expectation next to a text; in XML by the filter's name."""
    found: Any = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    wanted: list[Plain] = found if kind == "json_tools" else found[kind.partition(".")[2]]
    return wanted
