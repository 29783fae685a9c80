"""Reads other plugins' Markdown chats into a conversation.

- gp.nvim: `💬:` and `🤖:[Agent]`, in older files `🗨:`; above them, a header that ends with `---`,
  with lines such as `topic: x`, `- role: x`, `# topic: x` (Robitx/gp.nvim, lua/gp/init.lua and
  lua/gp/defaults.lua, 2026-11-23).
- parley.nvim, a derivative: the same, with `🔒:` for text for people, up to the next turn, `🌿:`
  for a line that links to another chat, `🧠:` for thinking up to a blank line or `🧠:[END]`, and
  fenced blocks below `🔧: tool id=x` and `📎: tool id=x error=true` (xianxu/parley.nvim,
  atlas/chat/format.md, lua/parley/tools/serialize.lua and lua/parley/chat_parser.lua, 2026-11-23).
- CodeCompanion: its buffer, with the headings `## Me` and `## CodeCompanion (adapter)`
  (olimorris/codecompanion.nvim, lua/codecompanion/interactions/chat/parser.lua, 2026-11-23).

As in those plugins, a marker is recognized only at the start of a line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

from parley.chat.grammar import MARKERS, SUMMARY
from parley.chat.reader import split_lines
from parley.conversion.imports.imported_chat import Conversation, ImportedChat
from parley.late_patterns import late_pattern

_USER, _AGENT = (MARKERS["question"], "🗨:"), MARKERS["answer"]
_LOCAL, _BRANCH = MARKERS["note"], "🌿:"
_THINKING = MARKERS["thinking"].removesuffix("[")
_END = f"{_THINKING}[END]"
_CALL, _RESULT = "🔧:", "📎:"
_TOOL = late_pattern(
    rf"(?P<kind>{_CALL}|{_RESULT})\s*(?P<name>\S+)\s+id=(?P<id>\S+)(?P<error>.*error=true)?.*"
)
_FENCE = late_pattern(r"(?P<ticks>`{3,})[^`]*")
# "A code fence is a sequence of at least three consecutive backtick characters (`) or tildes (~)",
# indented by up to three spaces; its closing fence is of the same kind, and at least as long
# (CommonMark 0.31.2, 4.5).
_OPENER = late_pattern(r" {0,3}(?:(?P<ticks>`{3,})[^`]*|(?P<tildes>~{3,}).*)")
_CLOSER = late_pattern(r" {0,3}(?P<fence>`{3,}|~{3,})[ \t]*")
_HEADER = late_pattern(r"[-#]? ?(?P<key>[A-Za-z_]+\+?): (?P<value>.*)")
_RULE = late_pattern(r"---\s*")
_NAME = late_pattern(r"\[(?P<agent>[^\]]*)\](?P<rest>.*)")
_HEADING = late_pattern(r"## (?:Me|CodeCompanion\b.*)")
_REASONING, _RESPONSE = late_pattern(r"### Reasoning\s*"), late_pattern(r"### Response\s*")
_CONTEXT = "> Context:"
_PROMPTS = ("role", "role+", "system_prompt", "system_prompt+")
_OF_THE_FILE = ("file", "topic", *_PROMPTS)


def has_turns(lines: Sequence[str]) -> bool:
    """Whether these are lines from gp.nvim, or from a plugin derived from it."""
    return any(line.startswith((*_USER, _AGENT)) for line in lines)


def has_tools(lines: Sequence[str]) -> bool:
    """Whether there are turns, and lines that have a meaning only in parley.nvim."""
    signs = (_BRANCH, _LOCAL)
    return has_turns(lines) and any(
        line.startswith(signs) or _TOOL.fullmatch(line) for line in lines
    )


def has_headings(lines: Sequence[str]) -> bool:
    """Whether these are lines from a CodeCompanion buffer."""
    return any(_HEADING.fullmatch(line) for line in lines)


def gp(text: str) -> ImportedChat:
    """Read a gp.nvim file."""
    conversation, lines = _begin(text)
    for marker, block, _ in _turns(conversation, lines, frozenset()):
        if marker in _USER:
            conversation.question("\n".join(block))
        else:
            _words(conversation, _speaker(conversation, block))
    return conversation.chat()


def parley_nvim(text: str) -> ImportedChat:
    """Read a parley.nvim file."""
    conversation, lines = _begin(text)
    for marker, block, bodies in _turns(conversation, lines, _bodies(lines)):
        if marker in _USER:
            own, notes = _split(block, bodies)
            conversation.question("\n".join(own))
        else:
            own, notes = _split(_speaker(conversation, block), bodies)
            _answer(conversation, own)
        for note in notes:
            conversation.note(note)
    return conversation.chat()


def codecompanion(text: str) -> ImportedChat:
    """Read a CodeCompanion buffer, whose Markdown shows tool results as text."""
    conversation, lines = Conversation(), split_lines(text)
    starts = [number for number in _unfenced(lines) if _HEADING.fullmatch(lines[number])]
    _turn(conversation, "", lines[: next(iter(starts), len(lines))])
    for start, end in pairwise([*starts, len(lines)]):
        _turn(conversation, lines[start].removeprefix("## "), lines[start + 1 : end])
    return conversation.chat()


def _turn(conversation: Conversation, who: str, block: Sequence[str]) -> None:
    match who:
        case "":
            if any(line.strip() for line in block):
                conversation.lose("the text above the first heading")
        case "Me":
            own = _without_context(conversation, block)
            if any(line.strip() for line in own):
                conversation.question("\n".join(own))
        case _:
            _sections(conversation, block)


def _without_context(conversation: Conversation, block: Sequence[str]) -> Sequence[str]:
    """A question without the list of shared context."""
    if _CONTEXT not in block:
        return block
    conversation.lose("the list of context shared with a question")
    start = block.index(_CONTEXT)
    end = next((n for n in range(start, len(block)) if not block[n].startswith(">")), len(block))
    return [*block[:start], *block[end:]]


def _sections(conversation: Conversation, block: Sequence[str]) -> None:
    """Read an answer, which may have headings above its thinking and its text.

    Only a heading with nothing above it can start the thinking; other headings belong to the
    model's text.
    """
    conversation.reply()
    begin = next((number for number, line in enumerate(block) if line.strip()), 0)
    if block and _REASONING.fullmatch(block[begin]):
        rest = block[begin + 1 :]
        end = next((n for n in _unfenced(rest) if _RESPONSE.fullmatch(rest[n])), len(rest))
        conversation.thinking("\n".join(rest[:end]).strip("\n"))
        block = rest[end + 1 :]
    _words(conversation, block)


def _begin(text: str) -> tuple[Conversation, list[str]]:
    """Start a conversation with the header's values; also returns the lines below the header."""
    conversation, lines = Conversation(), split_lines(text)
    first = 1 if lines and _RULE.fullmatch(lines[0]) else 0
    turn = next(
        (n for n, line in enumerate(lines) if line.startswith((*_USER, _AGENT))), len(lines)
    )
    end = next((n for n in range(first, turn) if _RULE.fullmatch(lines[n])), None)
    if end is None:
        return conversation, lines
    for line in lines[first:end]:
        if header := _HEADER.fullmatch(line):
            _heed(conversation, header["key"], header["value"])
    return conversation, lines[end + 1 :]


