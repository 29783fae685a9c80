"""The rows of a list of chats, for editor and terminal: time, topic, folder, tags and agent."""

from __future__ import annotations

import time
from collections.abc import Iterator

from parley.chat.heading import ChatHeading
from parley.display.summary import shown_line
from parley.frozen import frozen
from parley.text import counted

_TOPIC = 80
_FOLDER = 28
_TAGS = 3
"""The maximum number of tags in a row."""


@frozen
class ChatRow:
    """The texts of a chat's row, without hidden characters; each may be "", except `when`."""

    when: str
    topic: str
    tags: str
    agent: str
    folder: str

    @property
    def details(self) -> str:
        """The texts after the topic; a narrow window cuts their end."""
        return "  ".join(filter(None, (self.folder, self.tags, self.agent)))


def chat_row(
    file: str, changed: float, heading: ChatHeading, problem: str, home: str, folder: str = ""
) -> ChatRow:
    """The row of a chat; leaves out its folder if that is the chat `folder`."""
    more = len(heading.tags) - _TAGS
    tags = [*(f"#{tag}" for tag in heading.tags[:_TAGS]), *([f"+{more}"] if more > 0 else [])]
    place, _, name = file.rpartition("/")
    subject = f"cannot read {name}: {problem}" if problem else heading.topic[:_TOPIC]
    return ChatRow(
        moment(changed),
        plain_line(subject),
        plain_line(" ".join(tags)),
        plain_line(heading.agent),
        "" if place == folder else plain_line(short_folder(place, home)),
    )


def plain_line(text: str) -> str:
    """Text as `shown_line` shows it; fast, because a list has thousands of plain texts."""
    is_plain = text.isascii() and text.isprintable() and "`" not in text
    return text if is_plain else shown_line(text, None)


def moment(seconds: float) -> str:
    """A time in the user's time zone."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def short_folder(folder: str, home: str, most: int = _FOLDER) -> str:
    """A folder with `~` for the home directory; if it is long, without its first names."""
    if home and home != "/" and (folder == home or folder.startswith(f"{home}/")):
        folder = f"~{folder[len(home) :]}"
    if len(folder) <= most:
        return folder
    end = folder[1 - most :]
    return f"…{end[end.find('/') :]}" if "/" in end else f"…{end}"


def left_out(not_searched: float | None, silent: tuple[str, ...]) -> Iterator[str]:
    """Why a list may lack chats: the search took too long, or folders did not reply."""
    if not_searched is not None:
        when = moment(not_searched)
        yield f"the search took too long: chats changed at or before {when} are missing"
    if silent:
        others = f" and {counted(len(silent) - 1, 'other folder')}" if silent[1:] else ""
        yield f"{shown_line(silent[0])}{others}: no reply from the disk, so these chats are missing"
