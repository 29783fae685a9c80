"""`parley list`: the known chats by folder, newest first, with topic, tags and agent.

Shells complete paths with it, so it imports the code for rows and settings only if it needs them.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from parley.cli.exits import COMPLETE
from parley.cli.terminal import emit, remark, say_line, screen, settings, status_if_slow
from parley.paths import config_path
from parley.storage.chat_search import ChatMatch, FoundChats, search, starting_with
from parley.storage.chats import chat_folder
from parley.storage.known_chats import ChatCensus, known_chats
from parley.storage.ledger import shell_ledger

if TYPE_CHECKING:
    from parley.display.summary import Chunks

MOST_LISTED = 20
"""The default limit for a list that a person reads."""
_MOST_COMPLETED = 100


def list_chats(arguments: argparse.Namespace) -> int:
    """List the chats that Parley knows, by folder, newest first."""
    if arguments.start is not None:
        for path in starting_with(_census(), arguments.start, _MOST_COMPLETED):
            say_line(str(path))
        return COMPLETE
    from parley.display.chat_rows import left_out

    is_for_people = not (arguments.json or arguments.paths)
    most = arguments.most or (MOST_LISTED if is_for_people else None)
    with status_if_slow("searching the chats..."):
        outcome = search(_census(), " ".join(arguments.words), most, Path.cwd())
    if is_for_people:
        _show(outcome)
    else:
        for match in outcome.matches:
            if arguments.json:
                _emit(match)
            else:
                say_line(match.chat.file)
    for text in left_out(outcome.not_searched, tuple(map(str, outcome.silent))):
        remark(text)
    if outcome.is_cut and is_for_people:
        remark(f"these are the newest {most} chats. -n N lists more, and words narrow the list")
    return COMPLETE


def _census() -> ChatCensus:
    has_settings = config_path(os.environ).exists()
    folder = chat_folder(settings().chat_dir if has_settings else None, os.environ)
    with shell_ledger(os.environ) as ledger:
        return known_chats(ledger, folder)


def _emit(match: ChatMatch) -> None:
    chat, heading = match.chat, match.chat.heading
    place = {"line": match.line, "text": match.text} if match.line else {}
    emit(
        "known_chat",
        path=chat.file,
        changed=chat.changed,
        topic=heading.topic,
        tags=list(heading.tags),
        agent=heading.agent,
        problem=chat.problem,
        **place,
    )


def _show(outcome: FoundChats) -> None:
    from parley.display.chat_rows import plain_line, short_folder

    if not outcome.matches:
        say_line("No chats.")
    folders = dict[Path, list[ChatMatch]]()
    for match in outcome.matches:
        folders.setdefault(match.chat.path.parent, []).append(match)
    home = os.environ.get("HOME", "")
    for number, (folder, matches) in enumerate(folders.items()):
        if number:
            say_line("")
        say_line(plain_line(short_folder(str(folder), home, most=screen().width - 1)))
        for match in matches:
            _show_chat(match, home)


def _show_chat(match: ChatMatch, home: str) -> None:
    from parley.display.chat_rows import chat_row, plain_line

    chat = match.chat
    row = chat_row(chat.file, chat.changed, chat.heading, chat.problem, home, str(chat.path.parent))
    name = plain_line(chat.path.name)
    ends = [f"  {text}" for text in (row.tags, row.agent) if text]
    _say_row((f"  {row.when}  {name}", f"  {row.topic}", "".join(ends)))
    if match.line:
        _say_row((f"    {match.line}: ", plain_line(match.text), ""))


def _say_row(parts: tuple[str, str, str]) -> None:
    """Print a row; on a terminal, cut its middle part so that the row fits."""
    first, middle, last = parts
    if screen().is_terminal:
        from parley.cli.terminal_rows import fit

        chunks: Chunks = [(first, ""), (middle, "", ""), (last, "")]
        say_line("".join(chunk[0] for chunk in fit(chunks, screen().width - 1)))
    else:
        say_line(f"{first}{middle}{last}")
