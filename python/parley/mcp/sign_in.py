"""Signs the user in at an MCP server by OAuth 2.1 with the SDK's provider, and uses the login.

Only the user begins a sign-in, and only a sign-in asks the user for anything. Knows the SDK's
provider and HTTP, but not how Parley shows a page. Its messages never contain a token.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import (
    AuthorizationCodeResult,
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
    TokenStorage,
)
from mcp.client.auth.utils import (
    extract_field_from_www_auth,
    extract_scope_from_www_auth,
    issuers_match,
)
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl

from parley.addresses import flaw
from parley.errors import ServerError
from parley.http import bodies
from parley.http.proxies import ProxyError, client_options
from parley.late_patterns import late_pattern
from parley.logins.loopback import PATH, Loopback
from parley.logins.stored_logins import Login, Logins, union_of
from parley.mcp.plain import plain
from parley.secrets import HANDED_OUT
from parley.text import one_line
from parley.tools.server_settings import ServerSettings, again
from parley.tools.visits import Visit, visit

_MOST_BYTES = 1_000_000
_MOST_SHOWN = 300
_HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
_SCOPE = late_pattern(r"""(?<![,\s])[,\s]*\bscope=(?:"[^"]*"|[^\s,]*)""")
_FAULTS = (
    *(OAuthFlowError, httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError),
    *(ValueError, OverflowError),  # for invalid content, including numbers
)
_PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

Browse: TypeAlias = Callable[[Visit], object]
"""Shows the user a sign-in page, and opens it."""


async def sign_in(
    settings: ServerSettings, logins: Logins, loopback: Loopback, browse: Browse
) -> None:
    """Sign the user in at a server, and keep the login. Raises ServerError.

    If the server has required a further scope in the meantime, requests it and the earlier scope
    together.
    """
    server, url = settings.name, settings.url or ""
    if why := flaw(url):
        raise ServerError(f"mcp.servers.{server}.url: {why}")
    before = logins.get(url)
    attempt = _Attempt(
        settings, loopback, browse, before.scope if before and before.lacking_scope else ""
    )
    try:
        async with attempt.client() as client:
            response = await client.post(url, json=_PING, headers=_HEADERS, auth=attempt.provider)
    except (ServerError, ProxyError) as error:
        raise ServerError(f"sign-in to '{server}' failed: {error}") from None
    except _FAULTS as error:
        # Not `from error`: some of these objects contain tokens, which a traceback would show.
        raise ServerError(f"sign-in to '{server}' failed: {attempt.explain(error)}") from None
    login = attempt.login()
    if login is None:
        raise ServerError(
            f"'{server}' does not ask you to sign in: it answered with HTTP {response.status_code}"
        )
    if scope := lacking_scope(response):
        logins.put(replace(login, lacking_scope=scope))
        raise ServerError(f"'{server}' needs an additional scope: {again(server, scope)}")
    if response.status_code in (401, 403):
        raise ServerError(
            f"sign-in to '{server}' failed: the server rejected the token that was issued for it (HTTP "
            f"{response.status_code})"
        )
    logins.put(login)


