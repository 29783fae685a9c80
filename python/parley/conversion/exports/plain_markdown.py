"""Exports a chat as plain Markdown for people, with headings and blocks instead of markers.

Knows the transcript and Markdown. Anything that a text leaves open, such as a fence, is closed at
the end of the text, so that it cannot hide or absorb other speakers' text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from parley.chat.front_matter import topic
from parley.chat.grammar import SUMMARY
from parley.chat.rounds import read_notice
from parley.chat.transcript import (
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
    Status,
    Text,
    Thinking,
    Transcript,
)
from parley.late_patterns import late_pattern
from parley.text import fence, one_line, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_MEANINGFUL = late_pattern(r"([\\`*_{}\[\]<>#!|~&])")
_FENCE = late_pattern(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_SUMMARY = late_pattern(rf"^{SUMMARY}", re.MULTILINE)
_END, _PARAGRAPH = "end", ["paragraph_open", "inline", "paragraph_close"]
_RESULTS: dict[Status, str] = {
    "ok": "Result of {}",
    "error": "{} failed",
    "refused": "{} did not run",
}


def markdown_page(transcript: Transcript, title: str) -> str:
    """The page; `title` is used if the chat has no topic. The user's notes are left out."""
    parts = [f"# {_plain(topic(transcript) or title)}"]
    parts += (_whole(part.text) for part in transcript.preamble if isinstance(part, Text))
    parts += (part for exchange in transcript.exchanges for part in _exchange(exchange))
    return "\n\n".join(parts) + "\n"


def _exchange(exchange: Exchange) -> Iterator[str]:
    if exchange.question and exchange.question.text:
        yield "## Question"
        yield from _question(exchange.question)
    for answer in exchange.answers:
        yield f"## Answer of {_plain(answer.agent)}" if answer.agent else "## Answer"
        yield from _answer(answer)


def _question(question: Question) -> Iterator[str]:
    for part in question.parts:
        if isinstance(part, Text):
            yield _whole(part.text)
        elif isinstance(part, Attachment):
            yield _picture(part)


def _answer(answer: Answer) -> Iterator[str]:
    for segment in answer.segments:
        yield from _segment(segment)


def _segment(segment: Segment) -> Iterator[str]:
    match segment:
        case Text(text):
            yield _whole(_SUMMARY.sub("**Summary**:", text))
        case Thinking(text=text):
            yield from _block("Thinking", text) if text else ()
        case Proposal(call=call, readable_result=result, ran_by=ran_by):
            by = f", run by the {ran_by}" if ran_by else ""
            yield from _block(f"Tool call {_code(call.name)}{by}", call.arguments, "json")
            yield from (
                _result(_RESULTS[result.status].format(_code(call.name)), result) if result else ()
            )
        case Orphan(name, _, result):
            yield from _result(f"Result of {_code(name)} without a call", result)
        case Broken(text=text):
            yield from _block("An unreadable line", text)
        case Note() if notice := read_notice(segment):
            yield f"> **{notice.kind}**: {_plain(notice.reason)}"
        case Note():
            pass


def _result(title: str, result: Result) -> Iterator[str]:
    yield from _block(title, result.body)
    yield from map(_picture, result.attachments)


def _block(title: str, text: str, language: str = "") -> Iterator[str]:
    """A title, and a text that is not Markdown, in a fence."""
    yield f"**{title}**"
    ticks = fence(text)
    yield f"{ticks}{language}\n{visible(text)}\n{ticks}"


def _picture(attachment: Attachment) -> str:
    mark, path = "" if attachment.is_text else "!", re.sub(r"([\\<>])", r"\\\1", attachment.path)
    return f"{mark}[{_plain(attachment.label)}](<{path}>)"


def _plain(text: str) -> str:
    """A text on one line, with all of Markdown's special characters escaped."""
    return _MEANINGFUL.sub(r"\\\1", one_line(text))


def _code(text: str) -> str:
    """A text on one line as a code span."""
    text = one_line(text)
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    gap = " " if "`" in (text[:1], text[-1:]) else ""
    return f"{ticks}{gap}{text}{gap}{ticks}"


def _whole(text: str) -> str:
    """Make Markdown self-contained: close open constructs, or turn the text into a code block."""
    closed = (text, *(f"{text}\n{closer}" for closer in _closers(text)))
    ticks = fence(text)
    return next(filter(_ends, closed), f"{ticks}\n{text}\n{ticks}")


def _closers(text: str) -> Iterable[str]:
    """Lines that may close the text: the longest fence of each kind, and the end of a comment."""
    fences: list[str] = _FENCE.findall(text)
    longest = (max((run for run in fences if run[0] == sign), key=len, default="") for sign in "`~")
    return [*filter(None, longest), "-->"]


def _ends(text: str) -> bool:
    """Whether a paragraph below the text is read as a paragraph."""
    last = _reader().parse(f"{text}\n\n{_END}")[-3:]
    return [token.type for token in last] == _PARAGRAPH and (last[0].level, last[1].content) == (
        0,
        _END,
    )


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")
