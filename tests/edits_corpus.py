"""The corpus of edits in `tests/edits`: calls as models write them, and the files after them.

Each `##` heading begins a case; its blocks are fenced with `~~~`. A block's name says what it has:
`before` and `after`: a file, with its path and encoding if they are not `f` and UTF-8. `old` and
`new` (or `new all`): a replacement of Parley's `edit_file`. `arguments TOOL`: JSON of a call to
another server's tool, or to Parley's with `own`. `error`: the text for the model. `doubt`: the doubt
about a preview. `unknown`: no edit is recognized. Some characters stand for others: see `SIGNS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EDITS = Path(__file__).parent / "edits"
SIGNS = {"␍": "\r", "⇥": "\t", "␠": " ", "⍽": "\u00a0", "␊": "\n"}
NO_LAST_NEWLINE = "␃"
BLOCK = re.compile(r"^~~~([^\n]*)\n(.*?)^~~~$", re.DOTALL | re.MULTILINE)


@dataclass
class EditCase:
    """One call, the files before it, and the files after it or an error."""

    name: str
    tool: str = "edit_file"
    is_own: bool = True
    arguments: Mapping[str, Any] = field(default_factory=dict)
    before: dict[str, bytes] = field(default_factory=dict)
    after: dict[str, bytes] = field(default_factory=dict)
    error: str = ""
    doubt: str = ""
    is_known: bool = True


def unsigned(text: str) -> str:
    for sign, character in SIGNS.items():
        text = text.replace(sign, character)
    return text


def file_bytes(body: str, encoding: str) -> bytes:
    text = unsigned(body.removesuffix("\n") if body.endswith(f"{NO_LAST_NEWLINE}\n") else body)
    return text.replace(NO_LAST_NEWLINE, "").encode(encoding)


def read_case(name: str, text: str) -> EditCase:
    case = EditCase(name)
    edits: list[dict[str, Any]] = []
    for info, body in BLOCK.findall(text):
        kind, *words = info.split()
        line = unsigned(body.removesuffix("\n"))
        match kind:
            case "before" | "after":
                path, encoding = (
                    (*words, "f", "utf-8")[:2] if len(words) != 1 else (words[0], "utf-8")
                )
                getattr(case, kind)[path] = file_bytes(body, encoding)
            case "old":
                edits.append({"old": line})
            case "new":
                edits[-1] |= {"new": line} | ({"all": True} if words else {})
            case "arguments":
                case.tool, case.is_own = words[0], "own" in words
                case.arguments = json.loads(body)
            case "error" | "doubt":
                setattr(case, kind, line)
            case "unknown":
                case.is_known = False
            case _:
                raise ValueError(f"{name}: unknown block {info!r}")
    if edits:
        case.arguments = {"path": "f", "edits": edits}
    return case


def edit_cases() -> Iterator[EditCase]:
    for path in sorted(EDITS.glob("*.md")):
        for part in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            title, _, text = part.partition("\n")
            yield read_case(f"{path.stem}: {title}", text)
