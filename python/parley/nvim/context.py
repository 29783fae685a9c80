"""Text from the editor for a question: the file next to the chat, a selection, or diagnostics.

Knows what Lua reports about the file; `storage.reference_texts` knows which files Parley may read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from parley.chat.references import Lines, info_word
from parley.errors import ParleyError
from parley.nvim.editor import Editor
from parley.storage.reference_texts import EditorText
from parley.text import one_line, size_text

MOST_DIAGNOSTICS = 200
_MESSAGE = 1000
"""The maximum number of characters to quote from a diagnostic's message."""
_OF_FILES = ("", "help")
"""The kinds of buffers ('buftype') that contain a file's text."""
_DIFFERENCES = {
    "unsaved": " with unsaved changes; the file on disk differs",
    "stale": " before its last change; the file on disk differs",
    "deleted": "; the file was deleted",
}
"""What a title says about the file, by the difference that Lua reports."""
_NO_FILE = "no other file is open next to this chat"


async def editor_text(editor: Editor, buf: int, name: str, most: int) -> EditorText:
    """The text that a name refers to, at most `most` bytes. Raises ParleyError."""
    is_diagnostics = name == "diagnostics"
    context = await editor.ask("context", buf, name, MOST_DIAGNOSTICS if is_diagnostics else most)
    if not context:
        raise ParleyError(_NO_FILE)
    file, path = one_line(context["name"]), context["path"]
    if context["kind"] not in _OF_FILES or "://" in path:
        raise ParleyError(f"{file} is not a file")
    if not context["loaded"]:
        raise ParleyError(f"{file} is no longer open: @@{file}@@ includes the file")
    if is_diagnostics:
        return EditorText(path, f"diagnostics of {file}", _diagnostics(file, context), "text")
    return _text(name, file, context)


def _text(name: str, file: str, context: Mapping[str, Any]) -> EditorText:
    """The file's text, or the selected part."""
    if size := context.get("size"):
        raise ParleyError(f"too large ({size_text(size)}), so not read")
    lines = context.get("lines") or []
    if any("\0" in line or "\n" in line for line in lines):  # a NUL, from Vim's functions
        raise ParleyError(f"{file} is not text")
    is_selection = name == "selection"
    if not any(map(str.strip, lines)):
        raise ParleyError(f"nothing is selected in {file}" if is_selection else f"{file} is empty")
    first = context["first"]
    title = Lines(file, first, first + len(lines) - 1).title if is_selection else file
    title += _DIFFERENCES.get(context.get("difference", ""), "")
    return EditorText(
        context["path"], title, "\n".join(lines) + "\n", info_word(context["language"])
    )


def _diagnostics(file: str, context: Mapping[str, Any]) -> str:
    """The file's most severe diagnostics, in line order."""
    worst, count = sorted(context["diagnostics"]), context["count"]
    if not worst:
        raise ParleyError(f"{file} has no diagnostics")
    more = [f"({count - len(worst)} more)"] if count > len(worst) else []
    return "\n".join([*_lines(file, worst), *more]) + "\n"


def _lines(file: str, diagnostics: list[list[Any]]) -> Iterator[str]:
    for row, column, severity, message, source in diagnostics:
        by = f" ({one_line(source, 80)})" if source else ""
        yield f"{file}:{row}:{column}: {severity.lower()}: {one_line(message, _MESSAGE)}{by}"
