"""The tool search_text: the lines that contain a text or match a regular expression.

Python reads the files and finds the lines, so the result does not depend on the programs that are
installed. If `rg` is there, it first finds the files that may match, which is faster in a large
folder.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Timer
from typing import TypeAlias

from parley.errors import ParleyError
from parley.late_patterns import late_pattern
from parley.programs import search_path, surroundings
from parley.text import one_line
from parley.workspace.boundary import Boundary
from parley.workspace.file_views import TEXT_FILE_BYTES, lines_of, text_of
from parley.workspace.listing import name_of
from parley.workspace.opening import BoundaryError, legible_path
from parley.workspace.walk import Walk, WalkBudget, nearest_first

MATCHES_SHOWN = 200
_MOST_CONTEXT = 20
_MOST_TEXT = 50_000
_LONGEST_LINE = 400
SECONDS = 10.0

_MOST_OUTPUT = 8_000_000
_BEFORE = 100
"""How many characters of a long line are shown before the match."""
_LONGEST_PATTERN = 1_000
_RG = (
    *("--no-config", "--files-with-matches", "--null", "--text", "--no-messages", "--crlf"),
    *("--case-sensitive", f"--max-filesize={TEXT_FILE_BYTES}", "--no-require-git"),
    *("--no-ignore-dot", "--no-ignore-global", "--no-ignore-parent"),
)
"""The options for `rg`, which ignore the user's and the project's settings. A file without UTF-8 or
with NUL is searched, too, because Python decides which files are text.
"""
_COMMON = late_pattern(
    r"""(?:\(\?i\))?                              # ignore case
        (?: [\w\ .*+?|^$)"'/<>=,:;!@\#%`&~-]     # plain characters and signs
        | \((?!\?) | \(\?:                       # groups
        | \{\d+(?:,\d*)?\}
        | \\[\\.()\[\]{}|*+?^$/bBwWdDsS-]
        | \[\^?(?:[\w\ .*+?|^$()"'/<>=,:;!@\#%`]|-(?!-)|\\[\\.\[\]^wds-])+\]
        )+""",
    re.VERBOSE | re.ASCII,
)
"""Regular expressions in the part of the syntax that `rg` and Python understand alike."""

Find: TypeAlias = Callable[[str], tuple[int, int] | None]
"""Returns the first match in a line."""


def search_text(
    boundary: Boundary,
    pattern: str,
    path: str = ".",
    glob: str = "",
    is_regex: bool = False,
    context: int = 0,
    *,
    rg: str | None = None,
    budget: WalkBudget | None = None,
) -> str:
    """The matching lines as `path:line: text`; `rg` is the path of that program, if it is there.

    Raises ParleyError.
    """
    budget = budget or WalkBudget(seconds=SECONDS)
    find = _finder(pattern, budget, is_regex=is_regex)
    start = boundary.place(path)
    if boundary.path(start).is_dir():
        places = _places(Walk(boundary, start, glob, budget), pattern, is_regex, rg)
    elif boundary.path(start).exists():
        places = iter([start])
    else:
        raise BoundaryError(f"{legible_path(path)} does not exist")
    matches = _Matches(boundary, find, min(max(context, 0), _MOST_CONTEXT), budget)
    try:
        lines = matches.lines(places)
    except TimeoutError:
        budget.ended, lines = "everything after a line that took too long to match", matches.rows
    if not lines:
        lines = ["(no match; hidden, ignored, binary and very large files are not searched)"]
    if budget.ended:
        lines += ["", f"Left out: {budget.ended}"]
    return "\n".join(lines)


class _Matches:
    """Collects the matching lines of files, within bounds."""

    def __init__(self, boundary: Boundary, find: Find, context: int, budget: WalkBudget) -> None:
        self.rows = list[str]()
        self._boundary = boundary
        self._find = find
        self._context = context
        self._budget = budget
        self._matches, self._room = MATCHES_SHOWN, _MOST_TEXT

    def lines(self, places: Iterable[str]) -> list[str]:
        """The rows for all matches in these files."""
        for place in places:
            if self._budget.is_late():
                break
            try:
                content = self._boundary.content(place, TEXT_FILE_BYTES)
            except (OSError, ParleyError):
                continue
            if text := text_of(content):
                self._search(name_of(place), lines_of(text))
        return self.rows

    def _search(self, name: str, lines: list[str]) -> None:
        matches = dict[int, int]()
        for number, line in enumerate(lines):
            if not (span := self._find(line)):
                continue
            if len(matches) == self._matches or self._room <= 0:
                self._budget.ended = (
                    "further matches; search for something more precise, or give a path or a glob"
                )
                break
            matches[number] = span[0]
            self._room -= min(len(line), _LONGEST_LINE)
        self._matches -= len(matches)
        self._show(name, lines, matches)

    def _show(self, name: str, lines: list[str], matches: Mapping[int, int]) -> None:
        """Add the rows for a file's matches; `--` separates lines that are not adjacent."""
        around = range(-self._context, self._context + 1)
        numbers = {number + step for number in matches for step in around}
        before = -1
        for number in sorted(numbers & set(range(len(lines)))):
            if self._context and self.rows and (before < 0 or number > before + 1):
                self.rows.append("--")
            sign = ":" if number in matches else "-"
            part = _part(lines[number], matches.get(number, 0))
            self.rows.append(f"{name}{sign}{number + 1}{sign} {part}")
            before = number


def _part(line: str, at: int) -> str:
    """A line, or the part of a long line around a match."""
    if len(line) <= _LONGEST_LINE:
        return line
    begin = max(min(at - _BEFORE, len(line) - _LONGEST_LINE), 0)
    before, after = "…" if begin else "", "…" if begin + _LONGEST_LINE < len(line) else ""
    return f"{before}{line[begin : begin + _LONGEST_LINE]}{after}"


def _finder(pattern: str, budget: WalkBudget, *, is_regex: bool) -> Find:
    """The function that finds a pattern in a line. Raises ParleyError for an invalid pattern."""
    if not pattern or len(pattern) > _LONGEST_PATTERN:
        raise ParleyError(f"pattern: give 1 to {_LONGEST_PATTERN} characters")
    if "\n" in pattern:
        raise ParleyError("pattern: a match never spans lines, so give a single line")
    if not is_regex:

        def literal(line: str) -> tuple[int, int] | None:
            at = line.find(pattern)
            return (at, at + len(pattern)) if at >= 0 else None

        return literal
    import regex

    try:
        expression = regex.compile(pattern)
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        reason = one_line(str(error))
        raise ParleyError(f"pattern: not a valid regular expression: {reason}") from error

    def matching(line: str) -> tuple[int, int] | None:
        # Without a limit, `(a|a)+b` may run forever; `concurrent` lets other threads run meanwhile.
        match = expression.search(line, timeout=max(budget.left_s, 0.01), concurrent=True)
        return match.span() if match else None

    return matching


def _places(walk: Walk, pattern: str, is_regex: bool, rg: str | None) -> Iterator[str]:
    """The files of a walk that may match."""
    candidates = _candidates(walk, pattern, is_regex, rg) if rg else None
    if candidates is not None:
        return iter(candidates)
    return (entry.place for entry in walk.entries() if entry.kind == "file")


def _candidates(walk: Walk, pattern: str, is_regex: bool, rg: str) -> list[str] | None:
    """The files of a walk that may match, according to `rg`; None if Python has to find out.

    `rg` compares bytes. Text that is not ASCII may be encoded in several ways, so for such a
    pattern Python reads all files.
    """
    if not pattern.isascii() or (is_regex and not _COMMON.fullmatch(pattern)):
        return None
    # `rg` 13 obeys `.rgignore` despite --no-ignore-dot; projects have it in their root, if at all.
    if (walk.boundary.root / ".rgignore").exists():
        return None
    ignoring = ["--no-ignore"] if walk.is_ignored else []
    kind = [] if is_regex else ["--fixed-strings"]
    command = [rg, *_RG, *ignoring, *kind, "-e", pattern, "--", f"./{walk.start}"]
    output, code = _output(command, walk)
    if code not in (0, 1) and not output:
        return None
    names = (os.fsdecode(name).removeprefix("./") for name in output.split(b"\0")[:-1])
    return sorted(filter(walk.takes, names), key=nearest_first)


def _output(command: list[str], walk: Walk) -> tuple[bytes, int]:
    """The output and exit code of `rg`, which ends when time is up."""
    with subprocess.Popen(
        command,
        cwd=walk.boundary.root,
        env={**surroundings(os.environ), "PATH": search_path()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        timer = Timer(walk.budget.left_s, process.kill)
        timer.start()
        try:
            assert process.stdout, "it is a pipe"
            output = process.stdout.read(_MOST_OUTPUT)
        finally:
            timer.cancel()
            process.kill()
    walk.budget.is_late()
    return output, process.returncode
