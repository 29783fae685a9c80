"""The spelling of a chat file: markers, escaping, and the forms of the lines that carry structure.

This is the only module that knows a marker. A marker counts at column 0, whatever Markdown surrounds it;
text that would look like one is written with a backslash in front, and the reader takes that one off.
Knows single lines and blocks; knows nothing of exchanges, rounds or files.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from parley.chat.transcript import BLANK, CALL_ID, SPACING, UNFIT, Result, Status, ToolCall, is_blank

Kind: TypeAlias = Literal["question", "answer", "thinking", "proposal", "result", "note"]

MARKERS: dict[Kind, str] = {
    "question": "💬:",
    "answer": "🤖:",
    "thinking": "🧠:[",
    "proposal": "❓:",
    "result": "\U0001f6e0\ufe0f:",
    "note": "🔒:",
}
"""As they are written. When reading, U+FE0F after the emoji may be there or not for each of them."""

PROMPT = ">> Please choose ("
"""Lines that start so were written by older versions; today the prompt is drawn. Ignored and kept."""

SUMMARY = "📝:"
"""Starts the line in which a model sums up the exchange; plain text, not structure."""

_VS16 = "\ufe0f"
_KIND_OF: dict[str, Kind] = {marker.replace(_VS16, ""): kind for kind, marker in MARKERS.items()}
_MARKER = re.compile("|".join(rf"{marker[0]}{_VS16}?{re.escape(marker[1:])}" for marker in _KIND_OF))
_ESCAPABLE = re.compile(rf"\\*(?:{_MARKER.pattern}|{re.escape(PROMPT)})")
_STARTS = frozenset({marker[0] for marker in MARKERS.values()} | {"\\", ">"})
_LONGEST = max(len(PROMPT), *(len(m) + 1 for m in MARKERS.values()))


def marker_of(line: str) -> tuple[Kind, int] | None:
    """The marker at column 0 and the column after it, None for a line of text."""
    if line[:1] not in _STARTS or not (found := _MARKER.match(line)):
        return None
    return _KIND_OF[found[0].replace(_VS16, "")], found.end()


def is_escaped(line: str) -> bool:
    """Whether the line is text that carries one backslash more than it means."""
    return line[:1] == "\\" and bool(_ESCAPABLE.match(line))


def is_prompt(line: str) -> bool:
    """Whether the line is an old written prompt."""
    return line.startswith(PROMPT)


def is_plain(line: str) -> bool:
    """Whether the line means itself; quick, since nearly every line of a file does."""
    return line[:1] not in _STARTS


def escape_line(line: str) -> str:
    """One line of any text as it is written at column 0."""
    return "\\" + line if line[:1] in _STARTS and _ESCAPABLE.match(line) else line


def escape(text: str) -> list[str]:
    """The lines of any text as they are written at column 0."""
    return [escape_line(line) for line in text.split("\n")]


def may_need_escape(start: str) -> bool:
    """Whether a line that starts so could still grow into one to escape: hold it back while streaming."""
    bare = start.lstrip("\\")
    if not bare:
        return bool(start)
    if len(bare) >= _LONGEST:
        return False
    spellings = [PROMPT, *_KIND_OF, *(m[0] + _VS16 + m[1:] for m in _KIND_OF)]
    return any(len(bare) < len(spelling) and spelling.startswith(bare) for spelling in spellings)


# --- Proposals: `❓:[choice] {"id":…}` on one line -------------------------------------------------------

_PROPOSAL = re.compile(r"[ \t\u00a0]*(?:\[(?P<choice>[^\]]*)\])?(?P<json>.*)", re.DOTALL)
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that show as nothing (Unicode's Default_Ignorable_Code_Point) or move what is around them."""


