"""`:ParleyFind`: lists the known chats, newest first: all chats, or those that contain some words.

The search runs in a thread, because it reads files. Does not know how a list is shown.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parley.display.chat_rows import chat_row, left_out
from parley.display.summary import shown_line
from parley.frozen import frozen
from parley.nvim.editor import Editor
from parley.storage.chat_search import ChatMatch, FoundChats, search
from parley.storage.known_chats import known_chats
from parley.storage.ledger import shell_ledger

MOST_FOUND = 500
MOST_MATCHES = 200
_SLOW_S = 0.7
"""After this time, Parley tells the user that the search is running."""


@frozen
class ChatList:
    """A list of chats, and a note for the user about the list ("" if there is none)."""

    rows: list[dict[str, Any]]
    """Each is `{path, when, topic, details}`; in a search, also the found `line` (from 1) and its
    `text`.
    """
    note: str = ""


def find_chats(folder: Path, words: str, environ: Mapping[str, str], cwd: Path) -> ChatList:
    """The known chats that contain a question and all words, newest first."""
    with shell_ledger(environ) as ledger:
        census = known_chats(ledger, folder)
    most = MOST_MATCHES if words.split() else MOST_FOUND
    outcome = search(census, words, most, cwd)
    home = environ.get("HOME", "")
    return ChatList(
        [_row(match, home, str(folder)) for match in outcome.matches],
        "; ".join(_notes(outcome, words, most)),
    )


def _notes(outcome: FoundChats, words: str, most: int) -> list[str]:
    more = "more words narrow the list" if words.split() else ":ParleyFind {words} searches all"
    newest = [f"the newest {most}; {more}"] if outcome.is_cut else []
    return [*newest, *left_out(outcome.not_searched, tuple(map(str, outcome.silent)))]


def _row(match: ChatMatch, home: str, folder: str) -> dict[str, Any]:
    chat = match.chat
    row = chat_row(chat.file, chat.changed, chat.heading, chat.problem, home, folder)
    shown = {"path": chat.file, "when": row.when, "topic": row.topic, "details": row.details}
    if not match.line:
        return shown
    return {**shown, "line": match.line, "text": shown_line(match.text, None)}


async def offer_chats(editor: Editor, folder: str, words: str, cwd: Path) -> None:
    """Let the user pick a chat that contains all of these words."""
    finding = asyncio.ensure_future(
        asyncio.to_thread(find_chats, Path(folder), words, os.environ, cwd)
    )
    done, _ = await asyncio.wait([finding], timeout=_SLOW_S)
    if not done:
        editor.message("searching the chats ...")
    chats = await finding
    if chats.rows:
        editor.tell("pick_chat", chats.rows, chats.note)
    elif words:
        editor.message(f"no chat contains all of these words: {words}{_because(chats)}", "warn")
    else:
        editor.message(f"there are no chats. :ParleyChatNew creates one{_because(chats)}")


def _because(chats: ChatList) -> str:
    return f" ({chats.note})" if chats.note else ""
