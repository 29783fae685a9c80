"""The texts of the pages beside a chat: a request, a project's servers, the ledger, the chats there are.

Pure, but for the files of chats. Knows lines of text and Markdown; knows nothing of windows.
"""

from __future__ import annotations

import json
import shlex
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from parley.chat.front_matter import topic
from parley.chat.reader import parse
from parley.chat.transcript import Transcript
from parley.errors import ParleyError
from parley.export import html_page
from parley.nvim.summary import legible_line
from parley.policy.approval import Entry
from parley.runtime.totals import Record, totals, totals_table
from parley.storage.chat_file import opening
from parley.storage.trust import programs
from parley.text import legible
from parley.tools.mcp_files import ServersFile
from parley.tools.servers import ServerSettings

_HEAD = 8192
_TOPIC = 80


def request_page(body: dict[str, Any]) -> list[str]:
    """A request's body as JSON."""
    return json.dumps(body, indent=2, ensure_ascii=False).split("\n")


def project_page(path: Path, content: bytes, file: ServersFile) -> list[str]:
    """The servers that a project's file would start, and the file itself; in both nothing hides."""
    lines = [
        f"# {legible_line(str(path))}",
        "",
        "This file came with the project. These are the servers in it:",
    ]
    for name, server in file.servers.items():
        lines += ["", f"## {legible_line(name)}", "", *_reached(server)]
        if server.variables:
            lines.append(f"- **is given your variables {legible_line(', '.join(server.variables))}**")
    if paths := programs(file, path.parent):
        names = ", ".join(legible_line(str(program)) for program in paths)
        lines += ["", f"**Programs of the project: {names}.** Whoever changes them changes what runs."]
    if file.problems:
        lines += ["", *(f"- {legible_line(problem)}" for problem in file.problems)]
    text = content.decode("utf-8", "replace").split("\n")
    return [*lines, "", "## The file", "", "```json", *(legible(line) for line in text), "```"]


def _reached(server: ServerSettings) -> list[str]:
    if server.url is not None:
        return [f"- connects to {legible_line(server.url)}", *_names("sends the headers", server.headers)]
    words = shlex.join((server.command or "", *server.args))
    return [
        f"- starts the program {legible(words)}",
        f"- in {legible_line(server.cwd or '.')}",
        *_names("sets the variables", server.env),
    ]


def _names(what: str, table: Mapping[str, str]) -> list[str]:
    return [f"- {what} {legible_line(', '.join(table))}"] if table else []


def log_page(chat: str, history: Sequence[Record], entries: Iterable[Entry]) -> list[str]:
    """Decisions, runs and requests of a chat, in order; which yeses wait to be used; the totals."""
    rows = [f"- {_time(at)} {kind}: {legible_line(_facts(facts))}" for at, kind, facts in history]
    live = [
        f"- `{e.choice}` by {e.rule}: {legible_line(f'{e.key.server}/{e.key.tool}')}"
        f" `{legible_line(e.key.arguments)}`"
        for e in entries
        if e.state == "live"
    ]
    waiting = ["", "## Approved, not run yet", "", *live] if live else []
    if not rows:
        return [f"# Log of {chat}", "", "Nothing was decided or asked here yet.", *waiting]
    added = map(legible_line, totals_table(totals(history)))
    return [f"# Log of {chat}", "", *rows, *waiting, "", "## Totals", "", *added]


def _facts(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {text}" for name, value in facts.items() if (text := _fact(value)))


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{count} {name}" for name, count in value.items() if count)
    return "" if value is None else str(value)


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def chats_in(folder: Path) -> list[dict[str, str]]:
    """The chats of a folder, newest first, each with its topic; those that ask nothing are left out.

    So is what is no file; of a file that cannot be read, that is its topic.
    """
    dated = sorted(
        ((changed, path) for path in folder.glob("*.md") if (changed := _changed(path))), reverse=True
    )
    return [
        {"path": str(path), "topic": topic, "when": _time(changed)[:-3]}
        for changed, path in dated
        if (topic := _topic_of(path))
    ]


def _changed(path: Path) -> float | None:
    """The time (seconds since 1970) at which a regular file changed; None for any other, or none."""
    with suppress(OSError):
        status = path.stat()
        return status.st_mtime if stat.S_ISREG(status.st_mode) else None
    return None


def _topic_of(path: Path) -> str:
    try:
        head = opening(path, _HEAD).decode("utf-8", "replace")
    except ParleyError as error:
        return legible_line(str(error))
    return legible_line(topic(parse(head))[:_TOPIC])


def write_page(transcript: Transcript, path: Path, force: bool) -> None:
    """Write a chat as one HTML page. Raises ParleyError."""
    try:
        if not (force and path.exists()):  # shared by a chmod, which then holds
            path.touch(mode=0o600, exist_ok=force)
        with path.open("w", encoding="utf-8", errors="replace") as file:
            file.write(html_page(transcript, path.stem))
    except FileExistsError as error:
        raise ParleyError(f"{path} is there already: :ParleyExport! overwrites it") from error
    except OSError as error:
        raise ParleyError(f"cannot write {path}: {error.strerror}") from error
