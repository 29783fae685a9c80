"""The texts of pages: a request, a project's servers, the ledger.

Pure, except for writing an HTML page. Knows lines of text and Markdown, but not windows.
"""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from parley.chat.transcript import Transcript
from parley.conversion import html_page
from parley.display.offered_text_rows import HIDDEN_SHOWN, has_hidden, offered_text_rows
from parley.display.summary import legible_line
from parley.errors import ParleyError
from parley.late_patterns import late_pattern
from parley.models.request import Request, instruction_tokens
from parley.policy.approval import Entry
from parley.runtime.totals import Record, deleted_note, totals, totals_table
from parley.storage.attachment_files import ChatAttachments
from parley.storage.text_trust import OfferedText
from parley.storage.trust import findings
from parley.text import contained, counted, legible
from parley.tools.descriptions import described
from parley.tools.mcp_files import ServersFile, project_of
from parley.tools.visits import Visit

THE_FILE = "## The file"
"""The heading above the file's text on a project's page."""
_WIDTH = 78
_SHOWN_OF_BYTES = 60
_DATA_URL = late_pattern(r"data:[a-z]+/[a-z]+;base64,[A-Za-z0-9+/]+=*")
_FACT = 8
"""The least width of the names of a request's facts."""
_NAME, _ID = 24, 8
"""The widths of two columns: for a name, and for the end of a call's id."""


def request_page(
    request: Request,
    agent: str,
    url: str,
    body: Mapping[str, Any],
    offered: Sequence[OfferedText] = (),
) -> list[str]:
    """A request's body as JSON, below comments with its agent, tools and instructions.

    `offered` are the project's instructions that are not sent, because the user has not agreed.
    """
    tools = [wire for wire, _ in request.catalogue.in_full] if request.offers_tools else []
    in_words = " in words" if request.text_tools and request.text_tools.syntax else ""
    left = len(request.catalogue.names_only) if request.offers_tools else 0
    names_only = f"; and the names of {counted(left, 'more tool')}" if left else ""
    window = request.reach
    left_out = [f"{each.name} (not sent: you have not agreed to it)" for each in offered]
    texts = [f"{name} ({about})" for name, about in instruction_tokens(request)]
    facts = {
        "agent": f"{agent}: {request.model} of {request.provider}",
        "URL": url,
        "tools": f"{len(tools)}{in_words}{': ' if tools else ''}{', '.join(tools)}{names_only}",
        **({"instructions": ", ".join((*texts, *left_out))} if texts or left_out else {}),
        "tokens": f"about {request.tokens():,} (estimated); the model accepts {window:,}",
    }
    width = max(_FACT, *(len(name) + 1 for name in facts))
    head = [line for name, fact in facts.items() for line in _comment(f"{name:<{width}}", fact)]
    return [*head, *json.dumps(_without_bytes(body), indent=2, ensure_ascii=False).split("\n")]


def _without_bytes(value: object) -> object:
    """JSON without the bytes of pictures, because their lines would be megabytes long."""
    match value:
        case {"type": "base64", "data": str(data), **rest}:
            return {"type": "base64", **rest, "data": _cut(data)}
        case str() if value.startswith("data:") and _DATA_URL.fullmatch(value):
            return _cut(value)
        case Mapping():
            return {key: _without_bytes(inner) for key, inner in value.items()}
        case list():
            return [_without_bytes(inner) for inner in value]
        case _:
            return value


def _cut(data: str) -> str:
    more = len(data) - _SHOWN_OF_BYTES
    return f"{data[:_SHOWN_OF_BYTES]}… ({more:,} more characters)" if more > 0 else data


def _comment(name: str, fact: str) -> list[str]:
    start = f"// {name}"
    return textwrap.wrap(
        legible_line(fact),
        _WIDTH,
        initial_indent=start,
        subsequent_indent="//".ljust(len(start)),
        break_on_hyphens=False,
    )


def project_page(path: Path, content: bytes, file: ServersFile) -> list[str]:
    """Everything that a project's file would do, and its text, without hidden characters."""
    folder = project_of(path)
    lines = [f"# {legible_line(str(path))}", "This file came with the project. Its servers:"]
    for name, server in file.servers.items():
        facts = described(server, findings(server, folder))
        lines += ["", f"## {legible_line(name)}", *(f"- {_whole_line(fact)}" for fact in facts)]
    if file.problems:
        lines += ["", *(f"- {legible_line(problem)}" for problem in file.problems)]
    text = content.decode("utf-8", "replace").split("\n")
    return [*lines, "", THE_FILE, "", "```json", *map(_whole_line, text), "```"]


def offered_text_page(offered: OfferedText, before: str | None) -> list[str]:
    """A project's text for the user's agreement; if the user agreed to the text `before`, the diff
    to it.
    """
    text = offered.content.decode("utf-8", "replace")
    rows = ["".join(chunk[0] for chunk in row) for row in offered_text_rows(text, before)]
    return [
        f"# {legible_line(offered.name)}",
        offered.effect,
        *([HIDDEN_SHOWN] if has_hidden(text) else []),
        "",
        "```text" if before is None else "```diff",
        *rows,
        "```",
    ]


