"""A project's instructions for the model, such as `AGENTS.md`: which files there may be, the files
that they import, and the text for the system prompt. Pure.

Knows texts and names; does not read files, and does not know whether the user has agreed to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from parley.frozen import frozen
from parley.late_patterns import late_pattern

OWN_NAME = "AGENTS.md"
"""The user's own file, in the folder of Parley's settings."""
DEEPEST_IMPORT = 3
"""How many levels of imports there may be below the first file."""
MOST_IMPORTS = 50
"""The maximum number of imports of one file, including its imports' imports."""
MOST_BYTES = 100_000
"""The maximum size of one file with its imports, because it is a part of every request."""

_IMPORT = late_pattern(r"(?<!\S)@([\w./~][^\s`]*)")
_BACKTICKS = late_pattern(r"(`+)")
_FENCE = late_pattern(r" {0,3}(`{3,}|~{3,})")
_LAST_SIGNS = ".,;:!?)"


@frozen
class Instruction:
    """One file's text, under the name that the model sees."""

    name: str
    text: str


Instructions = tuple[Instruction, ...]


def instruction_block(instructions: Iterable[Instruction]) -> str:
    """The part of the system prompt with these texts, each below a heading with its name."""
    return "\n\n".join(f"# Instructions from {each.name}\n\n{each.text}" for each in instructions)


def selected(names: Sequence[str], choice: Sequence[str] | None) -> tuple[str, ...]:
    """The names in the settings that a chat uses; a chat's own list can only leave names out."""
    return tuple(name for name in names if choice is None or name in choice)


def is_plain_name(name: str) -> bool:
    """Whether a setting names a file in a folder or below it, and no file elsewhere."""
    path = PurePosixPath(name)
    return (
        bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name
    )


def folders(top: Path, root: Path) -> list[Path]:
    """The folders from a work tree's top to the root, so that the nearest file comes last."""
    above = [place for place in (root, *root.parents) if place.is_relative_to(top)]
    return above[::-1]


def imported_paths(text: str) -> list[str]:
    """The paths in `@path` imports, in order and without repetitions; not those in code."""
    return list(dict.fromkeys(path for line in _prose(text) for path in _in_line(line)))


def _in_line(line: str) -> Iterator[str]:
    for match in _IMPORT.finditer(_without_code(line)):
        if path := match[1].rstrip(_LAST_SIGNS):
            yield path


def _without_code(line: str) -> str:
    """A line with a backtick in place of each code span, in linear time."""
    parts, outside, at = _BACKTICKS.split(line), list[str](), 0
    last = {part: number for number, part in enumerate(parts) if number % 2}
    while at < len(parts):
        is_open = at % 2 == 1 and last[parts[at]] > at
        outside.append("`" if is_open else parts[at])
        at = (parts.index(parts[at], at + 1) if is_open else at) + 1
    return "".join(outside)


def _prose(text: str) -> Iterator[str]:
    """The lines outside code fences."""
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if not fence and mark:
            fence = mark[1]
        elif fence:
            closes = mark and mark[1].startswith(fence) and not line[mark.end() :].strip()
            fence = "" if closes else fence
        else:
            yield line
