"""Turns JSON with comments and trailing commas, as editors write it, into plain JSON.

Strings, lines and columns stay the same, so a JSON reader's errors refer to the right place. The
JSON reader refuses all other flaws.
"""

from __future__ import annotations

import re

from parley.late_patterns import late_pattern

_TOKEN = late_pattern(
    r"""
      "(?:[^"\\]+|\\.)*"?                    # a string; an unclosed one extends to the end
    | //[^\r\n]* | /\*.*?(?:\*/|\Z)         # a comment
    | \s+
    | [^\s"/,]+                             # words, numbers, brackets and colons
    | .
    """,
    re.DOTALL | re.VERBOSE,
)
_OPENING = ("", "[", "{", ":", ",")
"""The last character before a comma that does not follow a value."""


def plain_json(text: str) -> str:
    """The text with spaces in place of comments and trailing commas."""
    pieces, before, comma = list[str](), "", -1
    for token in _TOKEN.finditer(text):
        piece = token[0]
        if piece.startswith("//") or (piece.startswith("/*") and _is_closed(piece)):
            piece = re.sub(r"[^\r\n]", " ", piece)
        elif not piece.isspace():
            if comma >= 0 and piece[0] in "]}":
                pieces[comma] = " "
            comma = len(pieces) if piece == "," and before not in _OPENING else -1
            before = piece[-1] if piece[0] != '"' else '"'
        pieces.append(piece)
    return "".join(pieces)


def _is_closed(comment: str) -> bool:
    return len(comment) > len("/*/") and comment.endswith("*/")