def _heed(conversation: Conversation, key: str, value: str) -> None:
    """Read a line of the header, in which a prompt's line breaks are written as `\\n`."""
    if key == "topic" and value.strip() != "?":
        conversation.title(value)
    elif key in ("tags", "tags+"):
        conversation.tags(re.split(r"[,\s]+", value))
    elif key in _PROMPTS:
        conversation.system(value.replace("\\n", "\n"))
    elif key not in _OF_THE_FILE:
        conversation.lose(f"the header {key}")


def _turns(
    conversation: Conversation, lines: Sequence[str], bodies: AbstractSet[int]
) -> Iterator[tuple[str, list[str], AbstractSet[int]]]:
    """The turns, each with its marker, its lines, and the numbers of lines in tool bodies.

    The lines above the first turn are the preamble. A line in `bodies` never starts a turn.
    """
    marker, block, inside = "", list[str](), set[int]()
    for number, line in enumerate([*lines, _AGENT]):
        begun = next((start for start in (*_USER, _AGENT) if line.startswith(start)), None)
        if begun is None or number in bodies:
            if number in bodies:
                inside.add(len(block))
            block.append(line)
            continue
        if marker:
            yield marker, block, inside
        else:
            conversation.preamble("\n".join(block))
        marker, block, inside = begun, [line.removeprefix(begun).strip()], set()


def _bodies(lines: Sequence[str]) -> AbstractSet[int]:
    """The numbers of the lines in the fences of calls and results; these lines are always text.

    parley.nvim does the same if the fence is closed (lua/parley/fence.lua, `scan`, 2026-11-24).
    """
    fences, numbers, at = _Fences(lines), set[int](), 0
    while at < len(lines):
        is_tool = _TOOL.fullmatch(lines[at]) is not None
        end = fences.end(at + 1 if is_tool else at)
        if end is not None and is_tool:
            numbers.update(range(at + 2, end - 1))
        at = end or at + 1
    return numbers


