"""Conversion: a chat as a page or as messages (`exports`), and other programs' chats as Parley chats
(`imports`).

Other rooms may use only the names listed here. Pure.
"""

from typing import TYPE_CHECKING

from parley.late_names import late_names

if TYPE_CHECKING:
    from parley.conversion.exports.html import html_page
    from parley.conversion.exports.message_json import message_line, message_problems
    from parley.conversion.exports.plain_markdown import markdown_page
    from parley.conversion.imports.import_formats import IMPORT_FORMATS, imported_chats
    from parley.conversion.imports.imported_chat import ImportedChat

__all__ = [
    "IMPORT_FORMATS",
    "ImportedChat",
    "html_page",
    "imported_chats",
    "markdown_page",
    "message_line",
    "message_problems",
]

_HOMES = {
    "exports.html": ("html_page",),
    "exports.message_json": ("message_line", "message_problems"),
    "exports.plain_markdown": ("markdown_page",),
    "imports.import_formats": ("IMPORT_FORMATS", "imported_chats"),
    "imports.imported_chat": ("ImportedChat",),
}
"""The names by module; they are imported when used, because the editor's host must start quickly."""

if not TYPE_CHECKING:
    __getattr__ = late_names(__name__, _HOMES)
