"""Markdown as HTML, with coloured code. Markup in a text is shown as it was written.

`markdown-it-py` renders Markdown, and Pygments colours code. Pictures become links.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from html import escape
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

CODE_COLOURS = """\
:root { --comment: light-dark(#57606a, #8b949e); --keyword: light-dark(#cf222e, #ff7b72);
  --string: light-dark(#0a3069, #a5d6ff); --number: light-dark(#0550ae, #79c0ff);
  --name: light-dark(#8250df, #d2a8ff); --minus: light-dark(#82071e, #ffdcd7);
  --plus: light-dark(#116329, #aff5b4); }
.comment { color: var(--comment); } .keyword { color: var(--keyword); } .string { color: var(--string); }
.number { color: var(--number); } .name { color: var(--name); }
.minus { color: var(--minus); } .plus { color: var(--plus); }
"""
"""The style of coloured code, which follows the page's `color-scheme`."""
_CLASSES = (
    ("comment", ("Comment",)),
    ("keyword", ("Keyword", "Generic.Heading", "Generic.Subheading")),
    ("string", ("Literal.String",)),
    ("number", ("Literal.Number",)),
    (
        "name",
        (
            "Name.Function",
            "Name.Class",
            "Name.Builtin",
            "Name.Decorator",
            "Name.Tag",
            "Name.Attribute",
        ),
    ),
    ("minus", ("Generic.Deleted",)),
    ("plus", ("Generic.Inserted",)),
)
"""The CSS class for each Pygments token type and its subtypes."""
_LONGEST_CODE, _LONGEST_LINE = 16_384, 1000
"""Limits for a code block and a line in it; longer code is not coloured.

Some of Pygments' regular expressions take quadratic time, and cannot be stopped while they run.
"""


def markdown_renderer(seconds: float) -> MarkdownIt:
    """A renderer; it colours code only in the next `seconds`."""
    from markdown_it import MarkdownIt

    options = {"html": False, "highlight": _highlighter(time.monotonic() + seconds)}
    return MarkdownIt("commonmark", options).enable("table").disable("image")


def _highlighter(end: float) -> Callable[[str, str, str], str]:
    """A function that turns code and its language into HTML; if it returns "", the code is not
    coloured.

    Code is not coloured if the language is unknown, if the code or a line is too long, or after the
    time `end`.
    """

    def html(code: str, language: str, _: str) -> str:
        is_long = len(code) > _LONGEST_CODE or any(
            len(line) > _LONGEST_LINE for line in code.split("\n")
        )
        if is_long or time.monotonic() >= end:
            return ""
        tokens = list(takewhile(lambda _: time.monotonic() < end, _tokens(code, language)))
        pieces = [
            (name, "".join(text for _, text in run))
            for name, run in groupby(tokens, lambda token: token[0])
        ]
        is_whole = "".join(text for _, text in pieces) == code
        return "".join(_piece(name, text) for name, text in pieces) if is_whole else ""

    return html


def _tokens(code: str, language: str) -> Iterator[tuple[str, str]]:
    """The code's tokens as class and text; empty if Pygments does not know the language."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer: Any = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return
    for kind, text in lexer.get_tokens(code):
        yield _class_of(kind), text


@cache
def _class_of(kind: Any) -> str:
    from pygments.token import string_to_tokentype

    known = (
        (name, string_to_tokentype(parent)) for name, parents in _CLASSES for parent in parents
    )
    return next((name for name, parent in known if kind in parent), "")


def _piece(name: str, text: str) -> str:
    return f'<span class="{name}">{escape(text)}</span>' if name else escape(text)
