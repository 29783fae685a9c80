"""Asks the user to trust a project's server file, or to agree to a project's text, after showing
all of it.

Asks when servers or texts are first needed; a refusal applies to this session and this content.
Knows the dialog; the project knows what a user's trust applies to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from parley.nvim.chat_buffer import ChatBuffer
from parley.nvim.dialogs import Dialogs
from parley.nvim.editor import Editor
from parley.runtime.app import App
from parley.runtime.app_instructions import ProjectInstructions
from parley.storage.text_trust import OfferedText, TextTrust
from parley.storage.trust import programs
from parley.tables import listed
from parley.text import one_line
from parley.tools.mcp_files import project_of, read_servers

NO = "No, not in this session"
SHOW_REST = "First show the rest of what they do"
TRUST = "Yes, I trust the current content of this file"
PINNED = "Yes, and ask again when a project program that it uses changes"
SHOW_MORE = "First show the rest of the text"
AGREE = "Yes, use this text, and ask again when it changes"
AGREE_TO_ALL = "Yes, use these texts, and ask again when one changes"
"""The refusal comes first in the list, so a user who answers without looking refuses."""

_PAGE, _TEXT_PAGE = "project-servers", "project-text"
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
        await self._settle_skills(app, again=again)

    async def settle_for(self, buffer: ChatBuffer, *, again: bool = False) -> ProjectInstructions:
        """Also ask about the instructions for a chat, until the files on disk are decided. Returns
        the instructions.

        Raises ParleyError.
        """
        await self.settle(buffer.app, again=again)
        while True:
            project = buffer.app.instructions(buffer.transcript, lambda: buffer.folder)
            if not await self.agree(project.offered, buffer.app.text_trust, again=again):
                break
            again = False
        self._tell_problems(buffer.app)
        return project

    async def agree(
        self, texts: Iterable[OfferedText], trust: TextTrust, *, again: bool = False
    ) -> bool:
        """Ask about the texts to which the user has not agreed, and record each yes; with `again`,
        also ask about refused texts. Returns whether the user was asked.

        A yes counts for the content that was shown, even if the file has changed in the meantime.
        """
        was_asked = False
        async with self._one_at_a_time:
            for text in texts:
                refusal = text.path, text.content
                if (refusal in self._refused and not again) or trust.trusts(*refusal):
                    continue
                was_asked = True
                if await self._ask_about(text, trust.previous(text.path)) == AGREE:
                    trust.trust(text.path, text.content)
                else:
                    self._refused.add(refusal)
        return was_asked

    async def agree_to_all(
        self, what: str, texts: Sequence[OfferedText], trust: TextTrust, *, again: bool = False
    ) -> bool:
        """Ask once, on one page, about all texts to which the user has not agreed, except those
        that the user refused; with `again`, ask about these, too. Returns whether the user agreed.
        """
        async with self._one_at_a_time:
            texts = [text for text in texts if not trust.trusts(text.path, text.content)]
            refusals = {(text.path, text.content) for text in texts}
            if not texts or (refusals <= self._refused and not again):
                return False
            from parley.nvim.pages import offered_text_page

            pages = [offered_text_page(text, trust.previous(text.path)) for text in texts]
            page = [line for each in pages for line in (*each, "")][:-1]
            question = f"Use {what}, as shown on this page?"
            answers = [SHOW_MORE, AGREE_TO_ALL]
            if await self._answer(question, _TEXT_PAGE, page, len(page), answers) != AGREE_TO_ALL:
                self._refused |= refusals
                return False
            for text in texts:
                trust.trust(text.path, text.content)
            return True

    async def _settle_skills(self, app: App, *, again: bool) -> None:
        """Ask about the project's skills that the user has not agreed to."""
        if texts := app.skills.offered():
            names = _skills([skill.skill.name for skill in app.skills.untrusted])
            if await self.agree_to_all(names, texts, app.text_trust, again=again):
                app.look_at_skills()

    async def _ask(self, path: Path, content: bytes) -> str:
        from parley.nvim.pages import THE_FILE, project_page

        folder = project_of(path)
        name = str(path.relative_to(folder))
        file = read_servers(content, name, str(folder))
        page = project_page(path, content, file)
        names = ", ".join(
            sorted({name for server in file.servers.values() for name in server.variables})
        )
        handed = f" They receive your variables {one_line(names, _NAMES)}." if names else ""
        question = f"Use the MCP servers in {name}, as shown on this page?{handed}"
        yes = [*([PINNED] if programs(file, folder) else []), TRUST]
        return await self._answer(question, _PAGE, page, page.index(THE_FILE), [SHOW_REST, *yes])

    async def _ask_about(self, text: OfferedText, before: str | None) -> str:
        from parley.nvim.pages import offered_text_page

        page = offered_text_page(text, before)
        name = one_line(text.name, _NAMES)
        question = f"Use {text.noun} in {name}, as shown on this page?"
        if before is not None:
            question = f"{name} has changed. Use {text.noun} in it, as shown on this page?"
        return await self._answer(question, _TEXT_PAGE, page, len(page), [SHOW_MORE, AGREE])

    async def _answer(
        self, question: str, name: str, page: Sequence[str], last: int, answers: Sequence[str]
    ) -> str:
        """The user's answer about a page; `answers` are the one that shows more, then each yes.

        A yes is offered only after the page's `last` line (counted from 1) was on the screen.
        """
        show_more, *yes = answers
        self._editor.tell("scratch", name, page, "parley")
        try:
            with self._showing(question):
                answer = ""
                while True:
                    rest = await self._editor.ask("page_rest", name, last, answer == show_more)
                    if rest < 0:  # the user has closed the page, or is in another tab page
                        self._editor.tell("scratch", name, page, "parley")
                        rest = await self._editor.ask("page_rest", name, last, False)
                    offered = [NO, show_more] if rest else [NO, *yes]
                    answer = offered[await self._dialogs.select(question, offered) or 0]
                    if answer != show_more:
                        return answer
        finally:
            self._editor.tell("close_page", name)

    def _tell_problems(self, app: App) -> None:
        """Report, once, why Parley does not use a project's file or a server in it."""
        news = [problem for problem in app.problems() if problem not in self._reported]
        self._reported.update(news)
        if news:
            more = f" ({len(news) - 1} more: :ParleyTools)" if news[1:] else ""
            self._editor.message(f"{news[0]}{more}", "warn")


def _skills(names: Sequence[str]) -> str:
    """The project's skills with these names, in a question."""
    noun = "skill" if len(names) == 1 else "skills"
    return f"this project's {noun} {one_line(listed(names), _NAMES)}"
