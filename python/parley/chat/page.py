"""Splits a chat file's lines into blocks at the markers.

Works on whole lines: one pass finds the markers and unescapes the text between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from parley.chat import grammar
from parley.chat.grammar import Kind
from parley.chat.transcript import BLANK, UNFIT, Problem, Severity
from parley.frozen import frozen


@frozen
class Block:
    """A marker line and all lines up to the next marker."""

    kind: Kind
    content: str
    column: int
    start: int
    end: int


@dataclass(slots=True)
class Page:
    """A file's lines during reading, and the problems found so far."""

    lines: list[str]
    problems: list[Problem] = field(default_factory=list)
    ignored: set[int] = field(default_factory=set)
    """Old prompt lines, which are not part of any text."""

    def problem(self, line: int, column: int, severity: Severity, message: str) -> None:
        """Report a problem at a character in a line."""
        before = self.lines[line][:column].encode("utf-8", "surrogatepass")
        self.problems.append(Problem(line, len(before), severity, message))

    def replace_unfit(self) -> None:
        """Replace characters that are not allowed in a text."""
        if not UNFIT.search("\n".join(self.lines)):
            return
        for number, line in enumerate(self.lines):
            if match := UNFIT.search(line):
                what = "NUL" if match[0] == "\0" else "bytes that are not UTF-8"
                self.problem(
                    number,
                    match.start(),
                    "warning",
                    f"a replacement character is sent instead of {what}",
                )
                self.lines[number] = grammar.fit(line)

    def front_matter(self) -> tuple[str | None, int]:
        """The raw front matter, and the number of the line below it."""
        if not self.lines or self.lines[0].rstrip(BLANK) != "---":
            return None, 0
        for number, line in enumerate(self.lines[1:], 1):
            if line.rstrip(BLANK) == "---":
                return "\n".join(self.lines[1:number]), number + 1
            if grammar.marker_of(line):
                break
        return None, 0

    def blocks(self, start: int) -> Iterator[Block]:
        """Split the lines at the markers, and unescape the text lines between them."""
        marks = list[tuple[Kind, int, int]]()
        lines = self.lines
        below = enumerate(islice(lines, start, None), start)
        for number in [i for i, line in below if not grammar.is_plain(line)]:
            line = lines[number]
            if mark := grammar.marker_of(line):
                marks.append((*mark, number))
            elif grammar.is_escaped(line):
                lines[number] = line[1:]
            elif grammar.is_prompt(line):
                self.ignored.add(number)
                self.problem(
                    number,
                    0,
                    "hint",
                    "an old prompt line is ignored because the editor draws the prompt",
                )
        ends = [number for _, _, number in marks[1:]] + [len(lines)]
        for (kind, column, number), end in zip(marks, ends, strict=False):
            yield Block(kind, lines[number][column:], column, number, end)

    def text_lines(self, start: int, end: int) -> list[str]:
        """A block's text lines: all except old prompt lines."""
        if not self.ignored:
            return self.lines[start:end]
        return [self.lines[number] for number in range(start, end) if number not in self.ignored]
