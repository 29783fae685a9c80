#!/usr/bin/env python3
"""A reader of chats: `reader.py FILE` prints the same as `parley parse FILE`, except the `problems`.

It is an example for people who write their own reader, in any language. It was written from
doc/transcript.md, and each part begins with the name of the section that it implements. Lines
count from 1 in the output, and from 0 in the code; doc/json.md says where each part ends.
"""

import itertools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VERSION = 1
Tree = dict[str, Any]

# Lines: three kinds of spaces may follow a marker, or end its line.
SPACES = " \t\xa0"
ENDS = SPACES + "\r"
GAP = f"[{SPACES}]*"
MARKER = re.compile(f"([💬🤖❓🛠🔒])\ufe0f?:{GAP}|(🧠)\ufe0f?:(?=\\[)")
PROMPT = ">> Please choose ("

# Attachments: images, and after the header of a result also texts.
TARGET = r"\[([^][\r]*)\]\(([^/\r]+\.assets/[0-9a-f]{64}\.%s)\)"
PICTURE = "!" + TARGET % "(?:png|jpg|gif|webp|pdf)"
IMAGE = re.compile(PICTURE + r"[ \t\r]*")
LINK = re.compile(f"{GAP}(?:{PICTURE}|{TARGET % 'txt'})")

# Answers: the content after their markers, and the bodies of results.
AGENT = re.compile(f"\\[([^]]*)\\]{GAP}")
SIGNATURE = r"(\S(?:.*\S)?)"
SIGNED = rf" (redacted) {SIGNATURE}| (?!redacted(?: |\]\Z)){SIGNATURE}?"
THINKING = re.compile(rf"\[([^][\s:]+):([^][\s]+)(?:{SIGNED})?\]")
CHOICE = re.compile(f"(?:\\[([^]]*)\\])?{GAP}(.*)")
CHOICES = ("ya", "yo", "yA", "yO", "yn", "yN")
RUNNERS = ("provider", "agent")
ID = "[A-Za-z0-9_.:-]{1,128}"
RESULT = re.compile(f"\\[([^]]*)\\]{GAP}\\[({ID})\\]{GAP}(?:\\[(error|refused|pending)\\])?(.*)")
FENCE = re.compile("(```+)[^`]*")
QUOTE = re.compile("(`+)(?!`)(.*[^`])\\1[ \t]*")
TASK = re.compile("`([!-_a-~]{1,512})`")


def sign(line: str) -> str:
    """The sign of the marker at the start of the line; "" if there is none."""
    match = MARKER.match(line)
    return (match[1] or match[2]) if match else ""


def after_marker(line: str) -> str:
    """The content after the marker."""
    return MARKER.sub("", line, count=1)


def read_object(pairs: list[tuple[str, Any]]) -> Tree:
    """A JSON object, in which no key occurs twice."""
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def read_float(text: str) -> float:
    """A finite number; rejects `NaN` and `1e999`."""
    number = float(text)
    if number - number != 0:
        raise ValueError(f"{text} is not a finite number")
    return number


def depth(value: Any) -> int:
    """How deeply lists and objects are nested."""
    inner = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def read_call(text: str) -> Tree:
    """Proposals: the call. Raises an error if it is unreadable."""
    call = json.loads(
        text, object_pairs_hook=read_object, parse_constant=read_float, parse_float=read_float
    )
    if depth(call) > 100:
        raise ValueError("nested too deeply")
    key, index, kind = call.pop("id"), call.pop("index", None), call.pop("type", "function")
    function = call.pop("function")
    name, arguments = function.pop("name"), function.pop("arguments")
    if not (
        re.fullmatch(ID, key) and isinstance(name, str) and name and isinstance(arguments, str)
    ):
        raise ValueError("the id, the name or the arguments are invalid")
    if kind != "function" or (index is not None and (type(index) is not int or index < 0)):
        raise ValueError("the type or the index is invalid")
    call |= {"function": function} if function else {}
    extra = json.dumps(call, separators=(",", ":"), sort_keys=True) if call else ""
    return {"id": key, "name": name, "arguments": arguments, "index": index, "extra": extra}