def _shows(character: str) -> bool:
    if " " <= character <= "~":
        return character != "`"
    if _IGNORABLE.match(character):
        return False
    return character == " " or unicodedata.category(character) not in {
        "Cc",
        "Cf",
        "Cs",
        "Co",
        "Cn",
        "Zs",
        "Zl",
        "Zp",
    }


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def legible(json_text: str) -> str:
    """JSON text with every character that would not show for what it is as a `\\uXXXX` escape."""
    return "".join(c if _shows(c) else _json_escape(c) for c in json_text)


def proposal_json(call: ToolCall) -> str:
    """A call as OpenAI's tool-call object, legible; `read_call` reads it back."""
    keys: dict[str, Any] = {} if call.index is None else {"index": call.index}
    keys |= {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
    if call.extra:
        extra = json.loads(call.extra)
        keys["function"] |= extra.pop("function", {})
        keys |= extra
    return legible(json.dumps(keys, ensure_ascii=False, separators=(",", ":")))


def proposal_line(call: ToolCall, choice: str | None = None) -> str:
    """The line of a proposal; what the user sees on it is what the call is."""
    return f"{MARKERS['proposal']}{f'[{choice}]' if choice else ''} `{proposal_json(call)}`"


def split_proposal(content: str) -> tuple[str | None, str, int]:
    """The bracket's text (None without one), the JSON text, and the JSON's offset in `content`."""
    found = _PROPOSAL.fullmatch(content)
    assert found is not None, "the pattern takes any text"
    rest = found["json"]
    bare = rest.strip(SPACING + "\r").strip("`")
    return found["choice"], bare, content.find(bare, found.start("json"))


def remark(line: str, column: int, choice: str | None) -> str:
    """A proposal's line, its marker ending at `column`, with another choice in its bracket."""
    found = _PROPOSAL.fullmatch(line, column)
    assert found is not None, "the pattern takes any text"
    return f"{line[:column]}{f'[{choice}]' if choice else ''} {found['json'].lstrip(SPACING)}"


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) < len(pairs):
        raise ValueError("a key stands twice")
    return keys


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def strict_json(text: str) -> Any:
    """JSON text as a value; refuses what readers differ on: a key that stands twice, NaN, too deep nesting.

    Raises ValueError with a reason of one line.
    """
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_call(text: str) -> ToolCall:
    """The call of a proposal's JSON text; raises ValueError with a reason of one line."""
    keys = strict_json(text)
    if not isinstance(keys, dict):
        raise ValueError("expected a JSON object")
    if keys.pop("type", "function") != "function":
        raise ValueError('expected "type":"function"')
    function = keys.pop("function", None)
    if not isinstance(function, dict):
        raise ValueError('expected "function":{"name":…,"arguments":…}')
    call_id, index = keys.pop("id", None), keys.pop("index", None)
    name, arguments = function.pop("name", None), function.pop("arguments", None)
    if not isinstance(name, str) or not name:
        raise ValueError('expected a text as "name"')
    if not isinstance(arguments, str):
        raise ValueError('expected a text as "arguments": the JSON arguments as a string')
    if not isinstance(call_id, str) or not CALL_ID.fullmatch(call_id):
        raise ValueError('expected an "id" of 1 to 128 letters, digits and _ . : -')
    if isinstance(index, bool) or not isinstance(index, int | None) or (index or 0) < 0:
        raise ValueError('expected a whole number as "index"')
    if function:
        keys["function"] = function
    return ToolCall(call_id, name, arguments, index, extra_json(keys))


def extra_json(keys: dict[str, Any]) -> str:
    """Further keys of a call in the one form in which `ToolCall.extra` holds them."""
    return json.dumps(keys, separators=(",", ":"), sort_keys=True) if keys else ""


# --- Results: `🛠️: [name][id]`, a blank line, a quoted body ----------------------------------------------

_HEADER = re.compile(
    rf"[{SPACING}]*\[(?P<name>[^\]]*)\][{SPACING}]*\[(?P<id>{CALL_ID.pattern})\]"
    rf"(?:[{SPACING}]*\[(?P<status>error|refused)\])?[{SPACING}\r]*"
)
_FENCE = re.compile(r"(?P<ticks>`{3,})[^`]*")
_SPAN = re.compile(r"(?P<ticks>`+)(?P<body>.*[^`])(?P=ticks)", re.DOTALL)


