"""Formats an answer for a terminal: finished Markdown blocks are formatted, and the rest is raw
text.

The input must be safe to show; the module does not know where its output is written. Finished
blocks (a paragraph, a list item, a code block) never change again. Nothing is left out: text that
Markdown would hide (HTML, link addresses, references) stays readable.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Any, ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments.filter import simplefilter
from rich import box, markdown
from rich.console import Console, ConsoleOptions, RenderResult
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.text import visible

_GROWTH = 8
"""Parse unfinished text again when it has grown by 1/8, because each parse takes time."""
_DEEPEST = 24
"""The maximum number of levels of nested blocks, because a terminal has no room for more."""
_LONGEST_CODE = 100_000
"""The maximum number of characters of code to colour; longer code stays plain."""
_COLOURS_S = 0.5
"""The maximum number of seconds for colouring code, because hostile code could take minutes."""
_LONGEST_TEXT = 40_000
"""The maximum number of characters of a paragraph to wrap, because wrapping takes quadratic
time."""
_CHUNK = 4096

_PARSER = (
    MarkdownIt("commonmark", {"html": False, "maxNesting": 2 * _DEEPEST})
    .enable(["strikethrough", "table"])
    .disable(["html_block", "html_inline", "image", "reference", "autolink"])
)


_THEME = Theme(
    {
        "markdown.code": "bold cyan",
        "markdown.link": "bold",
        "markdown.link_url": "underline",
        "markdown.block_quote": "dim",
    }
)
"""Readable on dark and light terminals: no background colours, and no blue, which is often too
dark.
"""


class ShownAnswer:
    """The text of an answer, from its first piece to its end."""

    def __init__(self, *, has_colours: bool = True) -> None:
        self._console = Console(
            file=StringIO(),
            force_terminal=True,
            no_color=not has_colours,
            emoji=False,
            highlight=False,
            theme=_THEME,
        )
        self._pieces = list[str]()
        self._rest = ""
        self._wait = 0
        """Parse the rest again when it has this length."""
        self._before: _Block | None = None

    def feed(self, piece: str, width: int) -> str:
        """The blocks that this piece finished, if any, in lines of at most `width` cells."""
        self._rest += piece
        if "\n" not in piece or (
            len(self._rest) < self._wait and not _FENCE.search(self._rest[-_NEAR:])
        ):
            return ""
        end = self._rest.rindex("\n") + 1  # an unfinished line may still become any kind of block
        *finished, last = _blocks(self._rest[:end])
        if _is_closed(last.text):
            finished, last = [*finished, last], _Block("")
        self._wait = 0 if finished else len(self._rest) + len(self._rest) // _GROWTH
        self._rest = last.text + self._rest[end:]
        return "".join(self._lines(block, width) for block in finished)

    def tail(self, width: int, height: int) -> list[str]:
        """The end of the unfinished text, unformatted, in at most `height` rows."""
        if not self._rest.strip():
            return []
        rows = list[str]()
        for line in reversed(self._rest.rstrip("\n").split("\n")):
            start = max(len(line) - width * height, 0) // _CHUNK * _CHUNK
            wrapped = Text(line[start:].expandtabs(4)).wrap(self._console, width)
            rows = [row.plain.rstrip() for row in wrapped] + rows
            if len(rows) >= height:
                break
        goes_on = self._before and self._before.is_item and _ITEM.match(self._rest)
        gap = [""] if self._before and not goes_on else []
        return [*gap, *rows][-height:]

    def end(self, width: int) -> str:
        """The formatted rest of the answer. A new answer may follow."""
        text, self._rest, self._wait = self._rest, "", 0
        lines = "".join(self._lines(block, width) for block in _blocks(text) if block.text.strip())
        self._before = None
        return lines

    def _lines(self, block: _Block, width: int) -> str:
        """The lines of a block, after a blank line unless it is the next item of a list."""
        before, self._before = self._before, block
        gap = "\n" if before and not (block.is_item and before.is_item) else ""
        return gap + self._rendered(block.text, _PARSER.parse(block.text), width)

    def _rendered(self, text: str, tokens: Sequence[Token], width: int) -> str:
        written = text.rstrip("\n").expandtabs(4) + "\n"
        if any(
            t.level > _DEEPEST or (t.type == "inline" and len(t.content) > _LONGEST_TEXT)
            for t in tokens
        ):
            return written
        page = _Page(text, tokens)
        with self._console.capture() as capture:
            try:
                self._console.print(page, width=width)
            except Exception:  # noqa: BLE001 - if the library fails, the text must stay readable
                return written
        shown = _trimmed(capture.get())
        return shown if page.characters() <= _characters(_SGR.sub("", shown)) else written


@frozen
class _Block:
    """A top-level block; each list item is a block."""

    text: str
    is_item: bool = False


_LISTS = ("bullet_list_open", "ordered_list_open")
_ITEM = late_pattern(r" {0,3}([-*+]|[0-9]{1,9}[.)])(\s|$)")
_FENCE = late_pattern(r"^ {0,3}(`{3,}|~{3,})[ \t]*$", re.MULTILINE)
_NEAR = 80
_SGR = late_pattern(r"\x1b\[[0-9;]*m")


def _blocks(text: str) -> list[_Block]:
    """All blocks of a text, at least one; more text could change only the last block."""
    starts = [
        (token.map[0], token.type == "list_item_open")
        for token in _PARSER.parse(text)
        if token.map and _begins_block(token)
    ]
    lines = text.split("\n")
    starts[:1] = [
        (0, starts[0][1] if starts else False)
    ]  # only blank lines precede the first block
    ends = [*(start for start, _ in starts[1:]), len(lines)]
    return [
        _Block("\n".join([*lines[start:end], *([""] if end < len(lines) else [])]), is_item)
        for (start, is_item), end in zip(starts, ends, strict=True)
    ]


def _is_closed(text: str) -> bool:
    """Whether this block is final: closed code, or a paragraph followed by a blank line."""
    tokens = _PARSER.parse(text)
    if tokens and tokens[0].type == "paragraph_open":
        return text.endswith("\n\n")
    if not tokens or tokens[-1].type != "fence" or tokens[-1].level or not tokens[-1].map:
        return False
    start, end = tokens[-1].map
    last = text.rstrip("\n").split("\n")[start + 1 : end][-1:]
    return (
        bool(last)
        and text.endswith("\n")
        and last[0].strip(" ").startswith(tokens[-1].markup)
        and bool(_FENCE.search(last[0]))
    )


def _trimmed(text: str) -> str:
    """The text without leading and trailing blank lines, and without trailing spaces."""
    lines = [line.rstrip(" ") for line in text.split("\n")]
    filled = [number for number, line in enumerate(lines) if _SGR.sub("", line).strip()]
    return "".join(line + "\n" for line in lines[filled[0] : filled[-1] + 1]) if filled else ""


def _characters(text: str) -> Counter[str]:
    """How often each character occurs, except white space."""
    return Counter("".join(text.split()))


def _info(token: Token) -> str:
    """A code block's info string, without the language name if the code is already highlighted for
    that language.
    """
    if token.type != "fence":
        return ""
    language, _, more = token.info.strip().partition(" ")
    return more if token.content.strip() and Syntax("", language).lexer else token.info


def _begins_block(token: Token) -> bool:
    is_item = token.level == 1 and token.type == "list_item_open"
    return is_item or (token.level == 0 and token.type not in _LISTS)


class _Heading(markdown.Heading):
    """A heading at the left margin."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


