"""Asks the user to trust a project's server file, after showing everything that the file would
start.

Asks when servers are first needed; a refusal applies to this session and this content. Knows the
dialog; the project knows what a user's trust applies to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from parley.nvim.dialogs import Dialogs
from parley.nvim.editor import Editor
from parley.nvim.pages import THE_FILE, project_page
from parley.runtime.app import App
from parley.storage.trust import programs
from parley.text import one_line
from parley.tools.mcp_files import project_of, read_servers

NO = "No, not in this session"
SHOW_REST = "First show the rest of what they do"
TRUST = "Yes, I trust the current content of this file"
PINNED = "Yes, and ask again when a project program that it uses changes"
"""The refusal comes first in the list, so a user who answers without looking refuses."""

_PAGE = "project-servers"
_NAMES = 200


class TrustDialog:
    """The dialog, one for each process; `showing` shows a status while the user decides."""

    def __init__(
        self,
        editor: Editor,
        dialogs: Dialogs,
        showing: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        self._editor = editor
        self._dialogs = dialogs
        self._showing = showing
        self._refused = set[tuple[Path, bytes]]()
        self._reported = set[str]()
        self._one_at_a_time = asyncio.Lock()

    async def settle(self, app: App, *, again: bool = False) -> None:
        """Ask about the working directory's undecided files; with `again`, also refused files.

        Raises ParleyError if a file has changed while the user read it.
        """
        async with self._one_at_a_time:
            for path in app.untrusted():
                content = app.seen(path)
                if not again and (path, content) in self._refused:
                    continue
                answer = await self._ask(path, content)
                if answer == NO:
                    self._refused.add((path, content))
                else:
                    app.trust(path, content, pinned=answer == PINNED)
            self._tell_problems(app)

    async def _ask(self, path: Path, content: bytes) -> str:
        folder = project_of(path)
        name = str(path.relative_to(folder))
        file = read_servers(content, name, str(folder))
        page = project_page(path, content, file)
        self._editor.tell("scratch", _PAGE, page, "parley")
        names = ", ".join(
            sorted({name for server in file.servers.values() for name in server.variables})
        )
        handed = f" They receive your variables {one_line(names, _NAMES)}." if names else ""
        question = f"Use the MCP servers in {name}, as shown on this page?{handed}"
        yes = [*([PINNED] if programs(file, folder) else []), TRUST]
        try:
            with self._showing(question):
                return await self._answer(question, page.index(THE_FILE), yes)
        finally:
            self._editor.tell("close_page", _PAGE)

    async def _answer(self, question: str, last: int, yes: Sequence[str]) -> str:
        """The user's answer; trust is offered only after the page's `last` line was on the
        screen.
        """
        answer = ""
        while True:
            rest = await self._editor.ask("page_rest", _PAGE, last, answer == SHOW_REST)
            answers = [NO, SHOW_REST] if rest else [NO, *yes]
            answer = answers[await self._dialogs.select(question, answers) or 0]
            if answer != SHOW_REST:
                return answer

    def _tell_problems(self, app: App) -> None:
        """Report, once, why Parley does not use a project's file or a server in it."""
        news = [problem for problem in app.problems() if problem not in self._reported]
        self._reported.update(news)
        if news:
            more = f" ({len(news) - 1} more: :ParleyTools)" if news[1:] else ""
            self._editor.message(f"{news[0]}{more}", "warn")
