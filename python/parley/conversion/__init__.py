"""Conversion: a chat as a page or as messages (`exports`), and other programs' chats as Parley chats
(`imports`).

Other rooms may use only the names listed here. Pure.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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

if not TYPE_CHECKING:  # otherwise type checkers would accept any name

    def __getattr__(name):
        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
        return value
