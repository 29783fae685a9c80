"""Asks the user questions while turns run: one question at a time, in the editor's own prompts.

Knows the questions' ids and answers, but not their subjects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from parley.nvim.editor import Editor


class Dialogs:
    """The questions to an editor's user. If the waiting task is cancelled, its question disappears
    from the screen."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._open: dict[int, asyncio.Future[Any]] = {}
        self._last = 0
        self._one_at_a_time = asyncio.Lock()

    async def select(self, prompt: str, items: Sequence[str]) -> int | None:
        """The number, from 0, of the line that the user picks; None if the user does not pick a
        line.
        """
        number = await self._answer("ask_select", prompt, list(items))
        return number - 1 if isinstance(number, int) and 0 < number <= len(items) else None

    async def input(self, prompt: str, default: str = "") -> str | None:
        """The text that the user types; None if the user dismisses the question."""
        typed = await self._answer("ask_input", prompt, default)
        return typed if isinstance(typed, str) else None

    async def terminal(self, words: Sequence[str], env: Mapping[str, str], folder: str) -> int:
        """The exit code of a command in a terminal window. Other questions do not wait for it."""
        code = await self._expected("terminal", list(words), dict(env), folder)
        return code if isinstance(code, int) else -1

    def answered(self, number: int, value: Any) -> None:
        """Receive the user's answer from the editor; None if the user dismissed the question."""
        answer = self._open.get(number)
        if answer is not None and not answer.done():
            answer.set_result(value)

    async def _answer(self, how: str, *question: Any) -> Any:
        async with self._one_at_a_time:
            return await self._expected(how, *question)

    async def _expected(self, how: str, *question: Any) -> Any:
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
