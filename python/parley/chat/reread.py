"""Updates a transcript after a change in one place, without reading the whole file again. Pure.

An exchange means the same wherever it is in the file. Only the exchanges that a change touches are
read again, and the exchanges below are moved. In an answer with several rounds, only the rounds from
the change on are read again. The result has the same values, spans and problems as a full read.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from parley.chat.grammar import MARKERS
from parley.chat.reader import parse_lines
from parley.chat.transcript import (
    NOWHERE,
    Answer,
    Attachment,
    Broken,
    Exchange,
    Note,
    Orphan,
    Proposal,
    Question,
    Result,
    RoundStarts,
    Segment,
    ServerTask,
    Span,
    Text,
    Thinking,
    Transcript,
)
from parley.frozen import frozen

_Part = TypeVar(
    "_Part",
    bound=Question | Result | ServerTask | Text | Thinking | Broken | Note | Attachment,
)


@frozen
class LineChange:
    """The lines from `start` up to `end` (counted from 0, `end` excluded) became `count` lines."""

    start: int
    end: int
    count: int

    @property
    def shift(self) -> int:
        """How far the lines below the change moved down, in lines."""
        return self.count - (self.end - self.start)

    def then(self, later: LineChange) -> LineChange:
        """Merge this change and a later change; the lines between them count as changed."""
        start = min(self.start, later.start)
        between = max(self.start + self.count, later.end)
        return LineChange(start, between - self.shift, between + later.shift - start)


def difference(before: Sequence[str], lines: Sequence[str]) -> LineChange:
    """The change that turned the lines `before` into `lines`."""
    shorter = min(len(before), len(lines))
    start = next((n for n in range(shorter) if before[n] != lines[n]), shorter)
    rest = shorter - start
    below = next((n for n in range(rest) if before[-1 - n] != lines[-1 - n]), rest)
    return LineChange(start, len(before) - below, len(lines) - below - start)


def reread(before: Transcript, change: LineChange, lines: Sequence[str]) -> Transcript:
    """The transcript of `lines`; `before` is the transcript before the change."""
    exchanges = before.exchanges
    first = bisect_left(exchanges, change.start, key=_start) - 1
    if first < 0 or exchanges[first].question is None:
        return parse_lines(lines)
    last = max(bisect_left(exchanges, change.end, key=_start), first + 1)
    end = exchanges[last].span.start if last < len(exchanges) else len(lines) - change.shift
    place = _place(exchanges[first], change.start)
    start = place.line if place else exchanges[first].span.start
    head = [MARKERS["answer"]] if place else []
    part, by = parse_lines([*head, *lines[start : end + change.shift]]), start - len(head)
    changed = [_moved(exchange, by) for exchange in part.exchanges]
    if place:
        changed[0] = _joined(exchanges[first], place, changed[0])
    return Transcript(
        (
            *exchanges[:first],
            *changed,
            *(_moved(exchange, change.shift) for exchange in exchanges[last:]),
        ),
        before.preamble,
        before.front_matter,
        (
            *(problem for problem in before.problems if problem.line < start),
            *(replace(problem, line=problem.line + by) for problem in part.problems),
            *(replace(p, line=p.line + change.shift) for p in before.problems if p.line >= end),
        ),
    )


@frozen
class _Place:
    """A call's line from which an answer means the same as after an answer's bare marker: no later
    result can belong to an earlier call.
    """

    answer: int
    segment: int
    line: int


def _place(exchange: Exchange, line: int) -> _Place | None:
    """The last such place above a line; None if there is none."""
    number = sum(answer.span.start < line for answer in exchange.answers) - 1
    if number < 0:
        return None
    starts, place = RoundStarts(), None
    above: Segment | None = None
    settled = 0.0
    """The line above which all calls of the round have their results."""
    for at, segment in enumerate(exchange.answers[number].segments):
        begins = starts.feed(segment)
        settled = 0 if begins else settled
        if isinstance(segment, Proposal):
            if (start := segment.span.start) >= line:
                break
            if begins or (settled <= start and isinstance(above, Text | Thinking)):
                place = _Place(number, at, start)
            settled = max(settled, segment.result.span.end if segment.result else math.inf)
        above = segment
    return place


def _joined(before: Exchange, place: _Place, rest: Exchange) -> Exchange:
    """The exchange up to a place, continued with the rest, which begins with the same answer."""
    answer, continuation = before.answers[place.answer], rest.answers[0]
    joined = Answer(
        answer.agent,
        (*answer.segments[: place.segment], *continuation.segments),
        Span(answer.span.start, continuation.span.end),
    )
    answers = *before.answers[: place.answer], joined, *rest.answers[1:]
    return Exchange(before.question, answers, Span(before.span.start, rest.span.end))


def _start(exchange: Exchange) -> int:
    return exchange.span.start


def _moved(exchange: Exchange, by: int) -> Exchange:
    """The same exchange, `by` lines further down."""
    if not by:
        return exchange
    question = exchange.question and replace(
        _at(exchange.question, by), parts=tuple(_at(part, by) for part in exchange.question.parts)
    )
    answers = tuple(
        Answer(
            answer.agent,
            tuple(_moved_segment(s, by) for s in answer.segments),
            _span(answer.span, by),
        )
        for answer in exchange.answers
    )
    return Exchange(question, answers, _span(exchange.span, by))


def _moved_segment(segment: Segment, by: int) -> Segment:
    match segment:
        case Proposal(result=result, task=task):
            result, task = result and _at(result, by), task and _at(task, by)
            return replace(segment, result=result, task=task, span=_span(segment.span, by))
        case Orphan(result=result):
            return replace(segment, result=_at(result, by))
        case _:
            return _at(segment, by)


def _at(part: _Part, by: int) -> _Part:
    return replace(part, span=_span(part.span, by))


def _span(span: Span, by: int) -> Span:
    return span if span == NOWHERE else Span(span.start + by, span.end + by)
