"""Changes to a chat file, as edits that replace some lines and leave all other lines unchanged.

Every function takes the file's lines and values parsed from exactly these lines, and returns edits
to them; spans from any other version of the file are invalid. Knows the file's layout, but not who
applies an edit, or when.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from parley.chat import attachments, call_lines, grammar, result_bodies, writer
from parley.chat.page import Page
from parley.chat.rounds import UNFINISHED, Notice, notice_note, read_notice, resumption, words_of
from parley.chat.transcript import (
    SPACING,
    Answer,
    Attachment,
    Broken,
    Choice,
    Exchange,
    Note,
    Orphan,
    Proposal,
    Question,
    Result,
    Segment,
    ServerTask,
    Span,
    Text,
    Thinking,
    ToolCall,
    Transcript,
    is_blank,
)
from parley.frozen import frozen

LineDecoder = Sequence[str]
(BELOW_TIP,) = writer.note_lines(UNFINISHED.text)
"""The line below the tip, where a reply is being written."""


@frozen
class Edit:
    """The lines from `start` up to `end` (counted from 0, `end` excluded) become `lines`."""

    start: int
    end: int
    lines: tuple[str, ...]


def apply_edits(lines: LineDecoder, edits: Sequence[Edit]) -> list[str]:
    """Apply all edits. The edits refer to the original lines, and must not overlap."""
    edited = list(lines)
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        edited[edit.start : edit.end] = edit.lines
    return edited


def content_end(lines: LineDecoder, span: Span) -> int:
    """The line after a span's last line that is not blank."""
    end = span.end
    while end > span.start and is_blank(lines[end - 1]):
        end -= 1
    return end


def _append(
    lines: LineDecoder,
    span: Span,
    blocks: Sequence[Sequence[str]],
    ending: Sequence[str] = (),
    *,
    instead_of: Span | None = None,
) -> Edit:
    """Add blocks at the end of a span's content, with one blank line above and below.

    The lines in `ending` end the content; `instead_of` follows the span and is replaced.
    """
    start, end = content_end(lines, span), (instead_of or span).end
    last = [*lines[start - 1 : start], *ending][-1:]
    added = [*ending, *writer.join_blocks([last, *blocks])[1:]]
    return Edit(start, end, (*added, "") if end < len(lines) else tuple(added))


def _ending(lines: LineDecoder, span: Span) -> list[str]:
    """Lines that separate new text from the end of a span; usually none.

    They are needed after a note and after a result with a missing or unclosed body, because both
    include everything up to the next marker.
    """
    page, in_note = Page(list(lines[span.start : span.end])), False
    *_, last = blocks = list(page.blocks(0))
    for block in blocks:
        in_note = block.kind == "note" and not (in_note and is_blank(block.content.lstrip(SPACING)))
    if in_note:
        return ["", grammar.MARKERS["note"]]
    return (
        result_bodies.ending(page.text_lines(last.start + 1, last.end))
        if last.kind == "result"
        else []
    )


def start_answer(
    lines: LineDecoder,
    exchange: Exchange,
    agent: str | None,
    texts: Sequence[Sequence[str] | Attachment] = (),
) -> Edit:
    """Add a new answer at the end of an exchange, below the texts that the question includes."""
    span = exchange.answers[-1].span if exchange.answers else exchange.span
    blocks = list(map(_question_block, texts))
    ending = _ending(lines, span) if texts else []
    return _append(lines, span, [*blocks, [writer.answer_line(agent)]], ending)


def _question_block(block: Sequence[str] | Attachment) -> list[str]:
    """A reference's content, as lines in a question."""
    if isinstance(block, Attachment):
        return [attachments.link(block)]
    return list(map(attachments.escape_line, block))


def open_tip(lines: LineDecoder, answer: Answer) -> tuple[Edit, int]:
    """Add an empty line at an answer's end, for the next reply; also returns the line's number.

    A notice below the line says that the answer is still being written; `end_reply` removes it.
    """
    edit = _append(lines, answer.span, [["", BELOW_TIP]], _ending(lines, answer.span))
    tip = edit.start + edit.lines.index(BELOW_TIP) - 1
    return edit, tip


def end_reply(lines: LineDecoder, answer: Answer, segments: Sequence[Segment] = ()) -> list[Edit]:
    """End a reply: replace the notice from `open_tip`, if it is still there, with segments.

    Text that the user typed after the notice stays, as the user's note.
    """
    note = notice_note(answer)
    if note is None or read_notice(note) != UNFINISHED:
        return [append_segments(lines, answer, segments)] if segments else []
    return [_replace_notice(lines, answer, note, segments)]


def _replace_notice(
    lines: LineDecoder, answer: Answer, note: Note, segments: Sequence[Segment]
) -> Edit:
    """Replace the notice at an answer's end; text that the user typed after it stays, as a note."""
    words = words_of(note)
    blocks = writer.segment_blocks([*([Note(words)] if words else []), *segments])
    return _append(lines, Span(answer.span.start, note.span.start), blocks, instead_of=note.span)


