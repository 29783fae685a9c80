"""Reads a chat file into a `Transcript`. Never raises, never drops text.

What it cannot make sense of stays in the file and is reported as a `Problem`. The reader works on whole
lines: it finds the markers in one pass, cuts the file there, and reads each block by its marker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from parley.chat import grammar
from parley.chat.grammar import Kind
from parley.chat.rounds import RoundStarts, rounds
from parley.chat.transcript import (
    BLANK,
    CHOICES,
    SPACING,
    UNFIT,
    Answer,
    Broken,
    Choice,
    Exchange,
    Note,
    Orphan,
    Problem,
    Proposal,
    Question,
    Result,
    Segment,
    Severity,
    Span,
    Text,
    Thinking,
    Transcript,
    is_blank,
)


def parse(text: str) -> Transcript:
    """The transcript that `text` is. A BOM, CRLF line ends and a missing final newline are accepted."""
    return _Reader(split_lines(text)).read()


def split_lines(text: str) -> list[str]:
    """The lines of a file, split on newlines only, without BOM, and without CR where all lines end in one."""
    *lines, unended = text.removeprefix("\ufeff").split("\n")
    if lines and all(line[-1:] == "\r" for line in lines):
        lines = [line[:-1] for line in lines]
    return [*lines, unended] if unended else lines


@dataclass(frozen=True, slots=True)
class _Block:
    """A marker line with all lines to the next one."""

    kind: Kind
    content: str
    column: int
    start: int
    end: int


def _choice(text: str | None) -> Choice | None:
    return next((choice for choice in CHOICES if choice == text), None)


@dataclass(slots=True)
class _Reader:
    lines: list[str]
    problems: list[Problem] = field(default_factory=list)
    ignored: set[int] = field(default_factory=set)
    """Old prompt lines: no part of any text."""

    def read(self) -> Transcript:
        self._replace_unfit()
        front_matter, start = self._front_matter()
        blocks = list(self._blocks(start))
        first = next((i for i, b in enumerate(blocks) if b.kind in ("question", "answer")), len(blocks))
        end = blocks[0].start if blocks else len(self.lines)
        lead = _Parts(self, start, end)
        for block in blocks[:first]:
            lead.add_plain(block)
        exchanges = tuple(self._exchanges(blocks[first:]))
        preamble = tuple(part for part in lead.done() if isinstance(part, Text | Note))
        problems = sorted(self.problems, key=lambda p: (p.line, p.column))
        return Transcript(exchanges, preamble, front_matter, tuple(problems))

    def problem(self, line: int, column: int, severity: Severity, message: str) -> None:
        self.problems.append(Problem(line, column, severity, message))

    def _replace_unfit(self) -> None:
        if not UNFIT.search("\n".join(self.lines)):
            return
        for number, line in enumerate(self.lines):
            if found := UNFIT.search(line):
                what = "NUL" if found[0] == "\0" else "bytes that are not UTF-8"
                self.problem(number, found.start(), "warning", f"{what}: sent as a replacement character")
                self.lines[number] = grammar.fit(line)

    def _front_matter(self) -> tuple[str | None, int]:
        if not self.lines or self.lines[0].rstrip(BLANK) != "---":
            return None, 0
        for number, line in enumerate(self.lines[1:], 1):
            if line.rstrip(BLANK) == "---":
                return "\n".join(self.lines[1:number]), number + 1
            if grammar.marker_of(line):
                break
        return None, 0

    def _blocks(self, start: int) -> Iterator[_Block]:
        """Cut at the markers, and free the text lines between them of what the writer added."""
        marks = list[tuple[Kind, int, int]]()
        lines = self.lines
        for number in [i for i, line in enumerate(lines) if not grammar.is_plain(line) and i >= start]:
            line = lines[number]
            if mark := grammar.marker_of(line):
                marks.append((*mark, number))
            elif grammar.is_escaped(line):
                lines[number] = line[1:]
            elif grammar.is_prompt(line):
                self.ignored.add(number)
                self.problem(number, 0, "hint", "an old prompt line: ignored, the prompt is drawn now")
        ends = [number for _, _, number in marks[1:]] + [len(lines)]
        for (kind, column, number), end in zip(marks, ends, strict=False):
            yield _Block(kind, lines[number][column:], column, number, end)

    def text_lines(self, start: int, end: int) -> list[str]:
        """The lines of a block that are text: all but old prompt lines."""
        if not self.ignored:
            return self.lines[start:end]
        return [self.lines[number] for number in range(start, end) if number not in self.ignored]

    def _exchanges(self, blocks: list[_Block]) -> Iterator[Exchange]:
        question: Question | None = None
        answers, start = list[Answer](), -1
        for turn in _turns(blocks):
            if turn[0].kind == "question":
                if start >= 0:
                    yield Exchange(question, tuple(answers), Span(start, turn[0].start))
                question, answers, start = self._question(turn), [], turn[0].start
            else:
                start = turn[0].start if start < 0 else start
                answers.append(self._answer(turn))
        if start >= 0:
            yield Exchange(question, tuple(answers), Span(start, len(self.lines)))

    def _question(self, turn: list[_Block]) -> Question:
        parts = _Parts(self)
        parts.open(turn[0])
        for block in turn[1:]:
            parts.add_plain(block)
        kept = tuple(part for part in parts.done() if isinstance(part, Text | Note))
        return Question(kept, Span(turn[0].start, turn[-1].end))

    def _answer(self, turn: list[_Block]) -> Answer:
        head, agent = turn[0], None
        content = head.content.lstrip(SPACING)
        if content.startswith("[") and "]" in content:
            agent, _, content = content[1:].partition("]")
        parts = _AnswerParts(self)
        parts.open(replace(head, content=content))
        for block in turn[1:]:
            parts.add(block)
        answer = Answer(agent or None, parts.done(), Span(head.start, turn[-1].end))
        for earlier in rounds(answer)[:-1]:
            for proposal in earlier.proposals:
                if proposal.result is None:
                    message = f"call {proposal.call.id} was never answered: the model is told so"
                    self.problem(proposal.span.start, 0, "warning", message)
        return answer


def _turns(blocks: list[_Block]) -> Iterator[list[_Block]]:
    turn = list[_Block]()
    for block in blocks:
        if block.kind in ("question", "answer") and turn:
            yield turn
            turn = []
        turn.append(block)
    if turn:
        yield turn


class _Parts:
    """Collects texts and notes; lines of text that nothing stands between are one text."""

    def __init__(self, reader: _Reader, start: int = 0, end: int = 0) -> None:
        self.reader = reader
        self.segments: list[Segment] = []
        self._text: list[str] = []
        self._text_span = Span(start, end)
        self._in_note = False
        if end > start:
            self._text = reader.text_lines(start, end)

    def open(self, block: _Block) -> None:
        """Start with a question's or an answer's own marker line."""
        self.add_text([block.content.lstrip(SPACING)], block.start, block.start + 1)
        self.add_text(self.reader.text_lines(block.start + 1, block.end), block.start + 1, block.end)

    def add_text(self, lines: list[str], start: int, end: int) -> None:
        """Text lines that stand at `start` to `end` of the file."""
        if not any(not is_blank(line) for line in lines) and not self._text:
            return
        self._text_span = Span(self._text_span.start if self._text else start, end)
        self._text += lines

    def push(self, segment: Segment) -> None:
        """A segment that is no text."""
        self._end_text()
        self.segments.append(segment)

    def add_plain(self, block: _Block) -> None:
        """A block where only texts and notes may stand; any other marker is text here."""
        if block.kind == "note":
            self.add_note(block)
            return
        self._in_note = False
        message = f"{grammar.MARKERS[block.kind]} has no meaning outside an answer: taken as text"
        self.reader.problem(block.start, 0, "warning", message)
        self.add_text(self.reader.text_lines(block.start, block.end), block.start, block.end)

    def add_note(self, block: _Block) -> None:
        """A note with its lines; a bare note marker in a note only ends it."""
        lines = [block.content.lstrip(SPACING), *self.reader.text_lines(block.start + 1, block.end)]
        if self._in_note and is_blank(lines[0]):
            self._in_note = False
            self.add_text(lines[1:], block.start + 1, block.end)
            return
        text = _stripped(lines).lstrip(SPACING)
        if text:
            self.push(Note(text, Span(block.start, block.end)))
        else:
            self.reader.problem(block.start, 0, "hint", "an empty note")
        self._in_note = bool(text)

    def done(self) -> tuple[Segment, ...]:
        """All that was collected."""
        self._end_text()
        return tuple(self.segments)

    def _end_text(self) -> None:
        self._in_note = False
        if text := _stripped(self._text):
            self.segments.append(Text(text, self._text_span))
        self._text = []


def _stripped(lines: list[str]) -> str:
    start, end = 0, len(lines)
    while start < end and is_blank(lines[start]):
        start += 1
    while end > start and is_blank(lines[end - 1]):
        end -= 1
    return "\n".join(lines[start:end])


class _AnswerParts(_Parts):
    """Collects an answer's segments and finds each result its proposal."""

    def __init__(self, reader: _Reader) -> None:
        super().__init__(reader)
        self._starts = RoundStarts()
        self._seen = 0
        self._round = 0

    def add(self, block: _Block) -> None:
        """The next block of the answer."""
        adders: dict[Kind, Callable[[_Block], None]] = {
            "note": self.add_note,
            "thinking": self._add_thinking,
            "proposal": self._add_proposal,
            "result": self._add_result,
        }
        adders[block.kind](block)

    def _add_rest(self, block: _Block, start: int) -> None:
        self.add_text(self.reader.text_lines(start, block.end), start, block.end)

    def _add_thinking(self, block: _Block) -> None:
        lines, start, ignored = self.reader.lines, block.start + 1, self.reader.ignored
        is_quote = (lines[i].startswith(">") and i not in ignored for i in range(start, block.end))
        end = start + next((n for n, quoted in enumerate(is_quote) if not quoted), block.end - start)
        span = Span(block.start, end)
        try:
            self.push(_thinking(block.content, lines[start:end], span))
        except ValueError:
            message = "cannot read this thinking block: expected 🧠:[provider:model signature]"
            self._push_broken(block, "thinking", end, message)
        self._add_rest(block, end)

    def _add_proposal(self, block: _Block) -> None:
        mark, json_text, offset = grammar.split_proposal(block.content)
        choice, column = _choice(mark), block.column + max(offset, 0)
        if mark is not None and choice is None:
            message = f"[{mark}] is no choice ({', '.join(CHOICES)}): this call is undecided"
            self.reader.problem(block.start, block.column, "warning", message)
        try:
            call = grammar.read_call(json_text)
        except ValueError as error:
            message = (
                f"cannot read this tool call: {error}. It is not sent or run; mend the line or decline it"
            )
            self._push_broken(block, "proposal", block.start + 1, message, choice, column)
        else:
            span = Span(block.start, block.start + 1)
            self.push(Proposal(call, choice, None, self.reader.lines[block.start], span))
        self._add_rest(block, block.start + 1)

    def _add_result(self, block: _Block) -> None:
        lines = self.reader.text_lines(block.start + 1, block.end)
        body, taken, trouble = grammar.read_body(lines)
        end = block.end if taken == len(lines) else self._file_line(block, taken)
        head = grammar.read_header(block.content)
        if head is None:
            message = "cannot read this result: expected 🛠️: [tool][call id]"
            self._push_broken(block, "result", end, message)
        else:
            if trouble:
                self.reader.problem(block.start, 0, "warning", trouble)
            name, call_id, status = head
            result = Result(status, body, tuple(lines[:taken]), Span(block.start, end))
            self._attach(name, call_id, result)
        self._add_rest(block, end)

    def _file_line(self, block: _Block, taken: int) -> int:
        """The line of the file after the first `taken` text lines of a block."""
        texts = (i for i in range(block.start + 1, block.end) if i not in self.reader.ignored)
        return next((i for n, i in enumerate(texts) if n == taken), block.end)

    def _push_broken(
        self, block: _Block, kind: Kind, end: int, message: str, choice: Choice | None = None, column: int = 0
    ) -> None:
        self.reader.problem(block.start, column, "error", message)
        assert kind in ("proposal", "result", "thinking")
        text = "\n".join(self.reader.lines[block.start : end]).rstrip(BLANK + "\n")
        self.push(Broken(kind, text, choice, Span(block.start, end)))

    def _attach(self, name: str, call_id: str, result: Result) -> None:
        self._end_text()
        at = self._proposal_for(call_id)
        if at is None:
            message = f"no unanswered call {call_id} above: this result is kept and not sent"
            self.reader.problem(result.span.start, 0, "warning", message)
            self.push(Orphan(name, call_id, result))
            return
        proposal = self.segments[at]
        assert isinstance(proposal, Proposal)
        if name != (expected := grammar.header_name(proposal.call.name)):
            message = f"this result says {name}, its call says {expected}: the call counts"
            self.reader.problem(result.span.start, 0, "warning", message)
        if at != len(self.segments) - 1:
            message = f"this result stands apart from its call {call_id}"
            self.reader.problem(result.span.start, 0, "hint", message)
        self.segments[at] = replace(proposal, result=result)

    def _proposal_for(self, call_id: str) -> int | None:
        """Where the proposal of a result with this id stands: right above, else the first of the round."""
        while self._seen < len(self.segments):
            if self._starts.feed(self.segments[self._seen]):
                self._round = self._seen
            self._seen += 1
        waiting = [
            at
            for at in range(self._round, len(self.segments))
            if isinstance(p := self.segments[at], Proposal) and p.result is None and p.call.id == call_id
        ]
        above = next(
            (at for at in reversed(range(len(self.segments))) if not isinstance(self.segments[at], Note)),
            None,
        )
        return above if above in waiting else next(iter(waiting), None)


def _thinking(content: str, quoted: list[str], span: Span) -> Thinking:
    head = grammar.read_thinking_head(content)
    if head is None:
        raise ValueError("no closing bracket")
    provider, model, signature, redacted = head
    text = grammar.unquote(quoted) if quoted else None
    return Thinking(provider, model, text, signature, redacted, span)
