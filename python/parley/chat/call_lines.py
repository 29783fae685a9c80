"""A tool call as one line in a chat file: `❓:[choice] {"id":…}`, legible and lossless.

The line shows the user the exact call, so a line with more than one possible meaning is rejected.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from parley.chat.grammar import MARKERS
from parley.chat.transcript import CALL_ID, SPACING, ToolCall
from parley.late_patterns import late_pattern
from parley.text import legible

_PROPOSAL = late_pattern(r"[ \t\u00a0]*(?:\[(?P<choice>[^\]]*)\])?(?P<json>.*)", re.DOTALL)


def proposal_json(call: ToolCall) -> str:
    """A call as OpenAI's tool-call object, in legible JSON; `read_call` reads it back."""
    keys: dict[str, Any] = {} if call.index is None else {"index": call.index}
    keys |= {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }
    if call.extra:
        extra = json.loads(call.extra)
        keys["function"] |= extra.pop("function", {})
        keys |= extra
    return legible(json.dumps(keys, ensure_ascii=False, separators=(",", ":")))


def proposal_line(call: ToolCall, mark: str | None = None) -> str:
    """A proposal's line, which shows the user the exact call."""
    return f"{MARKERS['proposal']}{f'[{mark}]' if mark else ''} `{proposal_json(call)}`"


def split_proposal(content: str) -> tuple[str | None, str, int]:
    """The text in brackets (None if missing), the JSON text, and the JSON's offset in `content`."""
    parts = _PROPOSAL.fullmatch(content)
    assert parts is not None, "the pattern takes any text"
    rest = parts["json"]
    bare = rest.strip(SPACING + "\r").strip("`")
    return parts["choice"], bare, content.find(bare, parts.start("json"))


def remark(line: str, column: int, choice: str | None) -> str:
    """Change the choice in a proposal's line, whose marker ends at `column`."""
    parts = _PROPOSAL.fullmatch(line, column)
    assert parts is not None, "the pattern takes any text"
    return f"{line[:column]}{f'[{choice}]' if choice else ''} {parts['json'].lstrip(SPACING)}"


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) < len(pairs):
        raise ValueError("a key appears twice")
    return keys


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large")  # as JSON, it would be Infinity, which is invalid
    return value


_DEEPEST = 100
_STRICT = json.JSONDecoder(
    object_pairs_hook=_no_duplicates, parse_constant=_no_constant, parse_float=_finite
)


def strict_json(text: str) -> Any:
    """Decode JSON text; reject everything that JSON readers interpret differently.

    Raises ValueError with a one-line reason, for example for duplicate keys, NaN or deep nesting.
    """
    try:
        value = _STRICT.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not _is_shallow(value):
        raise ValueError("nested too deeply")
    return value


def _is_shallow(value: Any) -> bool:
    """Whether a value can be encoded again: a value that can be decoded may still be nested too
    deeply for that.
    """
    level = [value]
    for _ in range(_DEEPEST):
        holders = [item for item in level if isinstance(item, dict | list)]
        level = [
            inner
            for item in holders
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return True
    return False


def read_call(text: str) -> ToolCall:
    """Read the call in a proposal's JSON text. Raises ValueError with a one-line reason."""
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
        raise ValueError('expected a string for "name"')
    if not isinstance(arguments, str):
        raise ValueError('expected a string for "arguments", with the arguments as JSON')
    if not isinstance(call_id, str) or not CALL_ID.fullmatch(call_id):
        raise ValueError('expected an "id" of 1 to 128 letters, digits and _ . : -')
    if isinstance(index, bool) or not isinstance(index, int | None) or (index or 0) < 0:
        raise ValueError('expected a whole number for "index"')
    if function:
        keys["function"] = function
    return ToolCall(call_id, name, arguments, index, extra_json(keys))


def extra_json(keys: dict[str, Any]) -> str:
    """A call's additional keys, in the form used in `ToolCall.extra`."""
    return json.dumps(keys, separators=(",", ":"), sort_keys=True) if keys else ""