class _Attempt:
    """One attempt to sign in: the storage for the SDK's provider, and the outcome.

    At first, the storage contains only the client from the settings, if there is one. Without such
    a client, Parley registers again each time, with the port to which the browser returns.
    """

    def __init__(
        self, settings: ServerSettings, loopback: Loopback, browse: Browse, scope: str
    ) -> None:
        """`scope` is requested in addition to the scope that the server first asks for."""
        self._server = settings.name
        self._url = url = settings.url or ""
        self._loopback = loopback
        self._browse = browse
        self._scope = scope
        self._state = ""
        self._tokens: OAuthToken | None = None
        self._client = _client(settings, loopback.url)
        self._reason = ""
        self.provider = _provider(url, loopback.url, self, self._redirect, self._callback)

    def client(self) -> httpx2.AsyncClient:
        """An HTTP client that limits the size of replies and notes why a request was refused."""
        hooks = [bodies.bounded(_MOST_BYTES, streams=True), self._note]
        options = client_options(self._url)
        return httpx2.AsyncClient(
            **options,
            headers=bodies.HEADERS,
            timeout=httpx2.Timeout(30),
            event_hooks={"response": hooks},
        )

    def login(self) -> Login | None:
        """The login, if the sign-in was granted."""
        if self._tokens is None or self._client is None:
            return None
        context = self.provider.context
        places = {
            "authorization_server": plain(context.oauth_metadata),
            "resource": plain(context.protected_resource_metadata),
            "issuer": context.auth_server_url,
        }
        tokens = plain(self._tokens)
        return Login(self._url, tokens, plain(self._client), places, _expiry(self._tokens))

    def explain(self, error: Exception) -> str:
        """Explain a failure. A token error's own text contains the reply, so this text is not
        shown.
        """
        why = f" ({self._reason})" if self._reason else ""
        match error:
            case OAuthRegistrationError():
                return (
                    f"programs cannot register there{why}. What to do: register a client with "
                    "the site and set its `client_id`, or supply a token from the site through "
                    "`headers` or `token_command`"
                )
            case OAuthTokenError():
                return f"the site did not grant a token{why}"
            case OAuthFlowError() | httpx2.HTTPError():
                return one_line(str(error) or type(error).__name__, _MOST_SHOWN)
            case _:
                return f"the site's reply does not follow OAuth{why}"

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info

    async def _redirect(self, page: str) -> None:
        metadata = self.provider.context.oauth_metadata
        for place in (page, str(metadata.token_endpoint) if metadata else page):
            if visit(place, "").is_open:
                raise ServerError(
                    f"{visit(place, '').host} does not use https, so others could intercept the sign-in"
                )
        if metadata and "S256" not in (metadata.code_challenge_methods_supported or ()):
            # "MCP clients MUST refuse to proceed" (revision 2025-11-25, Authorization Code
            # Protection).
            raise ServerError(
                f"{visit(page, '').host} does not declare that it checks sign-in codes with PKCE "
                "(S256), so another program could use your sign-in code. Supply a token from the "
                "site through `headers` or `token_command`"
            )
        if self._client and self._client.client_secret and metadata:
            ways = metadata.token_endpoint_auth_methods_supported or ["client_secret_basic"]
            self._client.token_endpoint_auth_method = (
                "client_secret_basic" if "client_secret_basic" in ways else "client_secret_post"
            )
        states = parse_qs(urlsplit(page).query).get("state")
        if (
            not states
        ):  # "The endpoint URI MUST NOT include a fragment component" (RFC 6749, section 3.1)
            raise ServerError(
                f"the page on {visit(page, '').host} cannot be opened: its address has a #"
            )
        self._state = states[-1]
        self._browse(visit(page, f"Sign in to {self._server}"))

    async def _callback(self) -> AuthorizationCodeResult:
        answer = await self._loopback.answer(self._state)
        if error := answer.get("error"):
            more = answer.get("error_description", "")
            raise ServerError(
                f"the site refused: {one_line(f'{error} {more}'.strip(), _MOST_SHOWN)}"
            )
        # The SDK compares `iss` with the metadata's issuer character by character (RFC 9207,
        # section 2.4).
        return AuthorizationCodeResult(
            code=answer.get("code", ""), state=answer.get("state"), iss=answer.get("iss")
        )

    async def _note(self, response: httpx2.Response) -> None:
        """Note why a client or token was refused; add our scope to the server's challenge."""
        if self._scope and response.status_code == 401 and str(response.url) == self._url:
            challenge = response.headers.get("www-authenticate") or "Bearer"
            scope = union_of(extract_scope_from_www_auth(response) or "", self._scope)
            response.headers["www-authenticate"] = with_scope(challenge, scope)
        if (
            response.request.method != "POST"
            or not response.is_error
            or str(response.url) == self._url
        ):
            return
        self._reason = f"HTTP {response.status_code}"
        try:
            answer = json.loads(await response.aread())
            words = [
                str(answer[name]) for name in ("error", "error_description") if answer.get(name)
            ]
        except (ValueError, AttributeError):
            return
        self._reason = one_line(": ".join([self._reason, *words]), _MOST_SHOWN)


def with_scope(challenge: str, scope: str) -> str:
    """A server's challenge, in which this scope replaces the server's own scope."""
    rest = _SCOPE.sub("", challenge)
    comma = "," if "=" in rest else ""
    return f'{rest}{comma} scope="{scope}"'