def _in_time(_: object, lexer: object, tokens: Iterable[Any], options: object) -> Iterator[Any]:
    """Yield the tokens. Raises TimeoutError when the time for colouring is over."""
    end = time.monotonic() + _COLOURS_S
    for token in tokens:
        if time.monotonic() > end:
            raise TimeoutError
        yield token


_InTime = simplefilter(_in_time)


class _Code(markdown.CodeBlock):
    """Code in the terminal's own colours, because these suit the background."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        lexer = Syntax("", self.lexer_name).lexer if len(code) < _LONGEST_CODE else None
        if lexer:
            lexer.add_filter(_InTime())
        yield Syntax(code, lexer or "text", theme="ansi_dark", word_wrap=True, padding=(0, 2))


class _Table(markdown.TableElement):
    """A table with complete cells."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
        for column in self.header.row.cells if self.header and self.header.row else ():
            table.add_column(column.content, justify=column.justify, overflow="fold")
        for row in self.body.rows if self.body else ():
            table.add_row(*(cell.content for cell in row.cells))
        yield table


class _Page(markdown.Markdown):
    """Blocks of an answer, parsed so that nothing is hidden."""

    elements: ClassVar[dict[str, type[markdown.MarkdownElement]]] = {
        **markdown.Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "table_open": _Table,
    }

    def __init__(self, text: str, tokens: Iterable[Token]) -> None:
        super().__init__("", hyperlinks=False)
        self.markup, self.parsed = text, list(tokens)
        for token in self._flatten_tokens(self.parsed):
            token.content = visible(token.content)  # an entity may be any character
            if token.type == "softbreak":
                token.type = "hardbreak"

    def characters(self) -> Counter[str]:
        """The characters that must be visible, because the library may drop words on a narrow
        terminal.
        """
        return _characters(
            "".join(
                f"{token.content} {_info(token)}" for token in self._flatten_tokens(self.parsed)
            )
        )
