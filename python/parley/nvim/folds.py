"""The folds in a chat, and the text of each closed fold: a folded call takes up one row. Pure.

Knows rows, and chunks of text with their highlight groups; does not know windows. Each text is sent
only once and is then identified by a number, so redrawing thousands of calls costs little.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, TypeAlias

from parley.chat.front_matter import topic
from parley.chat.grammar import MARKERS
from parley.chat.references import expansions
from parley.chat.transcript import (
    YES,
    Exchange,
    Proposal,
    Question,
    Segment,
    Text,
    Thinking,
    Transcript,
)
from parley.display.diff_rows import changed_files, made_files
from parley.display.summary import SIGNS, ChangedFile, call_row, length, outcome, shown_line
from parley.display.view import ChatView
from parley.frozen import frozen
from parley.text import counted

_BY = {"memory": "remembered", "permission": "allowed", "auto": "by rule"}
"""How to show an approval that the user did not type."""


@frozen
class QuestionStart:
    """The text of a fold that covers the first line of a question."""

    text: str


@frozen
class CallStart:
    """The text of a fold that covers a call: the call with its tool's names, and its changes."""

    call: Proposal
    names: tuple[str, ...] = ()
    changes: tuple[ChangedFile, ...] = ()
    is_whole: bool = False
    """Whether the changes are all that the call does."""
    sandbox: str = ""
    """Whether a command would run in a sandbox; "" once the user has decided."""


Content: TypeAlias = CallStart | QuestionStart | str
"""The source of a fold's text: a call, a question's start, or plain text."""
Row: TypeAlias = tuple[int, int, int, bool, str, str]
"""First row, row after the last, text number, whether the fold is open, who approved, call id."""


@frozen
class Fold:
    """Folded lines. If the lines are a call, `call` is its id; the first line is also a fold."""

    start: int
    end: int
    content: Content
    is_open: bool = False
    by: str = ""
    call: str = ""


def folds(view: ChatView) -> Iterator[Fold]:
    """The folds in a chat."""
    front_matter = view.transcript.front_matter
    if front_matter is not None and front_matter.strip():
        yield Fold(0, front_matter.count("\n") + 3, _front_matter(view.transcript, front_matter))
    yield from exchange_folds(view, view.transcript.exchanges)


def exchange_folds(view: ChatView, exchanges: Iterable[Exchange]) -> Iterator[Fold]:
    """The folds in some of a chat's exchanges."""
    for exchange in exchanges:
        yield from _references(exchange.question) if exchange.question else ()
        for answer in exchange.answers:
            for segment, below in zip_longest(answer.segments, answer.segments[1:]):
                if isinstance(segment, Proposal):
                    yield _call(segment, view, below)
                elif isinstance(segment, Thinking) and segment.text is not None:
                    words = f"{SIGNS['thinking']} thinking, {length(segment.text)}"
                    yield Fold(segment.span.start, segment.span.end, words)


def _front_matter(transcript: Transcript, raw: str) -> str:
    keys = counted(raw.strip("\n").count("\n") + 1, "line")
    return f"--- {shown_line(topic(transcript)[:80], None)} · {keys}"


def _references(question: Question) -> Iterator[Fold]:
    """The folds over the files and resources that a question includes."""
    for part in question.parts:
        for match in expansions(part.text) if isinstance(part, Text) else ():
            start = part.span.start + part.text.count("\n", 0, match.start())
            end = start + match[0].count("\n") + 1
            text = f"@@ {shown_line(match['title'])} · {match['count']}"
            yield Fold(start, end, QuestionStart(text) if start == question.span.start else text)


def _call(call: Proposal, view: ChatView, below: Segment | None) -> Fold:
    """The fold over a call and its result, and over the blank line before another call."""
    start, end = call.span.start, call.span.end
    by = _BY.get(view.rule(call), "") if call.choice in YES else ""
    if call.result is None:
        if call.ran_by:
            return Fold(start, end, CallStart(call), False, by, call.call.id)
        tool = view.catalogue.get(call.call.name) if view.catalogue else None
        if call.task and 0 <= call.task.span.start - end <= 1:
            end = call.task.span.end
        names = (tool.name, tool.server) if tool else ()
        preview = view.approvals.preview(call)
        sandbox = preview.sandbox if preview and call.choice not in YES else ""
        row = CallStart(call, names, *changed_files(preview), sandbox)
        return Fold(start, end, row, False, by, call.call.id)
    is_beside = 0 <= call.result.span.start - end <= 1
    end = call.result.span.end if is_beside else end
    if is_beside and isinstance(below, Proposal) and below.span.start - end == 1:
        end = below.span.start
    changes = made_files(call)
    row = CallStart(call, changes=changes, is_whole=bool(changes))
    is_open = call.result.status == "error" and not call.ran_by
    return Fold(start, end, row, is_open, by, call.call.id)


class FoldTexts:
    """The texts of one chat's folds; each text has a number and is sent only once."""

    def __init__(self) -> None:
        self._numbers = dict[Content, int]()
        self._last = 0

    def rows(self, folds: Iterable[Fold]) -> tuple[list[Row], dict[str, dict[str, Any]]]:
        """The folds for Lua, and the texts, by number, that have not been sent yet."""
        rows, texts = list[Row](), dict[str, dict[str, Any]]()
        for fold in folds:
            number = self._numbers.get(fold.content)
            if number is None:
                self._last += 1
                number = self._numbers[fold.content] = self._last
                texts[str(number)] = _text(fold.content)
            rows.append((fold.start, fold.end, number, fold.is_open, fold.by, fold.call))
        return rows, texts


def _text(content: Content) -> dict[str, Any]:
    """A closed fold's row; for a call with a result, it includes the outcome."""
    if isinstance(content, str):
        return {"row": [(content, "ParleyHint", "")]}
    if isinstance(content, QuestionStart):
        asked = [(f"{MARKERS['question']} ", "ParleyQuestion"), (content.text, "ParleyHint", "")]
        return {"row": asked, "band": "ParleyQuestionLine"}
    call = content.call
    row = call_row(
        call, content.names, content.changes, is_whole=content.is_whole, sandbox=content.sandbox
    )
    if call.result is None:
        return {"row": row}
    return {
        "row": row,
        "sign": (f"{SIGNS['result']} ", "ParleyResult"),
        "outcome": outcome(call.readable_result or call.result, row),
    }