def append_segments(lines: LineDecoder, answer: Answer, segments: Sequence[Segment]) -> Edit:
    """Add segments at an answer's end."""
    ending = _ending(lines, answer.span) if isinstance(segments[0], Text) else []
    return _append(lines, answer.span, writer.segment_blocks(segments), ending)


def append_notice(lines: LineDecoder, answer: Answer, notice: Notice) -> list[Edit]:
    """Add a notice at an answer's end, instead of the notice that is there."""
    note, notes = notice_note(answer), [Note(notice.text)]
    if note is None:
        return [append_segments(lines, answer, notes)]
    return [_replace_notice(lines, answer, note, notes)]


def open_question(lines: LineDecoder, exchange: Exchange) -> Edit:
    """Add an empty question below an exchange."""
    return _append(lines, exchange.span, [[grammar.MARKERS["question"] + " "]])


def put_question(
    lines: LineDecoder, transcript: Transcript, at: int, content: str | Attachment
) -> Edit:
    """Add a text or a picture to an exchange's question.

    If the exchange has an answer, start a new question at the end of the chat instead.
    """
    exchange = transcript.exchanges[at]
    exchange = transcript.exchanges[-1] if exchange.answers else exchange
    part = content if isinstance(content, Attachment) else Text(content)
    blocks = writer.question_blocks(Question((part,)))
    if exchange.answers or exchange.question is None:
        return _append(lines, exchange.span, blocks)
    if exchange.question.parts:
        block = _question_block(part if isinstance(part, Attachment) else part.text.split("\n"))
        return _append(lines, exchange.span, [block], _ending(lines, exchange.span))
    start = exchange.question.span.start
    end = max(start + 1, content_end(lines, exchange.span))
    return Edit(start, end, tuple(writer.join_blocks(blocks)))


def add_question(lines: LineDecoder, transcript: Transcript, content: str | Attachment) -> Edit:
    """Add a text or a picture to the last question; create a question if the file contains none."""
    if transcript.exchanges:
        return put_question(lines, transcript, len(transcript.exchanges) - 1, content)
    part = content if isinstance(content, Attachment) else Text(content)
    blocks = writer.question_blocks(Question((part,)))
    if all(map(is_blank, lines)):
        return Edit(0, len(lines), tuple(writer.join_blocks(blocks)))
    return _append(lines, Span(0, len(lines)), blocks)


def begin_question(lines: LineDecoder, question: Question, text: str) -> Edit:
    """Insert a text at the start of a question; text on the marker's line moves below it."""
    start = question.span.start
    marker = grammar.marker_of(lines[start])
    assert marker is not None, "the first line of a question must start with the question marker"
    rest = lines[start][marker[1] :].removeprefix(" ")
    blocks = writer.question_blocks(Question((Text(text),)))
    return Edit(start, start + 1, (*writer.join_blocks(blocks), "", attachments.escape_line(rest)))


def first_words(lines: LineDecoder, question: Question) -> tuple[int, str] | None:
    """The row and the text of a question's first line with text, with all blanks except the usual
    one after the marker; None if a note or an attachment comes before it."""
    if not question.parts or not isinstance(question.parts[0], Text):
        return None
    start = question.span.start
    marker = grammar.marker_of(lines[start])
    assert marker is not None, "the first line of a question must start with the question marker"
    if not is_blank(first := lines[start][marker[1] :]):
        return start, first.removeprefix(" ")
    rows = range(start + 1, question.span.end)
    return next((row, lines[row]) for row in rows if not is_blank(lines[row]))


def replace_first_line(lines: LineDecoder, question: Question, text: str) -> Edit:
    """Replace a question's first line of text, with the question's marker, by another text."""
    place = first_words(lines, question)
    assert place is not None, "the question must begin with text"
    row = place[0]
    new = writer.join_blocks(writer.question_blocks(Question((Text(text),))))
    is_followed = row + 1 < len(lines) and not is_blank(lines[row + 1])
    return Edit(question.span.start, row + 1, (*new, "") if is_followed else tuple(new))


def mark(lines: LineDecoder, proposal: Proposal | Broken, choice: Choice | None) -> Edit:
    """Set the choice in a proposal's line; the rest of the line stays as it is."""
    line = lines[proposal.span.start]
    marker = grammar.marker_of(line)
    assert marker is not None, "the line of a proposal must start with the proposal marker"
    text = call_lines.remark(line, marker[1], choice)
    return Edit(proposal.span.start, proposal.span.start + 1, (text,))


def reword(proposal: Proposal, arguments: str) -> Edit:
    """Replace a proposal's arguments, and remove its choice."""
    call = replace(proposal.call, arguments=arguments)
    line = call_lines.proposal_line(call)
    return Edit(proposal.span.start, proposal.span.start + 1, (line,))


