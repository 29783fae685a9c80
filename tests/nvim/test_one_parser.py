"""Lua reads a chat before the host runs, and finds its parts where the reader in Python does.

Differences that are wanted: a question that only attaches files has the link as its title. A call's
text object includes a result below it with the call's id, even if the reader does not attach this
result: they are deleted together. In texts, only Lua looks for code blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from parley.chat.call_lines import split_proposal
from parley.chat.grammar import fit, marker_of
from parley.chat.page import Page
from parley.chat.reader import parse_lines, split_lines
from parley.chat.transcript import (
    Broken,
    Note,
    Orphan,
    Proposal,
    Question,
    Result,
    Segment,
    Span,
    Text,
    Transcript,
    is_blank,
)
from tests.nvim.harness import Child

TESTS = Path(__file__).parents[1]
CORPORA = (TESTS / "transcripts", TESTS / "imports" / "corpus")
FILES = {path.name: path for folder in CORPORA for path in sorted(folder.glob("*.md"))}

READ = """
local objects, outline = require('parley.objects'), require('parley.outline')
local is_question = require('parley.chat').is_question
local function spans(name, count)
  local found = {}
  for row = 0, count - 1 do
    local object = objects.find[name](row)
    if object then
      found[#found + 1] = { row, object.first, object.last + 1 }
    end
  end
  return found
end
return vim.tbl_map(function(lines)
  vim.api.nvim_buf_set_lines(0, 0, -1, true, lines)
  local read = { titles = {}, calls = {} }
  for name in pairs(objects.described) do
    read[name] = spans(name, #lines)
  end
  for row, line in ipairs(lines) do
    if is_question(line) then
      read.titles[#read.titles + 1] = outline.title(lines, row, 0)
    end
    local call = objects.find.call_object(row - 1, true)
    if call and call.first == row - 1 then
      read.calls[#read.calls + 1] = { row - 1, line:sub(call.col + 1, call.stop) }
    end
  end
  return read
end, ...)
"""
"""For each text: the spans around its rows by text object, its titles, its calls' arguments."""


def lines_of(path: Path) -> list[str]:
    return split_lines(path.read_bytes().decode("utf-8", "surrogateescape"))


@pytest.fixture(scope="module")
def luas(hostless: Child) -> dict[str, dict[str, Any]]:
    """What Lua finds in each file, in one request."""
    hostless.clear()
    texts = [
        [line.encode("utf-8", "surrogateescape") for line in lines_of(path)]
        for path in FILES.values()
    ]
    return dict(zip(FILES, hostless.lua(READ, texts), strict=True))


def questions_in(transcript: Transcript) -> Iterator[tuple[Span, Span]]:
    """Rows, and the question that they belong to."""
    for exchange in transcript.exchanges:
        if exchange.question:
            yield exchange.span, exchange.question.span


def answers_in(transcript: Transcript) -> Iterator[tuple[Span, Span]]:
    """Rows, and the answer that they belong to; a question's rows belong to its first answer."""
    for exchange in transcript.exchanges:
        if exchange.question and exchange.answers:
            yield exchange.question.span, exchange.answers[0].span
        for answer in exchange.answers:
            yield answer.span, answer.span


def calls_in(transcript: Transcript, lines: list[str]) -> Iterator[tuple[Span, Span]]:
    """Rows, and the call that they belong to, with the blank lines below it."""
    page = Page(list(lines))
    heads = [block.start for block in page.blocks(page.front_matter()[1])]
    for segments in segments_in(transcript):
        for segment, below in zip_longest(segments, segments[1:]):
            if isinstance(segment, Proposal | Broken) and marker(lines, segment) == "proposal":
                start = end = segment.span.start
                head = next((head for head in heads if head > start), None)
                ends = [span.end for span in outcomes(segment, below) if span.start == head]
                rows = Span(start, ends[0] if ends else start + 1)
                end = rows.end
                while end < len(lines) and is_blank(lines[end]):
                    end += 1
                yield rows, Span(start, end)


def outcomes(call: Proposal | Broken, below: Segment | None) -> Iterator[Span]:
    """The spans of a call's result and task, and of a result below it that names the call."""
    if isinstance(call, Broken):
        return
    yield from (part.span for part in (call.result, call.task) if part)
    if isinstance(below, Orphan) and below.id == call.call.id:
        yield below.result.span
    if isinstance(below, Broken) and f"[{call.call.id}]" in below.text:
        yield below.span


def bodies_in(transcript: Transcript) -> Iterator[tuple[Span, Span]]:
    """Rows, and the fenced body of a result that they belong to."""
    for segments in segments_in(transcript):
        for segment in segments:
            result = segment.result if isinstance(segment, Proposal | Orphan) else None
            if result and (fence := fence_of(result)):
                yield fence, fence


def fence_of(result: Result) -> Span | None:
    """The fenced body of a result without the blank lines around it."""
    filled = [row for row, line in enumerate(result.spelling) if not is_blank(line)]
    if not filled or not result.spelling[filled[0]].startswith("```"):
        return None
    return Span(result.span.start + 1 + filled[0], result.span.start + 2 + filled[-1])


def segments_in(transcript: Transcript) -> Iterator[tuple[Segment, ...]]:
    for exchange in transcript.exchanges:
        for answer in exchange.answers:
            yield answer.segments


def marker(lines: list[str], segment: Proposal | Broken) -> str:
    mark = marker_of(lines[segment.span.start])
    return mark[0] if mark else ""


def title(question: Question, lines: list[str]) -> str:
    """The first line of a question for the model; the link of an attachment as written."""
    for part in question.parts:
        if not isinstance(part, Note):
            text = part.text if isinstance(part, Text) else lines[part.span.start]
            return text.partition("\n")[0].strip()
    return "(empty)"


def rows(parts: Iterator[tuple[Span, Span]]) -> list[list[int]]:
    """For each row, its part."""
    return [[row, part.start, part.end] for at, part in parts for row in range(at.start, at.end)]


@pytest.mark.parametrize("name", FILES)
def test_lua_and_the_reader_find_the_same_parts(name: str, luas: dict[str, dict[str, Any]]) -> None:
    lines, lua = lines_of(FILES[name]), luas[name]
    transcript = parse_lines(lines)
    assert lua["question_object"] == rows(questions_in(transcript))
    assert lua["answer_object"] == rows(answers_in(transcript))
    assert lua["call_object"] == rows(calls_in(transcript, lines))


@pytest.mark.parametrize("name", FILES)
def test_lua_and_the_reader_find_the_same_code_in_results(
    name: str, luas: dict[str, dict[str, Any]]
) -> None:
    lines, found = lines_of(FILES[name]), luas[name]["code_object"]
    bodies = rows(bodies_in(parse_lines(lines)))
    assert [body for body in bodies if body not in found] == []
    for _, start, end in found:
        assert not any(map(marker_of, lines[start:end])), "no code block crosses a marker"


@pytest.mark.parametrize("name", FILES)
def test_lua_and_the_reader_read_the_same_arguments(
    name: str, luas: dict[str, dict[str, Any]]
) -> None:
    lines = lines_of(FILES[name])
    calls = [
        [segment.span.start, split_proposal(segment.spelling.partition(":")[2])[1]]
        for segments in segments_in(parse_lines(lines))
        for segment in segments
        if isinstance(segment, Proposal) and "`" in segment.spelling
    ]
    assert [call for call in luas[name]["calls"] if call in calls] == calls


@pytest.mark.parametrize("name", FILES)
def test_lua_and_the_reader_give_questions_the_same_titles(
    name: str, luas: dict[str, dict[str, Any]]
) -> None:
    lines = lines_of(FILES[name])
    questions = [exchange.question for exchange in parse_lines(lines).exchanges]
    titles = [title(question, lines) for question in questions if question]
    assert list(map(fit, luas[name]["titles"])) == titles
