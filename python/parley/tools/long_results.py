"""The built-in tool that reads more of a result that was too long for the file. Pure.

Knows the tool and the part of a text to return; `engine/read_result.py` finds the text.
"""

from __future__ import annotations

from typing import Any

from parley.tools.catalogue import Tool, own_identity

READ_RESULT = Tool(
    "parley",
    "read_result",
    title="Read on in a long result",
    description="Reads on in a result of a call that was too long to be shown whole.",
    input_schema={
        "type": "object",
        "properties": {
            "call": {
                "type": "string",
                "description": "The id of the call, as its result names it.",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": (
                    "The character to begin with, from 0; by default where what was shown ends."
                ),
            },
            "length": {
                "type": "integer",
                "minimum": 1,
                "description": "The number of characters; by default as many as can be shown.",
            },
        },
        "required": ["call"],
        "additionalProperties": False,
    },
    annotations={"readOnlyHint": True, "openWorldHint": False},
    identity=own_identity(),
    unasked="it shows only results of approved calls",
)

_CUT = "… [truncated: "


def head_of(body: str) -> str:
    """The beginning of a long text, as shown in a result's body."""
    head, mark, _ = body.rpartition(_CUT)
    return head if mark else body


def excerpt(text: str, arguments: dict[str, Any], begin: int, max_bytes: int) -> str:
    """A part of a text, at most `max_bytes` long, with a line about the rest.

    `begin` is the offset if the arguments do not contain one.
    """
    # JSON Schema also accepts 1.0 as an integer.
    offset, length = (
        int(arguments.get(name, usual))
        for name, usual in (("offset", begin), ("length", max_bytes))
    )
    count = len(text)
    if offset >= count:
        return f"[This result has {count} characters: there are none from {offset} on]"
    piece = text[offset : offset + min(length, max_bytes)]
    piece = piece.encode()[: max(max_bytes, 4)].decode(errors="ignore")
    end = offset + len(piece)
    left = f"{count - end} are left: go on with offset {end}" if end < count else "this is the end"
    return f"{piece}\n[Characters {offset} to {end} of {count}; {left}]"