def put_result(lines: LineDecoder, proposal: Proposal, result: Result) -> Edit:
    """Put a result and its note directly below the proposal, replacing the task, if any."""
    block = result_bodies.result_lines(proposal.call.name, proposal.call.id, result)
    task = proposal.task.span if proposal.task else Span(proposal.span.end, proposal.span.end)
    if result.note:
        after = next((line for line in lines[task.end :] if not is_blank(line)), "")
        end = ["", grammar.MARKERS["note"]] if _is_of_note_above(after) else []
        block += ["", *writer.note_lines(result.note), *end]
    return (
        Edit(task.start, task.end, tuple(block))
        if proposal.task
        else _put_below(lines, proposal, block)
    )


def _is_of_note_above(line: str) -> bool:
    """Whether a line continues or ends the note above it."""
    if is_blank(line):
        return False
    marker = grammar.marker_of(line)
    return marker is None or (marker[0] == "note" and is_blank(line[marker[1] :].lstrip(SPACING)))


def put_task(lines: LineDecoder, proposal: Proposal, task: str) -> Edit:
    """Put a task directly below the proposal that it runs, replacing an earlier task."""
    block = result_bodies.task_lines(proposal.call.name, proposal.call.id, ServerTask(task))
    if proposal.task:
        return Edit(proposal.task.span.start, proposal.task.span.end, tuple(block))
    return _put_below(lines, proposal, block)


def _put_below(lines: LineDecoder, proposal: Proposal, block: Sequence[str]) -> Edit:
    """Insert lines directly below a proposal, between blank lines."""
    at = proposal.span.end
    below = at < len(lines) and not is_blank(lines[at])
    return Edit(at, at, ("", *block, "") if below else ("", *block))


def sign_thinking(answer: Answer, signature: str) -> list[Edit]:
    """Sign the answer's last thinking block, which is at the tip while a reply is streamed."""
    blocks = [s for s in answer.segments if isinstance(s, Thinking)]
    if not blocks or blocks[-1].signature:  # the block is gone: leave other blocks unchanged
        return []
    head = writer.thinking_lines(replace(blocks[-1], signature=signature))[0]
    return [Edit(blocks[-1].span.start, blocks[-1].span.start + 1, (head,))]


def drop_unfinished(lines: LineDecoder, answer: Answer) -> list[Edit]:
    """Remove an unfinished reply after an answer's last call, and the notice.

    If the answer has calls, a note records that the turn was resumed, and limits are counted from
    this note.
    """
    note = notice_note(answer)
    notice = read_notice(note) if note else None
    has_calls = any(isinstance(s, Proposal | Orphan | Broken) for s in answer.segments)
    return _drop(lines, answer, [Note(resumption(notice))] if notice and has_calls else [])


def withdraw(lines: LineDecoder, answer: Answer) -> list[Edit]:
    """Remove the text and the notice of a reply that the provider restarts."""
    return _drop(lines, answer, [])


def _drop(lines: LineDecoder, answer: Answer, instead: Sequence[Segment]) -> list[Edit]:
    """Remove the text after an answer's last call; the segments in `instead` replace the notice.

    Text that the user typed after the notice stays, as the user's note.
    """
    calls = [i for i, s in enumerate(answer.segments) if isinstance(s, Proposal | Orphan | Broken)]
    rest = answer.segments[calls[-1] + 1 if calls else 0 :]
    edits = [_without(answer, s.span) for s in rest if isinstance(s, Text | Thinking)]
    if note := notice_note(answer):
        words = words_of(note)
        blocks = writer.segment_blocks([*instead, *([Note(words)] if words else [])])
        kept = tuple(writer.join_blocks(blocks))
        edits.append(Edit(note.span.start, content_end(lines, note.span), kept))
    return edits


def _without(answer: Answer, span: Span) -> Edit:
    """Remove a text from an answer; a marker on the same line stays."""
    if span.start == answer.span.start:
        return Edit(span.start, span.end, (writer.answer_line(answer.agent), ""))
    return Edit(span.start, span.end, ())


def name_answer(answer: Answer, agent: str | None) -> list[Edit]:
    """Put the agent's name on an answer that is still empty."""
    if answer.agent == agent or not all(isinstance(segment, Note) for segment in answer.segments):
        return []
    return [Edit(answer.span.start, answer.span.start + 1, (writer.answer_line(agent),))]


def empty_answer(lines: LineDecoder, answer: Answer, agent: str | None) -> Edit:
    """Empty an answer before regenerating it; its first line is kept, with the agent's name."""
    below = [""] if answer.span.end < len(lines) else []
    return Edit(answer.span.start, answer.span.end, (writer.answer_line(agent), *below))


def written_calls(calls: Sequence[ToolCall], used_ids: Collection[str] = ()) -> list[ToolCall]:
    """Prepare a reply's calls for the file: number them from 0, and make their ids unique.

    The `used_ids` belong to calls that are no longer in the file; new calls do not reuse these ids.
    """
    unique, seen, uses = list[ToolCall](), set(used_ids), dict[str, int]()
    for index, call in enumerate(calls):
        call_id, begin = call.id, call.id[:120]
        while call_id in seen:
            uses[begin] = uses.get(begin, 1) + 1
            call_id = f"{begin}.{uses[begin]}"
        seen.add(call_id)
        unique.append(replace(call, index=index, id=call_id))
    return unique
