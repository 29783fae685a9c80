"""Finds the chats in a folder, newest first: all chats, or only chats that contain some words.

Run it in a thread, because reading files takes time. Does not know how a list is shown.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.chat.front_matter import own_topic, topic
from parley.chat.grammar import marker_of
from parley.chat.reader import parse
from parley.display.summary import shown_line
from parley.errors import ParleyError
from parley.nvim.editor import Editor
from parley.storage.chats import newest_first
from parley.storage.content import opening

MOST_FOUND = 500
MOST_MATCHES = 200
PATIENCE_S = 10.0
"""The most seconds for a search; a modern disk reads some 10,000 chats in this time."""
_HEAD = 8192
_LONG_HEAD = 262_144
"""The most bytes in which to look for a question's first words, because quoted lines may precede
the question.
"""
_MOST_TEXT = 4_000_000
"""The most bytes to read from a chat, because tool results may be very long."""
_TOPIC = 80
_LINE = 100
_BEFORE = 30
"""How many characters of a long line to show before the word."""


@dataclass(frozen=True, slots=True)
class ChatList:
    """A list of chats, and a note for the user about chats that were left out ("" if there are
    none).
    """

    rows: list[dict[str, Any]]
    """Each is `{path, when, topic}`; in a search, also the found `line` (from 1) and its `text`."""
    note: str = ""


def find_chats(
    folder: Path, words: str = "", now: Callable[[], float] = time.monotonic
) -> ChatList:
    """The chats in a folder that contain a question and all words (ignoring case), newest first.

    Only files are included; for an unreadable file, the topic is the reason.
    """
    parts = words.casefold().split()
    most, end = MOST_MATCHES if parts else MOST_FOUND, now() + PATIENCE_S
    rows = list[dict[str, Any]]()
    for changed, path in newest_first(folder):
        if len(rows) == most:
            return ChatList(rows, f"the newest {most}; {_narrower(parts)}")
        if parts and now() > end:
            return ChatList(
                rows,
                f"the search took too long: chats changed at or before {_when(changed)} are missing",
            )
        where = _place(path, parts) if parts else {}
        if where is not None and (subject := _topic_of(path)):
            rows.append({"path": str(path), "when": _when(changed), "topic": subject, **where})
    return ChatList(rows)


def _narrower(words: Sequence[str]) -> str:
    return "more words narrow the list" if words else ":ParleyFind {words} searches all"


def _when(changed: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(changed))


def _topic_of(path: Path) -> str:
    try:
        chat = parse(opening(path, _HEAD).decode("utf-8", "replace"))
        if not own_topic(chat) and path.stat().st_size > _HEAD:
            chat = parse(opening(path, _LONG_HEAD).decode("utf-8", "replace"))
    except (ParleyError, OSError) as error:
        return shown_line(str(error))
    return shown_line(topic(chat)[:_TOPIC], None)


async def offer_chats(editor: Editor, folder: str, words: str) -> None:
    """Let the user pick a chat that contains all of these words, from a folder."""
    chats = await asyncio.to_thread(find_chats, Path(folder), words)
    if chats.rows:
        editor.tell("pick_chat", chats.rows, chats.note)
    elif words:
        editor.message(f"no chat in {folder} contains all of these words: {words}", "warn")
    else:
        editor.message(f"there are no chats in {folder}: :ParleyChatNew creates one")


def _place(path: Path, words: Sequence[str]) -> dict[str, Any] | None:
    """The line that contains all words, or else the first word; None if a word is missing."""
    try:
        text = opening(path, _MOST_TEXT).decode("utf-8", "replace")
    except ParleyError:
        return None
    folded = text.casefold()
    if not all(word in folded for word in words):
        return None
    lines = text.split("\n")
    numbers = [number for number, line in enumerate(lines) if words[0] in line.casefold()]
    whole = (n for n in numbers if all(word in lines[n].casefold() for word in words))
    number = next(whole, numbers[0] if numbers else 0)
    return {"line": number + 1, "text": _excerpt(lines[number], words[0])}


def _excerpt(line: str, word: str) -> str:
    """The part of a line around a word, without the line's marker."""
    marker = marker_of(line)
    text = " ".join(line[marker[1] if marker else 0 :].split())
    start = max(0, text.casefold().find(word) - _BEFORE) if len(text) > _LINE else 0
    end = start + _LINE
    return (
        ("…" if start else "")
        + shown_line(text[start:end], None)
        + ("…" if end < len(text) else "")
    )