class BearerAuth(httpx2.Auth):
    """Adds the server's token to requests, and renews it if necessary.

    Never asks the user; `note` receives whether a request was refused for lack of a login.
    """

    def __init__(self, url: str, logins: Logins, note: Callable[[bool], None]) -> None:
        self._url = url
        self._logins = logins
        self._note = note

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send the request, after renewing its token if necessary, and again if it is refused."""
        refused = ""
        while True:
            login = (
                self._logins.get(self._url) if _origin(request.url) == _origin(self._url) else None
            )
            if login is not None and login.is_to_renew(refused):
                async with self._logins.alone(self._url):
                    login = self._logins.get(self._url)  # another process may have renewed it
                    if login is not None and login.is_to_renew(refused):
                        # The provider renews the token before it yields this, which is not sent.
                        stand_in = httpx2.Request("GET", self._url, headers=_HEADERS)
                        flow = _renewing(login, self._logins).async_auth_flow(stand_in)
                        try:
                            outgoing = await anext(flow)
                            while outgoing is not stand_in:
                                outgoing = await flow.asend((yield outgoing))
                        finally:
                            await flow.aclose()
                login = self._logins.get(self._url)
            if login is not None:
                request.headers["Authorization"] = f"Bearer {login.token}"
            response = yield request
            if response.status_code == 401 or not response.is_error:
                self._note(response.status_code == 401)
            if login is not None and (scope := lacking_scope(response)):
                await self._logins.lack(self._url, scope)
            if (
                response.status_code != 401
                or refused
                or login is None
                or not login.is_to_renew(login.token)
            ):
                return
            refused = login.token


def lacking_scope(response: httpx2.Response) -> str:
    """The further scope that a refusal requires; "" if the refusal has another reason."""
    is_lack = extract_field_from_www_auth(response, "error") == "insufficient_scope"
    if response.status_code != 403 or not is_lack:
        return ""
    return union_of(extract_scope_from_www_auth(response) or "")


class _Renewal:
    """The provider's storage for renewals: saves each new token immediately. Raises ValueError."""

    def __init__(self, login: Login, logins: Logins) -> None:
        self._login = login
        self._logins = logins
        self._tokens = OAuthToken.model_validate(login.tokens)
        self._client = OAuthClientInformationFull.model_validate(login.client)

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._logins.put(replace(self._login, tokens=plain(tokens), expires_at=_expiry(tokens)))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        raise NotImplementedError


def _renewing(login: Login, logins: Logins) -> OAuthClientProvider:
    """A provider that treats the token as expired and can renew it. Raises ServerError."""
    places = login.places
    try:
        provider = _provider(
            login.url, f"http://127.0.0.1{PATH}", _Renewal(login, logins), None, None
        )
        context = provider.context
        if server := places.get("authorization_server"):
            context.oauth_metadata = OAuthMetadata.model_validate(server)
        if resource := places.get("resource"):
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(resource)
    except (ValueError, AttributeError):  # their text would show tokens
        raise ServerError(
            f"the stored login for {_host(login.url)} is broken: sign in again"
        ) from None
    context.auth_server_url = places.get("issuer")
    context.token_expiry_time = 1.0  # in 1970, so the provider renews the token
    return provider


def _provider(
    url: str,
    back: str,
    storage: TokenStorage,
    redirect: Callable[[str], Awaitable[None]] | None,
    callback: Callable[[], Awaitable[AuthorizationCodeResult]] | None,
) -> OAuthClientProvider:
    me = OAuthClientMetadata(
        client_name="Parley",
        redirect_uris=[AnyUrl(back)],
        token_endpoint_auth_method="none",  # noqa: S106 - a public client
    )
    return _Provider(url, me, storage, redirect, callback)


class _Provider(OAuthClientProvider):
    """The SDK's provider, changed to ignore an issuer's trailing slash.

    The SDK itself ignores the slash only for credentials, and if a server has no metadata (mcp
    2.3.0, 2026-11-24).
    """

    def _expected_issuer(self) -> str:
        return _Issuer(super()._expected_issuer())


class _Issuer(str):
    """An authorization server's address, equal to the other spellings that the SDK uses."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and issuers_match(str(self), str(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(str(self).removesuffix("/"))


def _client(settings: ServerSettings, back: str) -> OAuthClientInformationFull | None:
    """The client in the settings, with this redirect address; None if they do not contain a
    client.
    """
    if not settings.client_id:
        return None
    if settings.client_secret:
        HANDED_OUT[settings.client_secret] = "client_secret of an MCP server"
    return OAuthClientInformationFull(
        client_id=settings.client_id,
        client_secret=settings.client_secret or None,
        redirect_uris=[AnyUrl(back)],
        token_endpoint_auth_method="client_secret_basic" if settings.client_secret else "none",
    )


def _expiry(tokens: OAuthToken) -> float | None:
    return None if tokens.expires_in is None else time.time() + tokens.expires_in


def _host(url: str) -> str:
    return one_line(urlsplit(url).hostname or "", _MOST_SHOWN)


def _origin(url: httpx2.URL | str) -> tuple[str, str, int | None]:
    parts = httpx2.URL(url)
    return parts.scheme, parts.host, parts.port