def header_name(name: str) -> str:
    """A tool's name as a result header shows it: one word, whatever the name holds."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name) or "_"


def result_header(name: str, call_id: str, status: Status) -> str:
    """The header line of a result."""
    return f"{MARKERS['result']} [{header_name(name)}][{call_id}]" + ("" if status == "ok" else f"[{status}]")


def read_header(content: str) -> tuple[str, str, Status] | None:
    """Name, call id and status of a result header's text after its marker, None where it cannot be read."""
    if not (found := _HEADER.fullmatch(content)):
        return None
    status: Status = "ok"
    match found["status"]:
        case "error":
            status = "error"
        case "refused":
            status = "refused"
    return header_name(found["name"]), found["id"], status


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def quote_body(body: str) -> list[str]:
    """A result's body as lines whose end is known whatever the body holds."""
    if body and "\n" not in body and body[0] not in "` " and body[-1] not in "` ":
        ticks = "`" * (_longest_run(body) + 1)
        return [ticks + body + ticks]
    ticks = "`" * max(3, _longest_run(body) + 1)
    return [ticks, *(escape(body) if body else []), ticks]


def read_body(lines: Sequence[str]) -> tuple[str, int, str | None]:
    """The body that starts at the first of `lines` that is not blank, how many lines it takes, a problem.

    The lines are those up to the next marker, already freed of escaping backslashes.
    """
    start = next((i for i, line in enumerate(lines) if not is_blank(line)), None)
    if start is None:
        return "", 0, "this result has no body"
    first = lines[start].rstrip(BLANK)
    if fence := _FENCE.fullmatch(first):
        return _read_fence(lines, start, fence["ticks"])
    span = _SPAN.fullmatch(first)
    if span and span["body"][0] != "`" and _longest_run(span["body"]) < len(span["ticks"]):
        return span["body"], start + 1, None
    end = next((i for i in range(start, len(lines)) if is_blank(lines[i])), len(lines))
    return "\n".join(lines[start:end]), end, None


def _read_fence(lines: Sequence[str], start: int, ticks: str) -> tuple[str, int, str | None]:
    for end in range(start + 1, len(lines)):
        if lines[end].rstrip(BLANK) == ticks:
            return "\n".join(lines[start + 1 : end]), end + 1, None
    body = "\n".join(lines[start + 1 :]).rstrip(BLANK + "\n")
    return body, len(lines), f"this result's fence is not closed by a line {ticks}"


def result_lines(name: str, call_id: str, result: Result) -> list[str]:
    """A result with its header, as it is written."""
    return [result_header(name, call_id, result.status), "", *quote_body(result.body)]


# --- Thinking: `🧠:[provider:model signature]`, then a block quote ----------------------------------------


def read_thinking_head(content: str) -> tuple[str, str, str, bool] | None:
    """Provider, model, signature and whether it is redacted, from the text after `🧠:[`."""
    content = content.rstrip(SPACING)
    if not content.endswith("]"):
        return None
    head, _, signature = content[:-1].partition(" ")
    provider, _, model = head.partition(":")
    redacted = signature.startswith("redacted ")
    if redacted:
        signature = signature.removeprefix("redacted ")
    return provider, model, signature, redacted


def quote(text: str) -> list[str]:
    """Thinking as a block quote; nothing in it is escaped, since no line of it starts with a marker."""
    return ["> " + line if line else ">" for line in text.split("\n")]


def unquote(lines: Iterable[str]) -> str:
    """The text of a block quote's lines."""
    return "\n".join(line[2:] if line[1:2] == " " else line[1:] for line in lines)


def fit(text: str) -> str:
    """Any text without what no text of a transcript holds: NUL shows as ␀, a lone surrogate as U+FFFD."""
    return UNFIT.sub(lambda found: "␀" if found[0] == "\0" else "\ufffd", text)
