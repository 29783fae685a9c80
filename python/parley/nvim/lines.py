"""Puts lines from a buffer, and a question about them, into a chat's last question.

The lines look like an included reference. Knows what the editor reports about the lines;
`chat.edits` knows where a question is in a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from parley import engine
from parley.chat.edits import Edit, begin_question, put_question
from parley.chat.grammar import fit
from parley.chat.references import Lines, ReferenceText, expansion, info_word
from parley.errors import ParleyError
from parley.nvim.chat import Chat
from parley.policy.rewrites import rewrite_question
from parley.text import visible


async def bring(
    chat: Chat,
    handle: int,
    question: str,
    quote: Mapping[str, Any] | None,
    *,
    is_first: bool,
    rewrite: int | None = None,
) -> None:
    """Put a question ("" for none) and quoted lines into a chat; ask the question, if any.

    For the editor's `rewrite` of this number, the question is an instruction.

    A quote consists of `path`, `first` (counted from 1), `lines` and `language`. With `is_first`,
    any text in the chat's question was typed in the meantime, so that text stays below. Raises
    ParleyError if the chat has no question.
    """
    quoted = "\n".join(quotation(quote)) if quote else ""
    words = question if rewrite is None else rewrite_question(question)
    text = "\n\n".join(part for part in (words, quoted) if part)
    below = 0

    def change(shot: engine.Snapshot) -> list[Edit]:
        nonlocal below
        if not shot.transcript.exchanges:
            raise ParleyError("there is no question in this chat. :ParleyQuestion adds one")
        *_, last = shot.transcript.exchanges
        if is_first and last.question and not last.answers:
            edit = begin_question(shot.lines, last.question, fit(text))
        else:
            edit = put_question(
                shot.lines, shot.transcript, len(shot.transcript.exchanges) - 1, fit(text)
            )
            if not question:
                edit = replace(edit, lines=(*edit.lines, "", ""))
        below = edit.start + len(edit.lines) - 1
        return [edit]

    def then() -> None:
        chat.turns.asks_soon = False  # the editor asks it now
        chat.buffer.editor.tell("brought", handle, below, bool(question), rewrite)

    try:
        await chat.change(handle, change, then)
    finally:
        chat.turns.asks_soon = chat.turns.asks_soon and not question


def quotation(quote: Mapping[str, Any]) -> list[str]:
    """Quoted lines with their path and line numbers, in a fence, not yet escaped. The path never
    becomes a reference.
    """
    lines = [line.replace("\n", "\0") for line in quote["lines"]]  # a NUL, from Neovim
    path, first = quote["path"].replace("@@", "@ @"), quote["first"]
    title = Lines(path, first, first + len(lines) - 1).title
    language = info_word(quote["language"])
    return expansion(ReferenceText(visible(title), "\n".join(lines) + "\n", language=language))
