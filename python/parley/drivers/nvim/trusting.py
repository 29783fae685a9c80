"""A project's file of servers is used once the user has seen what it would start, and said yes.

Asked when servers are first needed; a no holds in this session, for this content. Knows whom to ask; what
trust is bound to, the project knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from parley.drivers.home import Home
from parley.drivers.nvim.editor import Editor
from parley.drivers.nvim.pages import project_page
from parley.drivers.nvim.questions import Questions

YES, NO = "Yes, I trust what this file says now", "No, not in this session"
_PAGE = "project-servers"


class Trusting:
    """One for each process; `showing` shows a text as status while the user is asked."""

    def __init__(
        self, editor: Editor, questions: Questions, showing: Callable[[str], AbstractContextManager[None]]
    ) -> None:
        self._editor = editor
        self._questions = questions
        self._showing = showing
        self._refused = set[tuple[Path, bytes]]()
        self._one_at_a_time = asyncio.Lock()

    async def settle(self, home: Home, *, again: bool = False) -> None:
        """Ask about the working directory's file, if there is one to ask about; `again` after a no, too.

        Raises ParleyError if the file has changed while the user looked at it.
        """
        async with self._one_at_a_time:
            for path in home.untrusted():
                content = home.seen(path)
                if not again and (path, content) in self._refused:
                    continue
                if await self._asked(path, content):
                    home.trust(path, content)
                else:
                    self._refused.add((path, content))

    async def _asked(self, path: Path, content: bytes) -> bool:
        self._editor.tell("scratch", _PAGE, project_page(path, content), "markdown")
        question = f"Use the MCP servers of {path.name}, as this page shows them?"
        try:
            with self._showing(question):
                return await self._questions.select(question, [YES, NO]) == 0
        finally:
            self._editor.tell("close_page", _PAGE)