class Reader:
    """The lines of a chat, and the tree made from them."""

    def __init__(self, data: bytes) -> None:
        """Lines: only a newline ends a line. If all lines end with a CR, the CRs are part of the ends."""
        text = re.sub("[\udc80-\udcff]", "\ufffd", data.decode("utf-8", "surrogateescape"))
        lines = text.removeprefix("\ufeff").replace("\0", "\u2400").split("\n")
        last = lines.pop()
        if all(line.endswith("\r") for line in lines):
            lines = [line[:-1] for line in lines]
        self.lines = [*lines, last] if last else lines
        self.gaps = set(self.find_gaps())

    def find_gaps(self) -> Iterator[int]:
        """The lines that are ignored: old prompts, and empty notes with the bare marker that ends
        them.
        """
        in_note, empty_note = False, None
        for number, line in enumerate([*self.lines, "💬:"]):
            mark, is_bare = sign(line), not after_marker(line).strip(SPACES)
            if line.startswith(PROMPT):
                yield number
            elif mark:
                is_end = in_note and mark == "🔒" and is_bare
                if empty_note is not None:
                    yield from range(empty_note, number + is_end)
                in_note = mark == "🔒" and not is_end
                empty_note = number if in_note and is_bare else None
            elif line.strip(SPACES):
                empty_note = None

    def tree(self) -> Tree:
        """The whole chat: front matter, preamble, and exchanges."""
        signs = [sign(line) for line in self.lines]
        turns = [number for number, mark in enumerate(signs) if mark in ("💬", "🤖")] + [len(signs)]
        first = next((number for number, mark in enumerate(signs) if mark), len(signs))
        bars = [number for number in range(first) if self.lines[number].rstrip(" \t") == "---"]
        front, start = None, 0
        if len(bars) > 1 and bars[0] == 0:
            front, start = "\n".join(self.lines[1 : bars[1]]), bars[1] + 1
        exchanges: list[Tree] = []
        for at, end in itertools.pairwise(turns):
            place = {"line": at + 1, "end_line": end}
            if signs[at] == "💬" or not exchanges:
                exchanges.append(place | {"question": None, "answers": []})
            if signs[at] == "💬":
                exchanges[-1]["question"] = place | {
                    "parts": list(self.parts(at, end, in_question=True))
                }
            else:
                exchanges[-1]["answers"].append(place | self.answer(at, end))
            exchanges[-1]["end_line"] = end
        preamble = list(self.parts(start, turns[0], in_question=False))
        return {
            "version": VERSION,
            "front_matter": front,
            "preamble": preamble,
            "exchanges": exchanges,
        }

    def blocks(self, at: int, end: int, signs: str) -> Iterator[tuple[str, int, int, str]]:
        """The blocks from line `at` to `end`: sign, first line, end, and the content after the
        marker.

        Text without a marker has no sign, and begins on the line below its first line. Notes: any
        marker ends a note, even a marker that is text here; a bare `🔒:` only ends a note.
        """
        block, start, head = "", at - 1, ""
        for number in range(at, end):
            mark = "" if number in self.gaps else sign(self.lines[number])
            is_text = mark not in signs
            if mark and (block == "🔒" or not is_text):
                yield block, start, number, head
                head = "" if is_text else after_marker(self.lines[number])
                is_end = mark == block == "🔒" and not head.rstrip(SPACES)
                block, start = "" if is_text or is_end else mark, number - is_text
        yield block, start, end, head

    def content(self, at: int, end: int, *, in_question: bool = False) -> Iterator[tuple[int, str]]:
        """Lines with their numbers, without ignored lines and without the backslashes of escaped
        lines.
        """
        for number in set(range(at, end)) - self.gaps:
            line, rest = self.lines[number], self.lines[number].lstrip("\\")
            special = (
                sign(rest) or rest.startswith(PROMPT) or (in_question and IMAGE.fullmatch(rest))
            )
            yield number, line[1:] if special and rest != line else line

    def text(self, at: int, end: int, head: str = "", *, in_question: bool = False) -> list[Tree]:
        """Text without the blank lines around it: `head`, which follows a marker, and the lines
        below.
        """
        rows = trim([(at, head), *sorted(self.content(at + 1, end, in_question=in_question))])
        text = "\n".join(line for _, line in rows)
        if not rows:
            return []
        empty_notes = (
            n for n in range(rows[-1][0] + 1, end) if n in self.gaps and sign(self.lines[n])
        )
        return [
            {
                "kind": "text",
                "line": rows[0][0] + 1,
                "end_line": next(empty_notes, end),
                "text": text,
            }
        ]

    def note(self, at: int, end: int, head: str) -> list[Tree]:
        """Notes: the text after the marker, on its line or below it."""
        notes = [
            note | {"text": note["text"].lstrip(SPACES + "\n")} for note in self.text(at, end, head)
        ]
        return [note | {"kind": "note", "line": at + 1} for note in notes if note["text"]]

    def parts(self, at: int, end: int, *, in_question: bool) -> Iterator[Tree]:
        """Questions and the preamble: text, notes and attachments. Any other marker is text
        here.
        """
        for mark, start, stop, head in self.blocks(at, end, "💬🔒"):
            if mark == "🔒":
                yield from self.note(start, stop, head)
                continue
            for number in range(start + 1, stop):
                if in_question and (match := IMAGE.fullmatch(self.lines[number])):
                    yield from self.text(start, number, head, in_question=True)
                    place = {"line": number + 1, "end_line": number + 1}
                    yield {"kind": "attachment", "label": match[1], "path": match[2]} | place
                    start, head = number, ""
            yield from self.text(start, stop, head, in_question=in_question)

    def answer(self, at: int, end: int) -> Tree:
        """Answers: the agent, then text, thinking, calls with their results, and notes."""
        readers = {"🔒": self.note, "🧠": self.thinking, "❓": self.proposal, "🛠": self.result}
        agent, segments = None, list[Tree]()
        for mark, start, stop, head in self.blocks(at, end, "🤖🔒🧠❓🛠"):
            if mark == "🤖" and (match := AGENT.match(head)):
                agent, head = match[1] or None, head[match.end() :]
            segments += readers.get(mark, self.text)(start, stop, head)
        return {"agent": agent, "segments": match_results(segments)}

    def broken(self, marker: str, at: int, below: int, choice: str | None = None) -> Tree:
        """Problems: an unreadable block, with its unchanged text."""
        rows = [(at, self.lines[at]), *sorted(self.content(at + 1, below))]
        text = "\n".join(line for _, line in rows).rstrip(" \t\n")
        place = {"line": at + 1, "end_line": below}
        return {"kind": "broken", "text": text, "choice": choice, "marker": marker} | place

    def thinking(self, at: int, end: int, head: str) -> list[Tree]:
        """Thinking: a bracket, and a block quote that begins on the next line."""
        quote = list(itertools.takewhile(lambda line: line[:1] == ">", self.lines[at + 1 : end]))
        quote = list(itertools.takewhile(lambda line: not line.startswith(PROMPT), quote))
        below, match = at + 1 + len(quote), THINKING.fullmatch(head.rstrip(ENDS))
        if not match or (match[3] and quote):
            return [self.broken("thinking", at, below), *self.text(below - 1, end)]
        text = (
            "\n".join(line[2:] if line[1:2] == " " else line[1:] for line in quote)
            if quote
            else None
        )
        thinking = {
            "kind": "thinking",
            "provider": match[1],
            "model": match[2],
            "redacted": bool(match[3]),
        }
        thinking |= {
            "signature": match[4] or match[5] or "",
            "text": text,
            "line": at + 1,
            "end_line": below,
        }
        return [thinking, *self.text(below - 1, end)]

    def proposal(self, at: int, end: int, head: str) -> list[Tree]:
        """Proposals: the choice in brackets, if there is one, and the call."""
        match = CHOICE.match(head)
        choice = match[1] if match and match[1] in CHOICES else None
        ran_by = match[1] if match and match[1] in RUNNERS else None
        proposal = {"kind": "proposal", "choice": choice, "ran_by": ran_by}
        proposal |= {"result": None, "task": None}
        try:
            call = read_call(match[2].strip(ENDS).strip("`") if match else "")
            proposal |= {"call": call, "line": at + 1, "end_line": at + 1}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            proposal = self.broken("proposal", at, at + 1, choice)
        return [proposal, *self.text(at, end)]

    def result(self, at: int, end: int, head: str) -> list[Tree]:
        """Results: tool and call, status, attachments, and a body. `match_results` finds the
        call.
        """
        stop = next((number for number in range(at + 1, end) if sign(self.lines[number])), end)
        body, below = self.body(at + 1, stop)
        match, broken = RESULT.fullmatch(head), self.broken("result", at, below)
        links = match[4].rstrip(ENDS) if match else ""
        if not match or LINK.sub("", links) or (match[3] == "pending" and links):
            return [broken, *self.text(below - 1, end)]
        targets = [(link[1] or link[3] or "", link[2] or link[4]) for link in LINK.finditer(links)]
        attachments = [
            {"kind": "attachment", "label": label, "path": path} for label, path in targets
        ]
        place = {"line": at + 1, "end_line": below}
        result = place | {"status": match[3] or "ok", "body": body, "attachments": attachments}
        if match[3] == "pending":
            lines = [line for _, line in trim(sorted(self.content(at + 1, below)))]
            task = TASK.fullmatch(lines[0]) if len(lines) == 1 else None
            result = broken | {"task": place | {"id": task[1]} if task else None}
        name = re.sub("[^A-Za-z0-9_.-]", "_", match[1]) or "_"
        orphan = place | {"kind": "orphan", "name": name, "id": match[2], "result": result}
        return [orphan, *self.text(below - 1, end)]

    def body(self, at: int, end: int) -> tuple[str, int]:
        """The body of a result, and the line below it: a fence, a quote, or the first paragraph."""
        rows = trim(sorted(self.content(at, end)))
        if not rows:
            return "", at
        if fence := FENCE.fullmatch(rows[0][1]):
            lines = list(
                itertools.takewhile(lambda row: row[1].rstrip(" \t") != fence[1], rows[1:])
            )
            text = "\n".join(line for _, line in lines)
            is_open = len(lines) == len(rows) - 1
            return (text, end) if is_open else (text, rows[len(lines) + 1][0] + 1)
        if (quote := QUOTE.fullmatch(rows[0][1])) and quote[1] not in quote[2]:
            return quote[2], rows[0][0] + 1
        rows = list(itertools.takewhile(lambda row: row[1].strip(" \t"), rows))
        return "\n".join(line for _, line in rows), rows[-1][0] + 1


