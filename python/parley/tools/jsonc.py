"""JSON with comments and trailing commas, as editors write their files, made plain JSON.

Strings stay whole, and every line and column where it was, so that the errors of a JSON reader name the right
place. What is wrong beyond that is left for the reader to refuse.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""
      "(?:[^"\\]+|\\.)*"?                    # a string, up to the end where nothing closes it
    | //[^\r\n]* | /\*.*?(?:\*/|\Z)         # a comment
    | \s+
    | [^\s"/,]+                             # words, numbers, brackets and colons
    | .
    """,
    re.DOTALL | re.VERBOSE,
)
_OPENING = ("", "[", "{", ":", ",")
"""The last sign before a comma that is not after a value."""


def plain_json(text: str) -> str:
    """The text with blanks for its comments and for each comma between a value and a closing bracket."""
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
