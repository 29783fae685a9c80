"""Sends the new lines of a file from a chat's answer to the editor, which shows them in the file.

Knows the chat and what the editor shows; `policy.rewrites` knows how to ask for the lines, and how
to find them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parley.errors import ParleyError
from parley.nvim.chat_buffer import ChatBuffer
from parley.policy.choice import exchange_at
from parley.policy.rewrites import answer_state, new_lines
from parley.text import visible


async def send_rewrite(buffer: ChatBuffer, rewrite: int, row: int, old: Sequence[str]) -> None:
    """Tell the editor the new lines for a rewrite whose question is at this row, or its state."""
    transcript = await buffer.look()
    at = exchange_at(transcript, row)
    if at is None:
        return
    exchange = transcript.exchanges[at]
    reply: dict[str, Any] = {"state": answer_state(exchange)}
    if reply["state"] == "complete":
        try:
            lines = new_lines(exchange, buffer.mirror.text.lines, old)
        except ParleyError as error:
            reply["problem"] = str(error)
        else:
            spelled = [line.replace("\0", "\n") for line in lines]  # a NUL, for Neovim
            reply |= {"lines": spelled, "visible": [visible(line) for line in lines]}
    buffer.editor.tell("rewritten", rewrite, reply)
