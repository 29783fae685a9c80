"""Reads tools and calls that a request describes in its text, for a model without tool support.

The system prompt contains a line of JSON for each tool, and describes the syntax of a call, which
is JSON or tags. Calls are in the assistant's text, and results are in the user's text. Knows how to
read and write both syntaxes.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from parley.demo.dialogue import DemoCall
from parley.late_patterns import late_pattern

Syntax = Literal["", "json", "xml"]
Entry = tuple[str, Any]

_FORMS: tuple[tuple[Syntax, str], ...] = (
    ("json", '{"tool": "name", "params":'),
    ("xml", "<tool:name>"),
)
_OBJECT = late_pattern(r'^\{"tool": "', re.MULTILINE)
_BLOCK = late_pattern(r"<tool:([\w.-]+)>(.*?)</tool:\1>", re.DOTALL)
_PARAM = late_pattern(r"<param:([\w.-]+)>(.*?)</param:\1>", re.DOTALL)
_RESULTS = late_pattern(r"(?:^|\n\n)Tool results:\n")
_RESULT = late_pattern(
    r"\n(\d+)\. ([\w-]+)( failed)?\n(?P<fence>`{3,})\n(.*?)\n(?P=fence)(?:\n|$)", re.DOTALL
)
_CORRECTIONS = late_pattern(r"(?:^|\n\n)IMPORTANT: Previous attempts failed.*", re.DOTALL)


def syntax_of(system: str) -> Syntax:
    """The syntax for calls that a system prompt asks for; "" if it does not describe tools."""
    return next((syntax for syntax, form in _FORMS if form in system), "")


def tools_in(system: str) -> tuple[str, ...]:
    """The names of the tools that a system prompt describes."""
    return tuple(filter(None, map(_tool_name, system.splitlines())))


def with_calls(entries: Iterable[Entry], syntax: Syntax) -> Iterator[Entry]:
    """Convert a conversation with calls and results in the text to one with separate entries."""
    waiting: list[str] = []
    count = 0
    for kind, text in entries:
        if kind == "text":
            calls = list(_calls(text, syntax))
            waiting = [f"words_{count + number}" for number in range(len(calls))]
            count += len(calls)
            yield from (
                ("call", (call_id, call.name, call.arguments))
                for call_id, call in zip(waiting, calls, strict=True)
            )
        elif kind == "pictures":
            yield kind, text
        else:
            yield from _user_entries(_CORRECTIONS.sub("", text), waiting)


def call_text(call: DemoCall, syntax: Syntax) -> str:
    """A call written as text."""
    if syntax == "json":
        return f'{{"tool": "{call.name}", "params": {call.arguments}}}'
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = {"_raw": call.arguments}
    params = (f"<param:{key}>{_text(value)}</param:{key}>" for key, value in arguments.items())
    return "\n".join([f"<tool:{call.name}>", *params, f"</tool:{call.name}>"])


def _tool_name(line: str) -> str:
    try:
        described = json.loads(line) if line.startswith('{"name":') else {}
    except ValueError:
        return ""
    return str(described["name"]) if "parameters" in described else ""


def _calls(text: str, syntax: Syntax) -> Iterator[DemoCall]:
    if syntax == "json":
        for start in _OBJECT.finditer(text):
            try:
                entry, _ = json.JSONDecoder().raw_decode(text, start.start())
            except ValueError:
                continue
            yield DemoCall(
                str(entry["tool"]), json.dumps(entry.get("params", {}), ensure_ascii=False)
            )
        return
    for block in _BLOCK.finditer(text):
        params = {name: value.strip("\n") for name, value in _PARAM.findall(block[2])}
        yield DemoCall(block[1], json.dumps(params, ensure_ascii=False))


def _user_entries(text: str, waiting: list[str]) -> Iterator[Entry]:
    """The results in a user's message, then the question below the results, if any."""
    heading = _RESULTS.match(text) if waiting else None
    if not heading:
        yield "question", text
        return
    at = heading.end()
    for call_id in waiting:
        if result := _RESULT.match(text, at):
            yield "result", (call_id, result[5], bool(result[3]))
            at = result.end()
    if rest := text[at:].strip():
        yield "question", rest


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
