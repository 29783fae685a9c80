"""Signs the user in to a provider, and out again; shows the address if no browser opens.

Knows the page and the question for the user; `app.accounts` knows the sign-in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from parley.display.summary import legible_line
from parley.errors import ParleyError
from parley.nvim.dialogs import Dialogs
from parley.nvim.editor import Editor
from parley.nvim.pages import address_page
from parley.runtime.app import App
from parley.runtime.app_accounts import AppAccounts
from parley.tools.visits import Visit

_PAGE = "sign-in"
_PASTE = "Address of the browser's last page:"


def take_address(accounts: AppAccounts, name: str, address: str) -> None:
    """Continue a sign-in with the address of the browser's last page. Raises ParleyError."""
    if not accounts.take(name, address):
        raise ParleyError(
            f"that address does not belong to a sign-in at {legible_line(name)} that is running "
            "here. Paste the whole address of the browser's last page"
        )


class AccountDialog:
    """The sign-ins of an editor's user at providers."""

    def __init__(self, editor: Editor, dialogs: Dialogs, app: Callable[[], App]) -> None:
        self._editor = editor
        self._dialogs = dialogs
        self._app = app
        self._browsing = dict[str, asyncio.Task[None]]()

    async def sign_in(self, name: str) -> None:
        """Let the user sign in to a provider, or cancel a running sign-in. Raises ParleyError."""
        app = self._app()

        def browse(page: Visit) -> None:
            self._browsing[name] = self._editor.spawn(self._browse(name, page))

        try:
            is_done = await app.accounts.sign_in(name, browse)
        except ParleyError:
            self._end(name)
            raise
        if is_done:
            self._end(name)
            agent = app.settings.default_agent(app.environ)
            uses = f"{agent.name} answers in new chats" if agent.provider == name else ""
            more = uses or ":ParleyAgent chooses its agents"
            self._editor.message(f"signed in to {legible_line(name)}. {more}")

    async def sign_out(self, name: str) -> None:
        """Delete a provider's login. Raises ParleyError."""
        if not self._app().accounts.sign_out(name):
            raise ParleyError(f"you are not signed in to {legible_line(name)}")
        self._editor.message(f"signed out of {legible_line(name)}: the key stored here was deleted")

    async def _browse(self, name: str, page: Visit) -> None:
        """Open the page, and show its address until the sign-in ends; if no browser opens, ask for
        the address of another browser's last page.
        """
        self._editor.tell("scratch", _PAGE, address_page(name, page), "parley")
        try:
            if failure := await self._editor.ask("open_url", page.url):
                why = f"no browser opened the page on {page.host}: {legible_line(failure)}"
                self._editor.message(why, "warn")
                await self._ask(name)
            await asyncio.Future()
        finally:
            self._editor.tell("close_page", _PAGE)

    async def _ask(self, name: str) -> None:
        """Ask for the address until it is correct, or until the user dismisses the question."""
        prompt, accounts = _PASTE, self._app().accounts
        while (pasted := await self._dialogs.input(prompt)) is not None:
            if accounts.take(name, pasted):
                return
            prompt = f"That address does not belong to this sign-in. {_PASTE}"

    def _end(self, name: str) -> None:
        """Close the page and the question."""
        if browsing := self._browsing.pop(name, None):
            browsing.cancel()
