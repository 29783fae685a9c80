"""Writes copies of a chat: a fork next to it, or a page for reading.

Knows when a copy may be written; `chat.fork` and `export` know its text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from parley.chat.fork import fork_lines
from parley.errors import ParleyError
from parley.nvim.chat import Chat
from parley.nvim.document import BufferDocument
from parley.nvim.pages import write_page
from parley.storage.content import encoded
from parley.storage.forks import fork_paths, own_path, write_new


async def export_chat(chat: Chat, path: Path, force: bool) -> None:
    """Write the chat as a page; overwrite a file only with `force`. Raises ParleyError."""
    await chat.turns.refresh()
    buffer = chat.buffer
    attachments = buffer.app.attachments(buffer.path)
    await asyncio.to_thread(write_page, buffer.transcript, attachments, path, force)
    buffer.editor.message(f"written to {path}")


async def fork_chat(chat: Chat, handle: int, row: int, newline: str) -> None:
    """Copy the chat, up to the exchange at a handle, into a new file next to it; open the copy.

    Raises ParleyError.
    """
    buffer = chat.buffer
    if not buffer.name:
        buffer.editor.tell("close", handle)
        raise ParleyError("save this chat first (:w): its fork is created next to it")
    file = own_path(buffer.path)

    async def work(document: BufferDocument) -> None:
        shot = await document.look()
        chat.turns.refuse_if_answering(shot)
        try:
            lines = fork_lines(shot.lines, shot.exchange, file.name)
        except ValueError as error:
            raise ParleyError(str(error)) from error
        buffer.editor.tell(
            "forked", handle, await write_fork(chat, fork_paths(file), lines, newline)
        )

    await buffer.at(handle, row, work)


async def write_fork(chat: Chat, paths: Iterable[Path], lines: Iterable[str], newline: str) -> str:
    """Write a fork's lines into the first free file; returns its path. Raises ParleyError."""
    spelled = (line.replace("\n", "\0") for line in lines)  # a NUL, from Neovim
    content = encoded(newline.join([*spelled, ""]))
    for path in paths:
        # A deleted file with this name may have left decisions in the ledger.
        is_free = not chat.buffer.app.ledger(str(path)).is_known()
        if is_free and await asyncio.to_thread(write_new, path, content):
            return str(path)
    raise AssertionError("there is always another path")
