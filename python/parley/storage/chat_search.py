"""Searches chats for words, tags and folders, newest first. Does not know how chats are shown."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from parley.chat.grammar import marker_of
from parley.errors import ParleyError
from parley.frozen import frozen
from parley.storage.content import opening
from parley.storage.known_chats import ChatCensus, KnownChat

SEARCH_S = 10.0
"""The maximum number of seconds for a search in texts; a modern disk reads some 10,000 chats in
this time."""
_MOST_TEXT = 4_000_000
"""The maximum number of bytes to read from a chat, because tool results may be very long."""
_LINE = 100
_BEFORE = 30
"""How many characters of a long line to keep before the word."""
_STARTS = ("/", "~/", "./", "../")


@frozen
class ChatMatch:
    """A chat that was found; in a search for words, with the found line (from 1) and its text."""

    chat: KnownChat
    line: int = 0
    text: str = ""


@frozen
class FoundChats:
    """The chats that a search has found, newest first, and whether it ended early."""

    matches: Sequence[ChatMatch]
    is_cut: bool = False
    """Whether there are more chats than the caller's limit."""
    not_searched: float | None = None
    """If the search took too long, the time of the newest chat that was not searched."""
    silent: Sequence[Path] = ()
    """The folders that did not reply."""


@frozen
class _Query:
    """What a chat has to have: all tags, a place in all folders, and all words in its text."""

    tags: frozenset[str]
    folders: tuple[Path, ...]
    words: tuple[str, ...]

    def selects(self, chat: KnownChat) -> bool:
        """Whether a chat has the tags and is in the folders."""
        return self.tags <= {tag.casefold() for tag in chat.heading.tags} and all(
            chat.path.is_relative_to(folder) for folder in self.folders
        )


def search(
    census: ChatCensus,
    words: str,
    most: int | None,
    working_folder: Path,
    now: Callable[[], float] = time.monotonic,
) -> FoundChats:
    """The known chats that contain all words (ignoring case), at most so many.

    `#tag` selects the chats with this tag, if any chat has it. A folder, such as `./` or `~/notes/`,
    selects the chats in it and below.
    """
    query, end = _query(census, words, working_folder), now() + SEARCH_S
    matches = list[ChatMatch]()
    is_narrow = query.tags or query.folders
    for chat in filter(query.selects, census.chats) if is_narrow else census.chats:
        if len(matches) == most:
            return FoundChats(matches, is_cut=True, silent=census.silent)
        if not query.words:
            matches.append(ChatMatch(chat))
        elif now() > end:
            return FoundChats(matches, not_searched=chat.changed, silent=census.silent)
        elif match := _match(chat, query.words):
            matches.append(match)
    return FoundChats(matches, silent=census.silent)


def starting_with(census: ChatCensus, start: str, most: int) -> list[Path]:
    """The newest chats whose path, or whose file name, starts with a text."""
    home = os.path.expanduser("~")  # noqa: PTH111 - unlike `Path.home`, does not raise
    whole = f"{home}{start[1:]}" if start.startswith("~/") else start
    paths = (
        chat.path
        for chat in census.chats
        if chat.file.startswith(whole) or chat.file.rpartition("/")[2].startswith(start)
    )
    return [path for path, _ in zip(paths, range(most), strict=False)] if start else []


def _query(census: ChatCensus, text: str, working_folder: Path) -> _Query:
    known = _tags(census) if "#" in text else set()
    tags, folders, words = set[str](), list[Path](), list[str]()
    for word in text.split():
        if word.startswith("#") and word[1:].casefold() in known:
            tags.add(word[1:].casefold())
        elif word.startswith(_STARTS) and word.endswith("/"):
            place = os.path.expanduser(word)  # noqa: PTH111 - an unknown home must not raise
            folders.append(Path(os.path.realpath(working_folder / place)))
        else:
            words.append(word.casefold())
    return _Query(frozenset(tags), tuple(folders), tuple(words))


def _tags(census: ChatCensus) -> set[str]:
    return {tag.casefold() for chat in census.chats for tag in chat.heading.tags}


def _match(chat: KnownChat, words: Sequence[str]) -> ChatMatch | None:
    """The line that contains all words, or else the first word; None if a word is missing."""
    try:
        text = opening(chat.path, _MOST_TEXT).decode("utf-8", "replace")
    except ParleyError:
        return None
    folded = text.casefold()
    if not all(word in folded for word in words):
        return None
    lines = text.split("\n")
    numbers = [number for number, line in enumerate(lines) if words[0] in line.casefold()]
    whole = (n for n in numbers if all(word in lines[n].casefold() for word in words))
    number = next(whole, numbers[0] if numbers else 0)
    return ChatMatch(chat, number + 1, _excerpt(lines[number], words[0]))


def _excerpt(line: str, word: str) -> str:
    """The part of a line around a word, without the line's marker."""
    marker = marker_of(line)
    text = " ".join(line[marker[1] if marker else 0 :].split())
    start = max(0, text.casefold().find(word) - _BEFORE) if len(text) > _LINE else 0
    end = start + _LINE
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
