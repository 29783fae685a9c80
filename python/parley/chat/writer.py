"""Writes a `Transcript` as a chat file, and its parts as lines for edits.

Calls and results from a file are written as they were, as long as the text still means the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from parley.chat import attachments, call_lines, grammar, result_bodies
from parley.chat.grammar import MARKERS
from parley.chat.transcript import (
    BLANK,
    SPACING,
    Answer,
    Attachment,
    Broken,
    Exchange,
    Note,
    Orphan,
    Proposal,
    Question,
    Result,
    Segment,
    Text,
    Thinking,
    Transcript,
)


def render(transcript: Transcript) -> str:
    """The text of the chat file; `parse(render(x)) == x` for every transcript."""
    blocks = list[list[str]]()
    if transcript.front_matter is not None:
        raw = transcript.front_matter
        blocks.append(["---", *(raw.split("\n") if raw else []), "---"])
    blocks += segment_blocks(transcript.preamble)
    for exchange in transcript.exchanges:
        blocks += _exchange_blocks(exchange)
    lines = join_blocks(blocks)
    if (
        transcript.front_matter is None
        and lines
        and (lines[0][:1] == "\ufeff" or lines[0].rstrip(BLANK) == "---")
    ):
        lines.insert(0, "")  # otherwise it would be read as a BOM or as front matter
    if lines and all(line.endswith("\r") for line in lines):
        lines.append("")  # otherwise the file would be read as a file with CRLF line endings
    return "".join(line + "\n" for line in lines)


def join_blocks(blocks: Iterable[Sequence[str]]) -> list[str]:
    """The blocks' lines, separated by one blank line; adjacent open proposals stay together."""
    lines = list[str]()
    for block in blocks:
        together = len(block) == 1 and lines and _is_proposal(block[0]) and _is_proposal(lines[-1])
        if lines and not together:
            lines.append("")
        lines += block
    return lines


def _is_proposal(line: str) -> bool:
    mark = grammar.marker_of(line)
    return mark is not None and mark[0] == "proposal"


def _exchange_blocks(exchange: Exchange) -> list[list[str]]:
    blocks = list[list[str]]()
    if exchange.question is not None:
        blocks += question_blocks(exchange.question)
    for answer in exchange.answers:
        blocks += answer_blocks(answer)
    return blocks


def question_blocks(question: Question) -> list[list[str]]:
    """A question's blocks; its text starts on the marker's line if possible."""
    marker, blocks = MARKERS["question"], segment_blocks(question.parts, attachments.escape)
    match question.parts:
        case ():
            return [[marker + " "]]
        case (Text(text=text), *_) if text[0] not in SPACING:
            first, *rest = text.split("\n")
            lines = [f"{marker} {first}", *map(attachments.escape_line, rest)]
            return [lines, *blocks[1:]]
        case (Text(), *_):
            return [[marker, *blocks[0]], *blocks[1:]]
        case _:
            return [[marker], *blocks]


def answer_line(agent: str | None) -> str:
    """An answer's first line."""
    return MARKERS["answer"] + (f"[{agent}]" if agent else "")


def answer_blocks(answer: Answer) -> list[list[str]]:
    """An answer's blocks, starting with the marker line."""
    return [[answer_line(answer.agent)], *segment_blocks(answer.segments)]


def segment_blocks(
    segments: Sequence[Segment | Attachment], escape: Callable[[str], list[str]] = grammar.escape
) -> list[list[str]]:
    """The segments' blocks: one for each segment, and one for each proposal's task and result.

    `escape` is applied to texts.
    """
    blocks = list[list[str]]()
    for segment, after in zip(segments, [*segments[1:], None], strict=False):
        match segment:
            case Text(text=text):
                blocks.append(escape(text))
            case Attachment():
                blocks.append([attachments.link(segment)])
            case Note(text=text):
                blocks.append(note_lines(text))
                if isinstance(after, Text | Attachment):
                    blocks.append([MARKERS["note"]])
            case Thinking():
                blocks.append(thinking_lines(segment))
            case Proposal():
                blocks += _proposal_blocks(segment)
            case Orphan(name=name, id=call_id, result=result):
                blocks.append(result_lines(name, call_id, result))
            case Broken(text=text):
                first, *rest = text.split("\n")
                blocks.append([first, *map(grammar.escape_line, rest)])
    return blocks


def note_lines(text: str) -> list[str]:
    """A note's lines; its text starts on the marker's line."""
    first, *rest = text.split("\n")
    return [f"{MARKERS['note']} {first}", *map(grammar.escape_line, rest)]


def thinking_lines(thinking: Thinking) -> list[str]:
    """A thinking block's lines: the marker line, then the text as a block quote."""
    parts = [
        f"{thinking.provider}:{thinking.model}",
        "redacted" if thinking.redacted else "",
        thinking.signature,
    ]
    head = MARKERS["thinking"] + " ".join(filter(None, parts)) + "]"
    return [head, *(grammar.quote(thinking.text) if thinking.text is not None else [])]


def _proposal_blocks(proposal: Proposal) -> list[list[str]]:
    blocks = [[proposal_line(proposal)]]
    if proposal.task is not None:
        blocks.append(result_bodies.task_lines(proposal.call.name, proposal.call.id, proposal.task))
    if proposal.result is not None:
        blocks.append(result_lines(proposal.call.name, proposal.call.id, proposal.result))
    return blocks


def proposal_line(proposal: Proposal) -> str:
    """A proposal's line; the original text if it still means the same."""
    if (mark := grammar.marker_of(proposal.spelling)) and mark[0] == "proposal":
        choice, json_text, _ = call_lines.split_proposal(proposal.spelling[mark[1] :])
        try:
            same = call_lines.read_call(json_text) == proposal.call
        except ValueError:
            same = False
        if same and choice == proposal.mark:
            return proposal.spelling
    return call_lines.proposal_line(proposal.call, proposal.mark)


def result_lines(name: str, call_id: str, result: Result) -> list[str]:
    """A result with its header; the body is written as it was if the text still means the same."""
    body, count, trouble = result_bodies.read_body(result.spelling)
    if (
        result.spelling
        and trouble is None
        and body == result.body
        and count == len(result.spelling)
    ):
        spelled = [grammar.escape_line(line) for line in result.spelling]
        gap = [] if not spelled[0].strip() else [""]
        return [result_bodies.result_header(name, call_id, result), *gap, *spelled]
    return result_bodies.result_lines(name, call_id, result)
