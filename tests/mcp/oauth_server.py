"""An MCP server that requires a sign-in, with the SDK's own, real authorization server.

Its user agrees or, if a test requests it, declines, returns with another state, or never returns.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    IdentityAssertionParams,
    RefreshToken,
    RegistrationError,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.responses import JSONResponse, Response

from tests.forks import forks
from tests.mcp_servers import listening, running, url_of

_RESOURCE = "/.well-known/oauth-protected-resource/mcp"
_AUTHORIZATION = "/.well-known/oauth-authorization-server"

Will = Literal["yes", "no", "other state", "code of another"]


@dataclass
class Provider:
    """Its clients, and its grants to them; each token is a secret."""

    url: str = ""
    lasts_s: int = 3600
    will: Will = "yes"
    registers: bool = True
    renews: bool = True
    methods: list[str] = field(default_factory=list)
    """How clients identify themselves at its token endpoint; empty for the default."""
    page: str = "/authorize"
    """The address of its sign-in page, as it reports it."""
    resource_names: Literal["", "/"] | None = None
    """The end of the authorization server's address, as the server says; None for the SDK's."""
    issuer_end: Literal["", "/"] | None = None
    """The end of the authorization server's own address."""
    iss_end: Literal["", "/"] | None = None
    """The end of the issuer address that the browser returns; None if it names no issuer."""
    challenges: list[str] | None = field(default_factory=lambda: ["S256"])
    """The challenge methods that its metadata lists; None for no list."""
    demands: str = ""
    """The scope, as a challenge names it, without which the tool is refused."""
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path and bearer token of each request."""

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        if not self.registers:
            raise RegistrationError("invalid_client_metadata", "ask the desk for a token")
        assert client_info.client_id
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        back, state = str(params.redirect_uri), params.state
        if self.will == "no":
            return construct_redirect_uri(
                back, error="access_denied", error_description="not \u202eyou", state=state
            )
        code = self._new(client, params)
        if self.will == "other state":
            state = "x" * 43
        if self.will == "code of another":
            code = "c" * 40
        iss = None if self.iss_end is None else self.base + self.iss_end
        return construct_redirect_uri(back, code=code, state=state, iss=iss)

    @property
    def base(self) -> str:
        """Its address, without a final slash."""
        return "{0.scheme}://{0.netloc}".format(urlsplit(self.url))

    def documents(self) -> dict[str, dict[str, Any]]:
        """The metadata that it does not leave to the SDK, by path."""
        base, documents = self.base, dict[str, dict[str, Any]]()
        if self.resource_names is not None:
            servers = [base + self.resource_names]
            documents[_RESOURCE] = {
                "resource": self.url,
                "authorization_servers": servers,
                "scopes_supported": ["use"],
            }
        is_own = self.methods or self.page != "/authorize" or self.challenges != ["S256"]
        if is_own or self.issuer_end is not None:
            challenges = self.challenges
            documents[_AUTHORIZATION] = {
                "issuer": f"{base}{'/' if self.issuer_end is None else self.issuer_end}",
                "authorization_endpoint": f"{base}{self.page}",
                "token_endpoint": f"{base}/token",
                "registration_endpoint": f"{base}/register",
                "response_types_supported": ["code"],
                **({} if challenges is None else {"code_challenge_methods_supported": challenges}),
                "token_endpoint_auth_methods_supported": self.methods or ["none"],
            }
        return documents

    def _new(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = self._secret()
        assert client.client_id
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=client.client_id,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return code

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        code = authorization_code
        return self._grant(code.client_id, code.resource, code.scopes)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if not self.renews:
            raise TokenError("invalid_grant", f"no more for {refresh_token.token}")
        del self.refresh[refresh_token.token]  # each works once
        return self._grant(refresh_token.client_id, refresh_token.resource, refresh_token.scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        held = self.access.get(token)
        return held if held and (held.expires_at or 0) > time.time() else None

    async def exchange_identity_assertion(
        self, client: OAuthClientInformationFull, params: IdentityAssertionParams
    ) -> OAuthToken:
        raise TokenError("unsupported_grant_type")

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)

    def _grant(self, client: str, resource: str | None, scopes: list[str]) -> OAuthToken:
        access, refresh = self._secret(), self._secret()
        self.access[access] = AccessToken(
            token=access,
            client_id=client,
            scopes=scopes,
            expires_at=int(time.time()) + self.lasts_s,
            resource=resource,
        )
        self.refresh[refresh] = RefreshToken(
            token=refresh, client_id=client, scopes=scopes, resource=resource
        )
        return OAuthToken(
            access_token=access,
            refresh_token=refresh,
            expires_in=self.lasts_s,
            scope=" ".join(scopes),
        )

    def _secret(self) -> str:
        secret = secrets.token_urlsafe(32)
        self.secrets.add(secret)
        return secret

    def refuse_tokens(self) -> None:
        """Invalidate all access tokens granted so far, but no refresh tokens."""
        self.access.clear()

    def bearers(self) -> set[str]:
        """The tokens in the requests."""
        return {token for _, _, token in self.requests if token}


@asynccontextmanager
async def guarded(
    provider: Provider, path: str = "/mcp", **options: Any
) -> AsyncIterator[Provider]:
    """The running server; `provider.url` is its address."""
    with listening() as listener:
        base = url_of(listener)
        provider.url = base + path
        mcp = MCPServer(
            "guarded",
            auth_server_provider=provider,
            auth=AuthSettings(
                issuer_url=AnyHttpUrl(base),
                resource_server_url=AnyHttpUrl(provider.url),
                required_scopes=["use"],
                validate_token_resource=True,
                client_registration_options=ClientRegistrationOptions(
                    enabled=True, valid_scopes=["use", "admin"], default_scopes=["use"]
                ),
            ),
        )

        @mcp.tool()
        def whoami() -> str:
            """Who is signed in."""
            return "somebody who signed in"

        app = mcp.streamable_http_app(streamable_http_path=path, **options)

        async def spy(scope, receive, send):  # type: ignore[no-untyped-def]
            if scope["type"] == "http":
                bearer = (
                    dict(scope["headers"])
                    .get(b"authorization", b"")
                    .decode()
                    .removeprefix("Bearer ")
                )
                provider.requests.append((scope["method"], scope["path"], bearer))
                if document := provider.documents().get(scope["path"]):
                    await JSONResponse(document)(scope, receive, send)
                    return
                held = provider.access.get(bearer)
                if (
                    held
                    and scope["path"] == path
                    and provider.demands
                    and "admin" not in held.scopes
                ):
                    challenge = f'Bearer error="insufficient_scope", scope="{provider.demands}"'
                    refusal = Response("not for you", 403, {"www-authenticate": challenge})
                    await refusal(scope, receive, send)
                    return
            await app(scope, receive, send)

        async with running(spy, listener):
            yield provider


async def browsed(page: str) -> list[httpx2.Response]:
    """The responses to a browser that opens a page and follows its redirects."""
    async with httpx2.AsyncClient(trust_env=False, follow_redirects=True) as browser:
        response = await browser.get(page)
        return [*response.history, response]


def parameters(url: str) -> dict[str, str]:
    """An address's query parameters."""
    return dict(parse_qsl(urlsplit(url).query))


