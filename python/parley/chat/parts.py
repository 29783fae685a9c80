"""Collects the segments in a question or an answer, and attaches each result to its proposal."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from parley.chat import attachments, call_lines, grammar, result_bodies
from parley.chat.grammar import Kind
from parley.chat.page import Block, Page
from parley.chat.transcript import (
    BLANK,
    CHOICES,
    RUNNERS,
    SPACING,
    TASK_ID,
    Attachment,
    Broken,
    Choice,
    Note,
    Orphan,
    Proposal,
    Result,
    RoundStarts,
    Runner,
    Segment,
    ServerTask,
    Severity,
    Span,
    Text,
    Thinking,
    is_blank,
)

_CHOICE_OF: dict[str | None, Choice] = {choice: choice for choice in CHOICES}
_RUNNER_OF: dict[str | None, Runner] = {runner: runner for runner in RUNNERS}


class Parts:
    """Collects texts and notes; joins text lines with nothing between them into one text."""

    def __init__(self, page: Page, start: int = 0, end: int = 0) -> None:
        self.page = page
        self.segments: list[Segment | Attachment] = []
        self._text: list[str] = []
        self._text_span = Span(start, end)
        self._in_note = False
        if end > start:
            Parts.add_text(self, page.text_lines(start, end), start, end)

    def open(self, block: Block, content: str) -> None:
        """Start with the first block of a question or an answer, including text on its line."""
        Parts.add_text(self, [content.lstrip(SPACING)], block.start, block.start + 1)
        self.add_text(self.page.text_lines(block.start + 1, block.end), block.start + 1, block.end)

    def add_text(self, lines: list[str], start: int, end: int) -> None:
        """Add the text lines from `start` to `end` in the file.

        A text ends above the marker that follows its last words, even if that marker starts an
        empty note.
        """
        if self._text:
            if start == self._text_span.end or not all(map(is_blank, lines)):
                self._text_span = Span(self._text_span.start, end)
            self._text += lines
            return
        first = next((number for number, line in enumerate(lines) if line.strip(BLANK)), None)
        if first is not None:
            rows = [number for number in range(start, end) if number not in self.page.ignored]
            self._text_span = Span(rows[first], end)
            self._text = lines[first:]

    def push(self, segment: Segment | Attachment) -> None:
        """Add a segment that is not text."""
        self._end_text()
        self.segments.append(segment)

    def add_plain(self, block: Block) -> None:
        """Add a block outside an answer, where any marker other than a note's is read as text."""
        if block.kind == "note":
            self.add_note(block)
            return
        self._in_note = False
        message = (
            f"{grammar.MARKERS[block.kind]} has no meaning outside an answer, so it is treated as "
            "text"
        )
        self.page.problem(block.start, 0, "warning", message)
        self.add_text(self.page.text_lines(block.start, block.end), block.start, block.end)

    def add_note(self, block: Block) -> None:
        """Add a note with its lines; inside a note, a bare note marker ends the note."""
        lines = [block.content.lstrip(SPACING), *self.page.text_lines(block.start + 1, block.end)]
        if self._in_note and is_blank(lines[0]):
            self._in_note = False
            self.add_text(lines[1:], block.start + 1, block.end)
            return
        text = _stripped(lines).lstrip(SPACING + "\n")
        if text:
            self.push(Note(text, Span(block.start, block.end)))
        else:
            self.page.problem(block.start, 0, "hint", "an empty note")
        self._in_note = True

    def finish(self) -> tuple[Segment | Attachment, ...]:
        """All collected segments."""
        self._end_text()
        return tuple(self.segments)

    def _end_text(self) -> None:
        self._in_note = False
        if self._text:
            if text := _stripped(self._text):
                self._add_text(text, self._text_span)
            self._text = []

    def _add_text(self, text: str, span: Span) -> None:
        """Add a text. It continues the text before it if only a result is between them, which
        belongs to an earlier call.
        """
        if self.segments and isinstance(before := self.segments[-1], Text):
            text, span = f"{before.text}\n\n{text}", Span(before.span.start, span.end)
            del self.segments[-1]
        self.segments.append(Text(text, span))


