"""Replaces text as the reference file server's `edit_file` does: the first match counts.

The rule of @modelcontextprotocol/server-filesystem 2026.8.31, `applyFileEdits` in dist/lib.js, for a
preview of a call to this server. Parley's own edits follow `text_edits`.
"""

from __future__ import annotations

from collections.abc import Sequence

from parley.tools.line_runs import first_run
from parley.tools.text_edits import EditError, Replacement

_BLANKS = (
    "\t\n\v\f\r \u00a0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + ("\u2028\u2029\u202f\u205f\u3000\ufeff")
)
"""The characters that JavaScript's `trim` removes."""


def with_first_matches(text: str, replacements: Sequence[Replacement]) -> tuple[str, str]:
    """The text that the server writes, and a doubt: why the user may not expect this text. Raises
    EditError.
    """
    doubt = "the server changes all line endings to LF" if "\r\n" in text else ""
    text = _with_lf(text)
    for replacement in replacements:
        old, new = _with_lf(replacement.old), _with_lf(replacement.new)
        if old in text:
            at = text.index(old)
            if text.find(old, at + 1) >= 0:
                doubt = "the old text matches several places, and the server changes the first one"
            text = text[:at] + new + text[at + len(old) :]
        else:
            text = _with_trimmed_match(text, old, new)
            doubt = "the server ignores whitespace around lines, and changes the first place that matches"
    return text, doubt


def _with_trimmed_match(text: str, old: str, new: str) -> str:
    lines, old_lines = text.split("\n"), old.split("\n")
    at = first_run(map(_trimmed, lines), list(map(_trimmed, old_lines)))
    if at < 0:
        raise EditError("the old text is not in the file, so the server will refuse this edit")
    base = _indent(lines[at])
    lines[at : at + len(old_lines)] = [
        _indented(base, line, old_lines[n] if n < len(old_lines) else "", is_first=n == 0)
        for n, line in enumerate(new.split("\n"))
    ]
    return "\n".join(lines)


def _indented(base: str, line: str, old: str, *, is_first: bool) -> str:
    if is_first:
        return base + line.lstrip(_BLANKS)
    indent, old_indent = _indent(line), _indent(old)
    if not indent or not old_indent:
        return line
    return base + " " * (len(indent) - len(old_indent)) + line.lstrip(_BLANKS)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(_BLANKS))]


def _trimmed(line: str) -> str:
    return line.strip(_BLANKS)


def _with_lf(text: str) -> str:
    return text.replace("\r\n", "\n")
