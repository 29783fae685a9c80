"""Signs the user in to servers and providers by one name, and out again.

Knows which of the two a name means, or which agent of another program, whose sign-in
`agent_accounts` knows; `mcp` and `providers` know how the other sign-ins work.
"""

from __future__ import annotations

from collections.abc import Callable

from parley.errors import ParleyError
from parley.mcp.servers import Servers
from parley.providers.provider_accounts import ProviderAccounts
from parley.settings.values import ProviderSettings, Settings
from parley.text import one_line
from parley.tools.visits import Visit


class AppAccounts:
    """The accounts of one app; `settings` returns its current settings, and `look` reads the
    providers' logins again.
    """

    def __init__(
        self,
        servers: Servers,
        providers: ProviderAccounts,
        settings: Callable[[], Settings],
        look: Callable[[], None],
    ) -> None:
        self._servers = servers
        self._providers = providers
        self._settings = settings
        self._look = look

    async def sign_in(self, name: str, browse: Callable[[Visit], object]) -> bool:
        """Sign the user in and return True; `browse` shows and opens the sign-in page.

        If a sign-in is already in progress, cancel it and return False. Raises ParleyError if the
        sign-in fails.
        """
        provider = self.provider(name)
        if provider is None:
            return await self._servers.sign_in(name, browse)
        is_done = await self._providers.sign_in(provider, browse)
        self._look()
        return is_done

    def sign_out(self, name: str) -> bool:
        """Forget a login; return whether there was one. Raises ParleyError."""
        provider = self.provider(name)
        if provider is None:
            return self._servers.sign_out(name)
        had_login = self._providers.sign_out(provider)
        self._look()
        return had_login

    def take(self, name: str, address: str) -> bool:
        """Take the address of the browser's last page; return whether a running sign-in needs it."""
        if self.provider(name):
            return self._providers.take(name, address)
        return self._servers.take(name, address)

    def names(self) -> list[str]:
        """The names of the servers, providers and agents of other programs that may have a login."""
        settings = self._settings()
        servers = [name for name, each in settings.mcp.servers.items() if each.takes_logins]
        every = settings.all_providers().values()
        return sorted(
            {
                *servers,
                *(p.name for p in every if p.signs_in or (p.is_agent and not p.is_missing)),
            }
        )

    def agent(self, name: str) -> ProviderSettings | None:
        """The provider of the agent of another program that a name means; None if it means none. A
        server's name means the server.
        """
        settings = self._settings()
        named = settings.named_agent(name)
        provider = settings.provider(named.provider if named else name)
        is_server = name in settings.mcp.servers
        return provider if provider and provider.is_agent and not is_server else None

    def provider(self, name: str) -> ProviderSettings | None:
        """The provider that a name means; None if it means a server. Raises ParleyError if it can
        mean both, or means neither.
        """
        settings = self._settings()
        provider, is_server = settings.provider(name), name in settings.mcp.servers
        if not provider and not is_server:
            known = ", ".join(self.names())
            raise ParleyError(f"there is no account '{one_line(name)}'; known: {known}")
        if provider and provider.signs_in and is_server:
            raise ParleyError(
                f"'{name}' is the name of a provider and of an MCP server. "
                "Rename the server in the settings"
            )
        return None if is_server else provider