def _whole_line(text: str) -> str:
    """A complete text on one line, without hidden characters."""
    return contained(legible(text))


def visit_page(server: str, page: Visit) -> list[str]:
    """The text about an address that a server wants to open: the server, the whole address, and
    the server's message.
    """
    plain = "! Others can read your data in transit because the address does not begin with https."
    return [
        f"# {legible_line(server)} asks you to open a page",
        "",
        f"Host: {legible_line(page.host)}",
        "",
        f"Address: {legible(page.url)}",
        *(["", plain] if page.is_open else []),
        "",
        f"The server says: {legible_line(page.message)}",
        "",
        "Anything you enter there goes directly to that host, not through Parley.",
    ]


def address_page(name: str, page: Visit) -> list[str]:
    """The text about a sign-in that waits for the user's browser."""
    command = f"`:ParleyLogin {legible_line(name)}`"
    return [
        f"# Sign in to {legible_line(name)} at {legible_line(page.host)}",
        "",
        legible(page.url),
        "",
        "If no browser opens this page, open it yourself. If the last page does not load,",
        f"http://localhost…, paste its address after {command}.",
        f"{command} alone cancels.",
    ]


def log_page(
    chat: str,
    history: Sequence[Record],
    entries: Iterable[Entry],
    deleted_until: float | None = None,
) -> list[str]:
    """Unused approvals; a chat's decisions, calls and requests, newest first; and totals.

    `deleted_until` is the time of the newest record that was deleted, if any was.
    """
    live = [
        f"- `{e.choice}` by {e.rule}: {legible_line(f'{e.key.server}/{e.key.tool}')}"
        f" `{legible_line(e.key.arguments)}`"
        for e in entries
        if e.state == "live"
    ]
    waiting = ["", "## Approved, not run yet", "", *live] if live else []
    head = [f"# Log of {legible_line(chat)}", *waiting]
    below = [] if deleted_until is None else ["", deleted_note(deleted_until)]
    if not history:
        return [*head, *(below or ["", "No decisions or requests yet."])]
    days = groupby(reversed(history), lambda record: _time(record[0])[:10])
    rows = [line for day, records in days for line in _day(day, list(records))]
    added = map(legible_line, totals_table(totals(history)))
    return [*head, *rows, *below, "", "## Totals", "", *added]


def _day(day: str, records: Sequence[Record]) -> list[str]:
    """One day's records in columns: time, kind, tool or model, call, and outcome."""
    rows = [(_time(at)[11:], *_row(kind, facts)) for at, kind, facts in records]
    columns = list(zip(*((row[:-1]) for row in rows), strict=True))
    widths = [max(map(len, column)) for column in columns]
    lines = ["", f"## {day}", ""]
    for when, what, name, call, fact in rows:
        cells = (
            when,
            what,
            name,
            *([call] if call else []),
        )  # records without a call also have this column
        start = "".join(f"{cell:<{width}}  " for cell, width in zip(cells, widths, strict=False))
        lines += textwrap.wrap(
            fact,
            max(_WIDTH, len(start) + 20),
            initial_indent=start,
            subsequent_indent=" " * len(start),
        ) or [start.rstrip()]
    return lines


def _row(kind: str, facts: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """A record's kind, tool or model, call, and outcome."""
    if kind == "request":
        purpose = f"for the {facts['for']}, " if "for" in facts else ""
        tokens = "".join(f", {n} {name}" for name, n in facts["tokens"].items() if n)
        went = f"{facts['outcome']}, {facts['seconds']:.1f} s{tokens}"
        return kind, _short(facts["model"]), "", legible_line(purpose + went)
    call = facts["call"]
    about = _short(facts["tool"]), legible_line(call if len(call) <= _ID else "…" + call[1 - _ID :])
    rule = facts.get("rule")
    match kind:
        case "call":
            went = f"{facts['outcome']}, {facts['seconds']:.1f} s, {facts['bytes']} B"
            by = f"by the {facts['ran_by']}" if "ran_by" in facts else rule and f"by {rule}"
            return "ran", *about, legible_line(f"{went}, {by}" if by else went)
        case "decided":
            return facts["choice"], *about, legible_line(facts.get("because") or f"by {rule}")
        case "reverted" | "repeated":
            return kind, *about, legible_line(facts["path"])
        case _:
            return kind, *about, legible_line(facts.get("because", ""))


def _short(name: str) -> str:
    """A tool's or model's name, cut to the width of its column."""
    return legible_line(name if len(name) <= _NAME else name[: _NAME - 1] + "…")


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def write_page(
    transcript: Transcript, attachments: ChatAttachments, path: Path, force: bool
) -> None:
    """Write a chat as a single HTML page. Raises ParleyError."""
    try:
        if not (force and path.exists()):  # an existing file keeps its mode
            path.touch(mode=0o600, exist_ok=force)
        with path.open("w", encoding="utf-8", errors="replace") as file:
            file.write(html_page(transcript, path.stem, attachments.pictures(transcript)))
    except FileExistsError as error:
        raise ParleyError(f"{path} already exists. :ParleyExport! overwrites it") from error
    except OSError as error:
        raise ParleyError(f"cannot write {path}: {error.strerror}") from error