def _speaker(conversation: Conversation, block: list[str]) -> list[str]:
    """Begin the answer of the agent whose name is on its first line; returns the lines of its
    text.
    """
    name = _NAME.fullmatch(block[0])
    conversation.reply(name["agent"] if name else "")
    return [name["rest"].strip(), *block[1:]] if name else block


def _split(block: Sequence[str], bodies: AbstractSet[int]) -> tuple[list[str], list[str]]:
    """Split a turn into lines for the model and notes; lines in `bodies` never start a note."""
    starts = {n: line for n, line in enumerate(block) if n not in bodies}
    end = next((n for n, line in starts.items() if line.startswith(_LOCAL)), len(block))
    local = "\n".join(block[end:]).removeprefix(_LOCAL)
    links = {n for n, line in starts.items() if line.startswith(_BRANCH)}
    own = [line for n, line in enumerate(block[:end]) if n not in links]
    branches = [block[n] for n in sorted(links) if n < end]
    return own, [*branches, *([local] if local.strip() else [])]


def _words(conversation: Conversation, lines: Sequence[str]) -> None:
    conversation.text("\n".join(lines))


def _answer(conversation: Conversation, lines: Sequence[str]) -> None:
    """Read a parley.nvim answer: text, thinking, calls and results."""
    blocks, words, at = _Blocks(lines), list[str](), 0
    while at < len(lines):
        end = blocks.end(at)
        if end is None or _FENCE.fullmatch(lines[at]):
            words += lines[at : end or at + 1]
        else:
            _words(conversation, words)
            words = []
            _tool_or_thinking(conversation, lines[at:end])
        at = end or at + 1
    _words(conversation, words)


def _after(numbers: Sequence[int], at: int) -> int | None:
    """The first number that is higher than `at`."""
    place = bisect_right(numbers, at)
    return numbers[place] if place < len(numbers) else None


class _Fences:
    """Finds the ends of fences; a fence's opening and closing lines have the same number of
    backticks.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._closers = dict[str, list[int]]()
        for number, line in enumerate(lines):
            if (bare := line.rstrip()) and not bare.strip("`"):
                self._closers.setdefault(bare, []).append(number)

    def end(self, at: int) -> int | None:
        """The line after a fence that begins here; None if there is no closed fence."""
        fence = _FENCE.fullmatch(self._lines[at]) if at < len(self._lines) else None
        closer = _after(self._closers.get(fence["ticks"], []), at) if fence else None
        return None if closer is None else closer + 1


class _Blocks:
    """Finds the ends of an answer's blocks: calls, results, thinking, and closed fences."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._fences = _Fences(lines)
        self._ends = [number for number, line in enumerate(lines) if line.strip() == _END]
        self._stops, self._gaps = list[int](), list[int]()
        for number, line in enumerate(lines):
            if line.startswith((SUMMARY, _THINKING)) or _TOOL.fullmatch(line):
                self._stops.append(number)
            elif not line.strip():
                self._gaps.append(number)

    def end(self, at: int) -> int | None:
        """The line after a block that begins here; None if there is no block."""
        line = self._lines[at]
        if line.startswith(_THINKING):
            return self._thinking_end(at)
        return self._fences.end(at + 1 if _TOOL.fullmatch(line) else at)

    def _thinking_end(self, at: int) -> int:
        last = len(self._lines)
        stop, end = _after(self._stops, at) or last, _after(self._ends, at) or last
        return end + 1 if end < last and end <= stop else min(stop, _after(self._gaps, at) or last)


def _tool_or_thinking(conversation: Conversation, block: Sequence[str]) -> None:
    tool = _TOOL.fullmatch(block[0])
    if tool is None:
        thought = [line for line in block if line.strip() != _END]
        conversation.thinking("\n".join(thought).removeprefix(_THINKING).strip())
        return
    body = "\n".join(block[2:-1])
    if tool["kind"] == _CALL:
        conversation.call(tool["id"], tool["name"], body)
    else:
        conversation.result(tool["id"], body, "error" if tool["error"] else "ok", tool["name"])


def _unfenced(lines: Sequence[str]) -> Iterator[int]:
    """The numbers of the lines outside Markdown fences, excluding the fence lines."""
    fence = ""
    for number, line in enumerate(lines):
        if fence:
            closer = _CLOSER.fullmatch(line)
            fence = "" if closer and closer["fence"].startswith(fence) else fence
        elif opened := _OPENER.fullmatch(line):
            fence = opened["ticks"] or opened["tildes"]
        else:
            yield number