def _stripped(lines: list[str]) -> str:
    start, end = 0, len(lines)
    while start < end and not lines[start].strip(BLANK):
        start += 1
    while end > start and not lines[end - 1].strip(BLANK):
        end -= 1
    return "\n".join(lines[start:end])


class QuestionParts(Parts):
    """Collects a question's parts: texts, notes, and attachments on separate lines.

    Links on the question's marker line or in a note are not attachments.
    """

    def add_text(self, lines: list[str], start: int, end: int) -> None:
        """Add the file's lines from `start` to `end`, both texts and attachments."""
        rows = [number for number in range(start, end) if number not in self.page.ignored]
        first = 0
        for at, (line, row) in enumerate(zip(lines, rows, strict=True)):
            if attachment := attachments.read_line(line, Span(row, row + 1)):
                self._add_lines(lines[first:at], start, row)
                self.push(attachment)
                first, start = at + 1, row + 1
        self._add_lines(lines[first:], start, end)

    def _add_lines(self, lines: list[str], start: int, end: int) -> None:
        super().add_text(list(map(attachments.unescape_line, lines)), start, end)


class AnswerParts(Parts):
    """Collects an answer's segments and attaches each result to its proposal."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self._starts = RoundStarts()
        self._seen = 0
        self._waiting = dict[str, deque[int]]()
        """The positions of the round's calls without a result, by id."""

    def add(self, block: Block) -> None:
        """Add the next block of the answer."""
        match block.kind:
            case "proposal":
                self._add_proposal(block)
            case "result":
                self._add_result(block)
            case "thinking":
                self._add_thinking(block)
            case _:
                self.add_note(block)

    def _add_rest(self, block: Block, start: int) -> None:
        self.add_text(self.page.text_lines(start, block.end), start, block.end)

    def _add_thinking(self, block: Block) -> None:
        lines, start = self.page.lines, block.start + 1
        is_quote = (  # an escaped prompt has been unescaped, and is text
            lines[i].startswith(">") and not grammar.is_prompt(lines[i])
            for i in range(start, block.end)
        )
        end = start + next(
            (n for n, quoted in enumerate(is_quote) if not quoted), block.end - start
        )
        span = Span(block.start, end)
        try:
            self.push(_thinking(block.content, lines[start:end], span))
        except ValueError:
            message = "cannot read this thinking block: expected 🧠:[provider:model signature]"
            self._push_broken(block, "thinking", end, message)
        self._add_rest(block, end)

    def _add_proposal(self, block: Block) -> None:
        mark, json_text, offset = call_lines.split_proposal(block.content)
        choice, column = _CHOICE_OF.get(mark), block.column + max(offset, 0)
        ran_by = _RUNNER_OF.get(mark)
        if mark is not None and choice is None and ran_by is None:
            message = (
                f"unknown choice [{mark}] (known: {', '.join(CHOICES)}), so this call is undecided"
            )
            self.page.problem(block.start, block.column, "warning", message)
        try:
            call = call_lines.read_call(json_text)
        except ValueError as error:
            message = (
                f"cannot read this tool call: {error}. It is not sent or run. Fix or decline it"
            )
            self._push_broken(block, "proposal", block.start + 1, message, choice, column)
        else:
            span, spelling = Span(block.start, block.start + 1), self.page.lines[block.start]
            self.push(Proposal(call, choice, ran_by=ran_by, spelling=spelling, span=span))
        self._add_rest(block, block.start + 1)

    def _add_result(self, block: Block) -> None:
        lines = self.page.text_lines(block.start + 1, block.end)
        body, count, trouble = result_bodies.read_body(lines)
        is_open = bool(trouble and count)
        end = block.end if is_open else self._file_line(block, count)
        head = result_bodies.read_header(block.content)
        if head is None:
            message = "cannot read this result: expected 🛠️: [tool][call id]"
            self._push_broken(block, "result", end, message)
        elif (status := head[2]) == "pending":
            is_task = TASK_ID.fullmatch(body) and [
                *filter(str.strip, lines[:count])
            ] == result_bodies.quote_body(body)
            if not is_task or head[3]:
                message = "cannot read this pending result: expected a task id in backticks"
                self._push_broken(block, "result", end, message)
            else:
                self._attach_task(block, head[0], head[1], ServerTask(body, Span(block.start, end)))
        else:
            name, call_id, _, attached = head
            if trouble and (count or not attached):
                self.page.problem(block.start, 0, "warning", trouble)
            result = Result(status, body, attached, tuple(lines[:count]), Span(block.start, end))
            self._attach(name, call_id, result)
        self._add_rest(block, end)

    def _file_line(self, block: Block, count: int) -> int:
        """The file line after the first `count` text lines in a block."""
        if not self.page.ignored:
            return block.start + 1 + count
        texts = [i for i in range(block.start + 1, block.end) if i not in self.page.ignored]
        return texts[count - 1] + 1 if count else block.start + 1

    def _push_broken(
        self,
        block: Block,
        kind: Kind,
        end: int,
        message: str,
        choice: Choice | None = None,
        column: int = 0,
        severity: Severity = "error",
    ) -> None:
        self.page.problem(block.start, column, severity, message)
        assert kind in ("proposal", "result", "thinking")
        text = "\n".join(self.page.text_lines(block.start, end)).rstrip(BLANK + "\n")
        self.push(Broken(kind, text, choice, Span(block.start, end)))

    def _attach(self, name: str, call_id: str, result: Result) -> None:
        self._end_text()
        at = self._proposal_for(call_id)
        if at is None:
            message = f"no unanswered call {call_id} above, so this result is kept but not sent"
            self.page.problem(result.span.start, 0, "warning", message)
            self.push(Orphan(name, call_id, result))
            return
        self.segments[at] = replace(self._noted(at, name, result.span), result=result)

    def _attach_task(self, block: Block, name: str, call_id: str, task: ServerTask) -> None:
        self._end_text()
        at = self._proposal_for(call_id)
        proposal = None if at is None else self._noted(at, name, task.span)
        if at is None or proposal is None or proposal.task is not None:
            message = (
                f"no call {call_id} above is waiting for a task, "
                "so this task is kept, but its result is not collected"
            )
            self._push_broken(block, "result", task.span.end, message, severity="warning")
        else:
            self.segments[at] = replace(proposal, task=task)

    def _noted(self, at: int, name: str, span: Span) -> Proposal:
        """The proposal at a position; reports a problem if its result is misplaced or misnamed."""
        proposal = self.segments[at]
        assert isinstance(proposal, Proposal)
        if name != (expected := result_bodies.header_name(proposal.call.name)):
            message = (
                f"this result is for {name}, but the call is for {expected}; "
                "the call's name is used"
            )
            self.page.problem(span.start, 0, "warning", message)
        if at != len(self.segments) - 1:
            message = f"this result is not directly below its call {proposal.call.id}"
            self.page.problem(span.start, 0, "hint", message)
        return proposal

    def _proposal_for(self, call_id: str) -> int | None:
        """Find a result's proposal: directly above, or else the first match in the round."""
        above = len(self.segments) - 1
        while above >= 0 and isinstance(self.segments[above], Note):
            above -= 1
        if above >= 0 and self._waits(above, call_id):
            return above
        while self._seen < len(self.segments):
            segment = self.segments[self._seen]
            if self._starts.feed(segment):
                self._waiting = {}
            if isinstance(segment, Proposal):
                self._waiting.setdefault(segment.call.id, deque()).append(self._seen)
            self._seen += 1
        places = self._waiting.get(call_id, deque())
        while places and not self._waits(places[0], call_id):
            places.popleft()
        return places[0] if places else None

    def _waits(self, at: int, call_id: str) -> bool:
        segment = self.segments[at]
        return (
            isinstance(segment, Proposal) and segment.result is None and segment.call.id == call_id
        )


def _thinking(content: str, quoted: list[str], span: Span) -> Thinking:
    head = grammar.read_thinking_head(content)
    if head is None:
        raise ValueError("a closing bracket is missing")
    provider, model, signature, redacted = head
    text = grammar.unquote(quoted) if quoted else None
    return Thinking(provider, model, text, signature, redacted, span)
