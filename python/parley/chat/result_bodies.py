"""A tool's result as lines in a chat file: `🛠️: [name][id]`, a blank line, and a closed body."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from parley.chat.attachments import LINKS, link, read_links
from parley.chat.grammar import MARKERS, escape
from parley.chat.transcript import (
    BLANK,
    CALL_ID,
    SPACING,
    Attachment,
    Result,
    ServerTask,
    Status,
    is_blank,
)
from parley.late_patterns import late_pattern

_HEADER = late_pattern(
    rf"[{SPACING}]*\[(?P<name>[^\]]*)\][{SPACING}]*\[(?P<id>{CALL_ID.pattern})\]"
    rf"(?:[{SPACING}]*\[(?P<status>error|refused|pending)\])?(?P<links>{LINKS})[{SPACING}\r]*"
)
_FENCE = late_pattern(r"(?P<ticks>`{3,})[^`]*")


def header_name(name: str) -> str:
    """A tool's name in a result header: always one word."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name) or "_"


def result_header(name: str, call_id: str, result: Result) -> str:
    """A result's header line."""
    status = "" if result.status == "ok" else f"[{result.status}]"
    return " ".join([_head(name, call_id, status), *map(link, result.attachments)])


def _head(name: str, call_id: str, status: str) -> str:
    return f"{MARKERS['result']} [{header_name(name)}][{call_id}]{status}"


def task_lines(name: str, call_id: str, task: ServerTask) -> list[str]:
    """The lines that replace a result while its call runs as a task."""
    return [_head(name, call_id, "[pending]"), "", *quote_body(task.id)]


def read_header(
    content: str,
) -> tuple[str, str, Status | Literal["pending"], tuple[Attachment, ...]] | None:
    """Read the name, call id, status and attachments from a result header's text after the marker.

    None if the header is unreadable. The body of a pending result is a task id.
    """
    if not (header := _HEADER.fullmatch(content)):
        return None
    status: Status | Literal["pending"] = "ok"
    match header["status"]:
        case "error" | "refused" | "pending" as word:
            status = word
    return header_name(header["name"]), header["id"], status, read_links(header["links"])


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def quote_body(body: str) -> list[str]:
    """A result's body as lines whose end is unambiguous, for any content."""
    if body and "\n" not in body and body[0] not in "` " and body[-1] not in "` ":
        ticks = "`" * (_longest_run(body) + 1)
        return [ticks + body + ticks]
    ticks = "`" * max(3, _longest_run(body) + 1)
    return [ticks, *(escape(body) if body else []), ticks]


def read_body(lines: Sequence[str]) -> tuple[str, int, str | None]:
    """The body in `lines`, the number of lines up to the body's end, and the problem, if there is
    one.

    `lines` ends before the next marker, and is already unescaped.
    """
    start = next((i for i, line in enumerate(lines) if not is_blank(line)), None)
    if start is None:
        return "", 0, "this result has no body"
    first = lines[start].rstrip(BLANK)
    if fence := _FENCE.fullmatch(first):
        return _read_fence(lines, start, fence["ticks"])
    if span := _read_span(first):
        return span, start + 1, None
    end = next((i for i in range(start, len(lines)) if is_blank(lines[i])), len(lines))
    return "\n".join(lines[start:end]), end, None


def _read_span(line: str) -> str | None:
    """The text between equal runs of backticks, if all runs inside are shorter; otherwise None."""
    ticks = len(line) - len(line.lstrip("`"))
    body = line[ticks : len(line) - ticks]
    closed = body and len(line) - len(line.rstrip("`")) == ticks
    return body if closed and _longest_run(body) < ticks else None


def _read_fence(lines: Sequence[str], start: int, ticks: str) -> tuple[str, int, str | None]:
    for end in range(start + 1, len(lines)):
        if lines[end].rstrip(BLANK) == ticks:
            return "\n".join(lines[start + 1 : end]), end + 1, None
    last = max(number for number, line in enumerate(lines) if not is_blank(line))
    return (
        "\n".join(lines[start + 1 : last + 1]),
        len(lines),
        f"no {ticks} line closes this result's fence",
    )


def ending(lines: Sequence[str]) -> list[str]:
    """The lines that separate an unclosed body from the text that follows; usually none."""
    _, _, trouble = read_body(lines)
    if trouble is None:
        return []
    fence = next((line.rstrip(BLANK) for line in lines if not is_blank(line)), None)
    return ["", "```", "```"] if fence is None else [fence[: len(fence) - len(fence.lstrip("`"))]]


def result_lines(name: str, call_id: str, result: Result) -> list[str]:
    """A result with its header, as lines in the file."""
    return [result_header(name, call_id, result), "", *quote_body(result.body)]
