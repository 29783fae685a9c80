"""The user's accounts at providers that let any program sign its user in: the keys of the sign-ins.

Knows which key belongs to which address; `provider_sign_in` knows how the user signs in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from parley.errors import ModelError, ParleyError
from parley.logins.loopback import Loopback
from parley.logins.sign_ins import SignIns
from parley.logins.stored_logins import Logins
from parley.paths import state_folder
from parley.providers.api_keys import has_own_key
from parley.providers.sdk_clients import address
from parley.secrets import SecretError, sound_secret
from parley.settings.values import ProviderSettings
from parley.tools.visits import Visit


class ProviderAccounts:
    """The accounts at all providers; their logins are in the state folder, where editor and shell
    share them.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._logins = Logins(state_folder(environ) / "provider_logins")
        self._sign_ins = SignIns()

    def key(self, provider: ProviderSettings) -> str:
        """The key of the sign-in at this provider, for exactly the address that it has now; "" if
        there is none, and if the user has a key of their own.
        """
        if not provider.signs_in or has_own_key(provider, self._environ):
            return ""
        try:
            login = self._logins.get(self._url(provider))
            return sound_secret(login.token, f"key of {provider.name}") if login else ""
        except (ModelError, SecretError):
            return ""

    def signed_in(self, providers: Iterable[ProviderSettings]) -> frozenset[str]:
        """The names of the providers whose key comes from a sign-in."""
        return frozenset(provider.name for provider in providers if self.key(provider))

    async def sign_in(self, provider: ProviderSettings, browse: Callable[[Visit], object]) -> bool:
        """Sign the user in and return True; `browse` shows and opens the sign-in page.

        If a sign-in is already in progress, cancel it and return False. Raises ParleyError if the
        sign-in fails.
        """
        name = provider.name
        if self._sign_ins.cancel(name):
            return False
        if provider.is_agent:
            raise ParleyError(f"'{name}' is an agent of another program. Sign in with that program")
        if not provider.signs_in:
            remedy = f". Set {provider.key_variable} to a key" if provider.key_variable else ""
            raise ParleyError(f"'{name}' offers no sign-in to Parley{remedy}")
        if has_own_key(provider, self._environ):
            source = f"providers.{name}.api_key_command" if provider.api_key_command else ""
            raise ParleyError(
                f"'{name}' uses the key from {source or provider.key_variable}. To sign in "
                "instead, remove that key"
            )
        from parley.providers.provider_sign_in import sign_in

        def show(page: Visit) -> None:
            self._sign_ins.shows(name, page.url)
            browse(page)

        async def attempt(loopback: Loopback) -> None:
            self._logins.put(await sign_in(name, url, loopback, show))

        url = self._url(provider)
        # OpenRouter documents callbacks to http://localhost, but none to 127.0.0.1 (2026-11-26).
        await self._sign_ins.run(name, Loopback(host="localhost"), attempt)
        return True

    def sign_out(self, provider: ProviderSettings) -> bool:
        """Forget the login for a provider's address; return whether there was one."""
        return provider.signs_in and self._logins.forget(self._url(provider))

    def take(self, name: str, address: str) -> bool:
        """Take the address of the browser's last page; return whether a running sign-in needs it."""
        return self._sign_ins.take(name, address)

    def close(self) -> None:
        """Cancel all sign-ins."""
        self._sign_ins.close()

    def _url(self, provider: ProviderSettings) -> str:
        return address(provider, self._environ).rstrip("/")