def with_parameters(url: str, **more: str) -> str:
    """The same address with other parameters."""
    return urlsplit(url)._replace(query=urlencode({**parameters(url), **more})).geturl()


BROWSER = """#!/bin/sh
exec {python} -c "import sys, urllib.request as r
r.install_opener(r.build_opener(r.ProxyHandler({{}})))
page = r.urlopen(sys.argv[1]).read()
open('{pages}', 'ab').write(page)" "$1"
"""


def browser(folder: Path, script: str = BROWSER) -> dict[str, str]:
    """Variables that make a desktop open pages with a stand-in browser, which follows redirects."""
    (folder / "bin").mkdir()
    for name in ("xdg-open", "open"):  # on Linux and on macOS
        program = folder / "bin" / name
        python = shlex.quote(sys.executable)
        program.write_text(
            script.format(python=python, pages=folder / "pages.html"), encoding="utf-8"
        )
        program.chmod(0o755)
    return {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "DISPLAY": ":0"}


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[str]:
    """The URL of this server in its own process, which writes its secrets into a file."""
    command = [forks().python, "-m", "tests.mcp.oauth_server", str(folder / "secrets"), *arguments]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("secrets", type=Path)
    parser.add_argument("--will", default="yes")
    parser.add_argument("--demands", default="")
    arguments = parser.parse_args()
    provider = Provider(will=arguments.will, demands=arguments.demands)
    async with guarded(provider):
        print(provider.url, flush=True)
        with arguments.secrets.open("w", encoding="utf-8") as file:
            while True:
                file.seek(0)
                file.write("\n".join(sorted(provider.secrets)))
                file.flush()
                await asyncio.sleep(0.02)


if __name__ == "__main__":
    asyncio.run(_main())
