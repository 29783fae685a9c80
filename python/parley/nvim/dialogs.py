"""Questions to the user while something runs: one question at a time, in the editor's own prompts.

Knows ids and answers, not what a question is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from parley.nvim.editor import Editor


class Dialogs:
    """The questions to an editor's user. Cancelling the task that waits removes its question from
    the screen."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._open: dict[int, asyncio.Future[Any]] = {}
        self._last = 0
        self._one_at_a_time = asyncio.Lock()

    async def select(self, prompt: str, items: Sequence[str]) -> int | None:
        """The number, from 0, of the line that the user picks; None for no choice."""
        number = await self._answer("ask_select", prompt, list(items))
        return number - 1 if isinstance(number, int) and 0 < number <= len(items) else None

    async def input(self, prompt: str, default: str = "") -> str | None:
        """The user's text; None if nothing was entered."""
        typed = await self._answer("ask_input", prompt, default)
        return typed if isinstance(typed, str) else None

    def answered(self, number: int, value: Any) -> None:
        """Take the user's answer from the editor; None for a dismissed question."""
        answer = self._open.get(number)
        if answer is not None and not answer.done():
            answer.set_result(value)

    async def _answer(self, how: str, *question: Any) -> Any:
        async with self._one_at_a_time:
            self._last += 1
            number = self._last
            answer = self._open[number] = asyncio.get_running_loop().create_future()
            self._editor.tell(how, number, *question)
            try:
                return await answer
            finally:
                del self._open[number]
                if answer.cancelled():
                    self._editor.tell("withdraw", number)
