"""A project's text, whole or as a diff, as rows for the user to read before agreeing. Pure.

Each row begins with two spaces, so no line of the text can pass for a part of the page. Does not
know where the text is from.
"""

from __future__ import annotations

from collections.abc import Sequence

from parley.display.diff_rows import diff_chunks
from parley.display.summary import Chunks, shown_line
from parley.text import visible
from parley.tools.line_diff import diff_rows

HIDDEN_SHOWN = "! It contains hidden characters, which appear here as escapes."
"""A remark, because the user does not see such characters in the file."""


def offered_text_rows(text: str, before: str | None) -> Sequence[Chunks]:
    """All lines of a text; if the user agreed to the text `before`, the diff to it."""
    if before is None:
        return [[("  ", ""), (shown_line(line, None), "", "")] for line in text.split("\n")]
    both = f"{before}\n", f"{text}\n"  # so that no remark about a missing newline is needed
    return [diff_chunks(row) for row in diff_rows(*both)]


def has_hidden(text: str) -> bool:
    """Whether a text contains characters that a reader of the file does not see."""
    return visible(text) != text
