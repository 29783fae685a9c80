"""Reads a chat file into a `Transcript`. Never raises an exception, and never drops text.

Anything that cannot be interpreted is kept and reported as a `Problem`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from parley.chat.page import Block, Page
from parley.chat.parts import AnswerParts, Parts, QuestionParts
from parley.chat.rounds import Round, rounds
from parley.chat.transcript import (
    SPACING,
    Answer,
    Attachment,
    Exchange,
    Note,
    Question,
    Span,
    Text,
    Transcript,
)


def parse(text: str) -> Transcript:
    """Parse a chat file's text. The reader accepts a BOM, CRLF line endings and a missing final
    newline.
    """
    return parse_lines(split_lines(text))


def parse_lines(lines: Sequence[str]) -> Transcript:
    """Parse a chat file's lines, as returned by `split_lines`."""
    page = Page(list(lines))
    page.replace_unfit()
    front_matter, start = page.front_matter()
    blocks = list(page.blocks(start))
    first = next((i for i, b in enumerate(blocks) if b.kind in ("question", "answer")), len(blocks))
    end = blocks[0].start if blocks else len(page.lines)
    lead = Parts(page, start, end)
    for block in blocks[:first]:
        lead.add_plain(block)
    exchanges = tuple(_exchanges(page, blocks[first:]))
    preamble = tuple(part for part in lead.finish() if isinstance(part, Text | Note))
    problems = sorted(page.problems, key=lambda p: (p.line, p.column))
    return Transcript(exchanges, preamble, front_matter, tuple(problems))


def split_lines(text: str) -> list[str]:
    """Split a file only at newlines; remove a BOM, and the CRs if every line ends with one."""
    *lines, unended = text.removeprefix("\ufeff").split("\n")
    if lines and all(line[-1:] == "\r" for line in lines):
        lines = [line[:-1] for line in lines]
    return [*lines, unended] if unended else lines


def _exchanges(page: Page, blocks: list[Block]) -> Iterator[Exchange]:
    question: Question | None = None
    answers, start = list[Answer](), -1
    for turn in _turns(blocks):
        if turn[0].kind == "question":
            if start >= 0:
                yield _exchange(page, question, answers, Span(start, turn[0].start))
            question, answers, start = _question(page, turn), [], turn[0].start
        else:
            start = turn[0].start if start < 0 else start
            answers.append(_answer(page, turn))
    if start >= 0:
        yield _exchange(page, question, answers, Span(start, len(page.lines)))


def _exchange(page: Page, question: Question | None, answers: list[Answer], span: Span) -> Exchange:
    for answer in answers:
        if any(proposal.result is None for proposal in answer.proposals):
            _report_unanswered(page, rounds(answer)[: -1 if answer is answers[-1] else None])
    return Exchange(question, tuple(answers), span)


def _question(page: Page, turn: list[Block]) -> Question:
    parts = QuestionParts(page)
    parts.open(turn[0], turn[0].content)
    for block in turn[1:]:
        parts.add_plain(block)
    content = tuple(part for part in parts.finish() if isinstance(part, Text | Note | Attachment))
    return Question(content, Span(turn[0].start, turn[-1].end))


def _answer(page: Page, turn: list[Block]) -> Answer:
    head, agent = turn[0], None
    content = head.content.lstrip(SPACING)
    if content.startswith("[") and "]" in content:
        agent, _, content = content[1:].partition("]")
        if not agent:
            page.problem(head.start, head.column, "hint", "an empty agent name is ignored")
    parts = AnswerParts(page)
    parts.open(head, content)
    for block in turn[1:]:
        parts.add(block)
    segments = tuple(part for part in parts.finish() if not isinstance(part, Attachment))
    return Answer(agent or None, segments, Span(head.start, turn[-1].end))


def _report_unanswered(page: Page, replies: Iterable[Round]) -> None:
    """Report the calls without a result in rounds that can no longer wait or run."""
    for earlier in replies:
        for proposal in earlier.proposals:
            if proposal.result is None:
                message = f"call {proposal.call.id} has no result, and Parley tells the model so"
                page.problem(proposal.span.start, 0, "warning", message)


def _turns(blocks: list[Block]) -> Iterator[list[Block]]:
    turn = list[Block]()
    for block in blocks:
        if block.kind in ("question", "answer") and turn:
            yield turn
            turn = []
        turn.append(block)
    if turn:
        yield turn