def trim(rows: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The rows without the blank lines around them; blank lines have only spaces and tabs."""
    full = [place for place, (_, line) in enumerate(rows) if line.strip(" \t")]
    return rows[full[0] : full[-1] + 1] if full else []


def match_results(segments: list[Tree]) -> list[Tree]:
    """Results and rounds: each result is moved to its call, if it has a call."""
    whole: list[Tree] = []
    calls: list[Tree] = []  # the calls of the round
    numbers: list[int] = []  # the indices of the round's calls
    is_asked = False  # whether the user decides on a call of the round
    for segment in segments:
        kind = segment["kind"]
        if kind == "orphan":
            above = [part for part in whole if part["kind"] != "note"][-1:]
            known = [*above, *calls] if above and above[0]["kind"] == "proposal" else calls
            mine = [
                call for call in known if call["call"]["id"] == segment["id"] and not call["result"]
            ]
            place_result(segment, mine, whole)
        else:
            whole.append(segment)
        is_ran = kind == "proposal" and segment["ran_by"]
        if is_ran or kind in ("text", "thinking"):
            calls, numbers, is_asked = ([], [], False) if is_asked else (calls, numbers, False)
            calls = [*calls, segment] if is_ran else calls
        elif kind == "proposal":
            index = segment["call"]["index"]
            is_first = numbers and index is not None and index <= numbers[-1]
            calls, is_asked = [segment] if is_first else [*calls, segment], True
            numbers = [*numbers, *([] if index is None else [index])]
        elif kind == "broken" and segment["marker"] == "proposal":
            is_asked = True
    return whole


def place_result(orphan: Tree, calls: list[Tree], whole: list[Tree]) -> None:
    """Results: add a result, or a pending result's task, to the first call, or keep it separate."""
    result = orphan["result"]
    if "task" not in result:
        if calls:
            calls[0]["result"] = result
        else:
            whole.append(orphan)
        return
    task = result.pop("task")
    if task and calls and not calls[0]["task"]:
        calls[0]["task"] = task
    else:
        whole.append(result)


if __name__ == "__main__":
    json.dump(Reader(Path(sys.argv[1]).read_bytes()).tree(), sys.stdout, indent=2)
