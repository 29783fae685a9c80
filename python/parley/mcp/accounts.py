"""The user's accounts at servers: signed in, signed out or signing in.

Knows which servers support logins and which sign-ins are in progress. `sign_in` knows how one
works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from parley.errors import ServerError, SettingsError
from parley.logins.loopback import Loopback
from parley.logins.sign_ins import SignIns
from parley.logins.stored_logins import Logins
from parley.paths import state_folder
from parley.tools.server_settings import Account, ServerSettings
from parley.tools.visits import Visit

if TYPE_CHECKING:
    import httpx2


class Accounts:
    """The accounts at all servers; stores their logins in the state folder."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._logins = Logins(state_folder(environ) / "logins")
        self._sign_ins = SignIns()

    def auth(self, settings: ServerSettings, note: Callable[[bool], None]) -> httpx2.Auth | None:
        """Adds the login's token to requests; None for a server that does not support logins.

        After each response, `note` receives whether the request was refused for lack of a login.
        """
        if settings.url is None or not settings.takes_logins:
            return None
        from parley.mcp.sign_in import BearerAuth

        return BearerAuth(settings.url, self._logins, note)

    async def sign_in(self, settings: ServerSettings, browse: Callable[[Visit], object]) -> bool:
        """Sign the user in and return True; `browse` shows and opens the sign-in page.

        If a sign-in is already in progress, cancel it and return False. Raises ParleyError if the
        sign-in fails.
        """
        name = settings.name
        if self._sign_ins.cancel(name):
            return False
        settings = settings.expanded(self._environ)
        if settings.url is None or not settings.takes_logins:
            why = "has a token in the settings" if settings.url else "has no url"
            raise ServerError(f"'{name}' {why}, so there is nothing to sign in to")
        from parley.mcp.sign_in import sign_in

        def show(page: Visit) -> None:
            self._sign_ins.shows(name, page.url)
            browse(page)

        async def attempt(loopback: Loopback) -> None:
            await sign_in(settings, self._logins, loopback, show)

        await self._sign_ins.run(name, Loopback(settings.callback_port), attempt)
        return True

    def take(self, settings: ServerSettings, address: str) -> bool:
        """Take the address of the browser's last page; return whether a running sign-in at the
        server needs it.
        """
        return self._sign_ins.take(settings.name, address)

    def sign_out(self, settings: ServerSettings) -> bool:
        """Forget a server's login; return whether there was a login. Raises ParleyError."""
        url = settings.expanded(self._environ).url
        return url is not None and self._logins.forget(url)

    def account(self, settings: ServerSettings) -> tuple[Account, str]:
        """The account's state, and the page address of a sign-in in progress."""
        if (page := self._sign_ins.page(settings.name)) is not None:
            return "signing in", page
        try:
            url = settings.expanded(self._environ).url
        except SettingsError:
            return "none", ""
        has_login = settings.takes_logins and url is not None and self._logins.get(url) is not None
        return ("signed in" if has_login else "none"), ""

    def lacking_scope(self, settings: ServerSettings) -> str:
        """The further scope that the server required for a request; "" if there is none."""
        try:
            url = settings.expanded(self._environ).url
        except SettingsError:
            return ""
        login = self._logins.get(url) if url is not None and settings.takes_logins else None
        return login.lacking_scope if login else ""

    def close(self) -> None:
        """Cancel all sign-ins."""
        self._sign_ins.close()
