"""Sign-ins to servers, with a real authorization server, and a stand-in for the browser."""

from __future__ import annotations

import asyncio
import json
import logging
import stat
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import httpx2
import pytest
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl

from parley.errors import ParleyError, ServerError
from parley.logins.loopback import Loopback
from parley.mcp.servers import Servers
from parley.mcp.sign_in import with_scope
from parley.secrets import HANDED_OUT
from parley.tools.server_settings import ServerSettings
from parley.tools.visits import Visit
from tests.mcp.oauth_server import Provider, Will, browsed, guarded, parameters, with_parameters
from tests.mcp_servers import fake, listening, only, servers_of, tool_of, until

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


Slash: TypeAlias = Literal["", "/"]
WILLS: tuple[Will, ...] = ("no", "code of another")


@dataclass
class Person:
    """A user at a browser, which follows a page's redirects."""

    way: Callable[[str], str] = lambda url: url
    pages: list[Visit] = field(default_factory=list)
    responses: list[httpx2.Response] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def browse(self, page: Visit) -> None:
        self.pages.append(page)
        self.tasks.append(asyncio.ensure_future(self._go(page.url)))

    async def _go(self, url: str) -> None:
        self.responses += await browsed(self.way(url))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def at(url: str, state: Path, **settings: Any) -> AbstractAsyncContextManager[Servers]:
    """A process with this server in its settings."""
    server = ServerSettings("tracker", url=url, **settings)
    return servers_of(server, environ={"XDG_STATE_HOME": str(state), "TOKEN": "t" * 20})


async def signed_in(provider: Provider, state: Path) -> None:
    async with at(provider.url, state) as servers:
        assert await servers.sign_in("tracker", Person().browse)


async def whoami(servers: Servers) -> str:
    outcome = await servers.call(await tool_of(servers, "whoami"), {})
    assert outcome.status == "ok", outcome
    return outcome.text


def logins(state: Path) -> list[Path]:
    return list((state / "parley" / "logins").glob("*.json"))


def login_file(state: Path) -> Path:
    (path,) = logins(state)
    return path


# --- Signing in -----------------------------------------------------------------------------------


async def test_a_server_that_requires_a_login_says_so_and_starts_nothing_else(state: Path) -> None:
    async with guarded(Provider()) as provider, at(provider.url, state) as servers:
        assert not (await servers.catalogue()).tools
        status = only(servers)
        assert (status.state, status.account) == ("failed", "signed out")
        assert status.error.startswith("MCP server 'tracker': HTTP 401 Unauthorized")
        assert (
            ". What to do: :ParleyLogin tracker, or set mcp.servers.tracker.headers" in status.error
        )
        assert {path for _, path, _ in provider.requests} == {"/mcp"}
        assert not provider.clients


async def test_after_the_sign_in_the_server_works_and_the_browser_may_close(state: Path) -> None:
    person = Person()
    async with guarded(Provider()) as provider, at(provider.url, state) as servers:
        await servers.catalogue()
        assert await servers.sign_in("tracker", person.browse)
        assert await whoami(servers) == "somebody who signed in"
        assert only(servers).account == "signed in"
        (page,) = person.pages
        sent = parameters(page.url)
        assert (sent["code_challenge_method"], sent["resource"]) == ("S256", provider.url)
        assert page.url.startswith(provider.url.removesuffix("/mcp") + "/authorize?")
        assert "You can close this page" in person.responses[-1].text
        assert len(provider.clients) == 1


async def test_another_process_uses_the_login_without_a_browser(state: Path) -> None:
    async with guarded(Provider()) as provider:
        await signed_in(provider, state)
        async with at(provider.url, state) as servers:
            assert await whoami(servers) == "somebody who signed in"


async def test_only_the_user_can_read_a_login(state: Path) -> None:
    async with guarded(Provider()) as provider:
        await signed_in(provider, state)
    path = login_file(state)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {each.suffix for each in path.parent.iterdir()} <= {".json", ".lock"}


async def test_another_url_never_gets_the_token(state: Path) -> None:
    async with guarded(Provider()) as provider, guarded(Provider(), "/other") as other:
        await signed_in(provider, state)
        for url in (
            other.url,
            f"{provider.url}?team=2",
            provider.url.replace("127.0.0.1", "localhost"),
        ):
            before = provider.bearers()
            async with at(url, state) as servers:
                await servers.catalogue()
                assert only(servers).account != "signed in"
            assert not other.bearers()
            assert provider.bearers() == before


async def test_a_login_file_moved_to_another_url_is_invalid(state: Path) -> None:
    async with guarded(Provider()) as provider, guarded(Provider()) as other:
        await signed_in(provider, state)
        path = login_file(state)
        await signed_in(other, state)
        (theirs,) = set(path.parent.glob("*.json")) - {path}
        path.replace(theirs)
        other.requests.clear()
        async with at(other.url, state) as servers:
            await servers.catalogue()
        assert not other.bearers()


async def test_a_token_from_the_settings_stays_unchanged(state: Path) -> None:
    async with guarded(Provider()) as provider:
        await signed_in(provider, state)
        provider.requests.clear()
        headers = {"authorization": "Bearer ${TOKEN}"}
        async with at(provider.url, state, headers=headers) as servers:
            await servers.catalogue()
            assert provider.bearers() == {"t" * 20}
            assert only(servers).account == "none"
            assert "HTTP 401" in only(servers).error
            with pytest.raises(ServerError, match="has a token in the settings"):
                await servers.sign_in("tracker", Person().browse)


async def test_signing_out_forgets_the_login(state: Path) -> None:
    async with guarded(Provider()) as provider:
        await signed_in(provider, state)
        async with at(provider.url, state) as servers:
            await whoami(servers)
            assert servers.sign_out("tracker")
            assert not logins(state)
            await servers.catalogue()
            assert only(servers).account == "signed out"
            assert not servers.sign_out("tracker")


async def test_signing_in_at_a_server_without_sign_in_says_so(state: Path) -> None:
    from tests.mcp_servers import served

    async with served([]) as url, at(url, state) as servers:
        with pytest.raises(ServerError, match="'tracker' does not ask you to sign in"):
            await servers.sign_in("tracker", Person().browse)


async def test_a_local_server_has_nothing_to_sign_in_to() -> None:
    async with servers_of(fake()) as servers:
        with pytest.raises(ServerError, match="has no url"):
            await servers.sign_in("fake", Person().browse)


# --- Failures -------------------------------------------------------------------------------------


async def failing(provider: Provider, state: Path, person: Person | None = None) -> str:
    """The message from a sign-in that fails and stores nothing."""
    async with at(provider.url, state) as servers:
        with pytest.raises(ServerError) as caught:
            await servers.sign_in("tracker", (person or Person()).browse)
        assert only(servers).account == "none"
    assert not logins(state)
    return str(caught.value)


async def test_a_user_who_declines_is_not_signed_in(state: Path) -> None:
    person = Person()
    async with guarded(Provider(will="no")) as provider:
        text = await failing(provider, state, person)
    assert text == r"sign-in to 'tracker' failed: the site refused: access_denied not \u202eyou"
    assert "The sign-in was refused" in person.responses[-1].text


async def test_a_browser_with_another_state_is_refused_and_the_right_one_awaited(
    state: Path,
) -> None:
    person = Person()
    async with (
        guarded(Provider(will="other state")) as provider,
        at(provider.url, state) as servers,
    ):
        attempt = asyncio.ensure_future(servers.sign_in("tracker", person.browse))
        await until(lambda: person.responses)
        assert person.responses[-1].status_code == 400
        assert "Parley did not request this" in person.responses[-1].text
        assert "/token" not in {path for _, path, _ in provider.requests}
        assert only(servers).account == "signing in"
        provider.will = "yes"
        person.browse(person.pages[0])
        assert await attempt
        assert await whoami(servers) == "somebody who signed in"


async def test_a_code_for_another_challenge_gives_no_token(state: Path) -> None:
    def changed(url: str) -> str:
        return with_parameters(url, code_challenge="A" * 43)

    async with guarded(Provider()) as provider:
        text = await failing(provider, state, Person(changed))
    assert text.startswith(
        "sign-in to 'tracker' failed: the site did not grant a token (HTTP 400: invalid_grant"
    )


async def test_a_server_where_programs_cannot_register_names_the_remedy(state: Path) -> None:
    async with guarded(Provider(registers=False)) as provider:
        text = await failing(provider, state)
    assert (
        "cannot register there (HTTP 400: invalid_client_metadata: ask the desk for a token)"
        in text
    )
    assert "`headers` or `token_command`" in text


@pytest.mark.parametrize(
    ("oddity", "why"),
    [
        (
            {"page": "/authorize#x"},
            ": its address has a #",
        ),
        ({"lasts_s": 10**400}, "the site's reply does not follow OAuth"),
    ],
)
async def test_a_page_or_token_that_violates_oauth_is_reported(
    oddity: dict[str, Any], why: str, state: Path
) -> None:
    async with guarded(Provider(**oddity)) as provider:
        assert (await failing(provider, state)).endswith(why)


@pytest.mark.parametrize("named", ["", "/"])
@pytest.mark.parametrize("issuer", ["", "/"])
@pytest.mark.parametrize("sends_iss", [False, True])
async def test_an_authorization_server_is_the_same_with_and_without_a_trailing_slash(
    named: Slash, issuer: Slash, sends_iss: bool, state: Path
) -> None:
    provider = Provider(
        resource_names=named, issuer_end=issuer, iss_end=issuer if sends_iss else None
    )
    async with guarded(provider), at(provider.url, state) as servers:
        assert await servers.sign_in("tracker", Person().browse)
        assert await whoami(servers) == "somebody who signed in"


@pytest.mark.parametrize(("issuer", "iss"), [("", "/"), ("/", "")])
async def test_a_browser_must_return_the_exact_issuer(
    issuer: Slash, iss: Slash, state: Path
) -> None:
    provider = Provider(resource_names=issuer, issuer_end=issuer, iss_end=iss)
    async with guarded(provider):
        assert "iss mismatch" in await failing(provider, state)


async def test_a_browser_from_another_authorization_server_gives_no_token(
    state: Path,
) -> None:
    person = Person()

    async def back(url: str) -> None:
        async with httpx2.AsyncClient(trust_env=False) as browser:
            response = await browser.get(url)
            place = with_parameters(response.headers["location"], iss="http://elsewhere.invalid")
            await browser.get(place)

    person._go = back  # type: ignore[method-assign]
    async with guarded(Provider()) as provider:
        assert "iss mismatch" in await failing(provider, state, person)


@pytest.mark.parametrize("methods", [None, [], ["plain"]])
async def test_no_sign_in_happens_without_a_challenge_that_the_server_checks(
    methods: list[str] | None, state: Path
) -> None:
    person = Person()
    async with guarded(Provider(challenges=methods)) as provider:
        text = await failing(provider, state, person)
    assert not person.pages
    assert "does not declare that it checks sign-in codes with PKCE (S256)" in text
    assert text.endswith("Supply a token from the site through `headers` or `token_command`")


async def test_a_second_key_cancels_the_sign_in_and_closes_its_port(state: Path) -> None:
    pages: list[Visit] = []
    async with guarded(Provider()) as provider, at(provider.url, state) as servers:
        attempt = asyncio.ensure_future(servers.sign_in("tracker", pages.append))
        await until(lambda: pages)
        assert (only(servers).account, only(servers).page) == ("signing in", pages[0].url)
        assert not await servers.sign_in("tracker", pages.append)
        with pytest.raises(ParleyError, match="sign-in to 'tracker' was cancelled"):
            await attempt
        back = parameters(pages[0].url)["redirect_uri"]
        with pytest.raises(httpx2.ConnectError):
            await browsed(back)
        assert only(servers).account == "none"


async def test_the_address_of_another_browsers_last_page_can_be_pasted(state: Path) -> None:
    pages: list[Visit] = []
    async with guarded(Provider()) as provider, at(provider.url, state) as servers:
        attempt = asyncio.ensure_future(servers.sign_in("tracker", pages.append))
        await until(lambda: pages)
        async with httpx2.AsyncClient(trust_env=False) as browser:
            ended = (await browser.get(pages[0].url)).headers["location"]
        assert not servers.take("tracker", ended.replace("state=", "state=x"))
        assert servers.take("tracker", ended)
        assert await attempt
        assert only(servers).account == "signed in"


async def test_an_unavailable_port_is_reported(state: Path) -> None:
    with listening() as listener:
        listener.listen()
        port = listener.getsockname()[1]
        async with (
            guarded(Provider()) as provider,
            at(provider.url, state, callback_port=port) as servers,
        ):
            with pytest.raises(ParleyError) as caught:
                await servers.sign_in("tracker", Person().browse)
    why = f"cannot listen on 127.0.0.1:{port} for the browser: Address already in use"
    assert str(caught.value).endswith(why)


async def test_two_sign_ins_at_once_have_a_port_each(tmp_path: Path) -> None:
    async with guarded(Provider()) as one, guarded(Provider()) as other:
        await asyncio.gather(signed_in(one, tmp_path / "a"), signed_in(other, tmp_path / "b"))


async def test_only_one_request_with_this_path_counts() -> None:
    async with Loopback() as loopback, httpx2.AsyncClient(trust_env=False) as client:
        answer = asyncio.ensure_future(loopback.answer("s" * 20))
        await asyncio.sleep(0)
        favicon = await client.get(loopback.url.replace("/callback", "/favicon.ico"))
        posted = await client.post(loopback.url, params={"state": "s" * 20, "code": "evil"})
        assert (favicon.status_code, posted.status_code) == (404, 404)
        url = loopback.url
        assert (await client.get(url, params={"state": "s" * 20, "code": "1"})).status_code == 200
        with pytest.raises(httpx2.ConnectError):
            await client.get(url, params={"state": "s" * 20, "code": "2"})
        assert (await answer)["code"] == "1"


# --- Clients that were registered before, and wider scopes ----------------------------------------


def free_port() -> int:
    with listening() as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "none"])
async def test_a_registered_client_signs_in_without_registering(state: Path, method: Any) -> None:
    port, secret = free_port(), "" if method == "none" else "t" * 20
    client = OAuthClientInformationFull(
        client_id="parley-of-ada",
        client_secret=secret or None,
        redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}/callback")],
        token_endpoint_auth_method=method,
        scope="use",
    )
    methods = [method] if method == "client_secret_post" else []
    settings = {
        "client_id": "parley-of-ada",
        "client_secret": secret and "${TOKEN}",
        "callback_port": port,
    }
    async with guarded(Provider(registers=False, methods=methods)) as provider:
        provider.clients["parley-of-ada"] = client
        async with at(provider.url, state, **settings) as servers:
            assert await servers.sign_in("tracker", Person().browse)
            assert await whoami(servers) == "somebody who signed in"
            assert "/register" not in {path for _, path, _ in provider.requests}
            has_expired(state)
            assert await whoami(servers) == "somebody who signed in"
            assert len(provider.access) == 2
        async with at(provider.url, state, client_id="unknown", callback_port=port) as servers:
            attempt = asyncio.ensure_future(servers.sign_in("tracker", Person().browse))
            await until(lambda: only(servers).account == "signing in")
            assert not await servers.sign_in("tracker", Person().browse)
            with pytest.raises(ParleyError, match="was cancelled"):
                await attempt
    assert not secret or secret in HANDED_OUT


async def test_a_call_that_lacks_a_scope_says_so_and_the_next_sign_in_asks_for_it(
    state: Path,
) -> None:
    wish = "sign in again for the scope admin with :ParleyLogin tracker"
    person = Person()
    async with guarded(Provider()) as provider:
        await signed_in(provider, state)
        async with at(provider.url, state) as servers:
            tool = await tool_of(servers, "whoami")
            provider.demands = "admin ad\\min"
            outcome = await servers.call(tool, {})
            assert outcome.status == "error"
            assert outcome.text.endswith(f"HTTP 403 Forbidden: not for you. What to do: {wish}")
            assert only(servers).error.endswith(wish)
        async with at(provider.url, state) as servers:  # the next sign-in asks for it
            await servers.catalogue()
            assert only(servers).error.endswith(wish)
            assert await servers.sign_in("tracker", person.browse)
            assert parameters(person.pages[0].url)["scope"] == "use admin"
            assert await whoami(servers) == "somebody who signed in"
            assert only(servers).error == ""


@pytest.mark.timeout(5)
def test_a_scope_is_added_to_a_challenge_in_linear_time() -> None:
    assert with_scope('Bearer scope="a b", error="x"', "c") == 'Bearer, error="x", scope="c"'
    assert with_scope("Bearer error=x ,scope=a", "c") == 'Bearer error=x, scope="c"'
    for unit in (",", ", ", ' scope="', ",scope=,"):
        assert with_scope(f"Bearer {unit * 50_000}", "c").endswith('scope="c"')


# --- Renewing -------------------------------------------------------------------------------------


def has_expired(state: Path) -> None:
    path = login_file(state)
    path.write_text(json.dumps({**json.loads(path.read_text()), "expires_at": 1.0}))


async def test_an_expired_token_is_renewed_before_it_is_sent(state: Path) -> None:
    async with guarded(Provider()) as provider:
        await signed_in(provider, state)
        has_expired(state)
        (old,) = provider.access
        provider.requests.clear()
        async with at(provider.url, state) as servers:
            assert await whoami(servers) == "somebody who signed in"
        assert old not in provider.bearers()
        assert next(path for _, path, _ in provider.requests) == "/token"
        assert stat.S_IMODE(login_file(state).stat().st_mode) == 0o600


async def test_a_refused_token_is_renewed_once(state: Path) -> None:
    async with guarded(Provider()) as provider:
        await signed_in(provider, state)
        async with at(provider.url, state) as servers:
            await whoami(servers)
            provider.refuse_tokens()
            assert await whoami(servers) == "somebody who signed in"
        assert [path for _, path, _ in provider.requests].count("/token") == 2


async def test_concurrent_processes_renew_one_after_the_other(state: Path) -> None:
    async with guarded(Provider()) as provider:
        await signed_in(provider, state)
        has_expired(state)
        async with at(provider.url, state) as one, at(provider.url, state) as other:
            assert set(await asyncio.gather(whoami(one), whoami(other))) == {
                "somebody who signed in"
            }
        assert [path for _, path, _ in provider.requests].count("/token") == 2


async def test_a_login_that_cannot_be_renewed_requires_a_sign_in(state: Path) -> None:
    async with guarded(Provider()) as provider:
        await signed_in(provider, state)
        provider.refuse_tokens()
        provider.renews = False
        async with at(provider.url, state) as servers:
            await servers.catalogue()
            assert only(servers).account == "signed out"
            assert "What to do: :ParleyLogin tracker" in only(servers).error
            provider.renews = True
            assert await servers.sign_in("tracker", Person().browse)
            assert await whoami(servers) == "somebody who signed in"


async def test_a_call_refused_without_a_login_names_the_command_to_sign_in(state: Path) -> None:
    async with guarded(Provider()) as provider:
        await signed_in(provider, state)
        async with at(provider.url, state) as servers:
            tool = await tool_of(servers, "whoami")
            provider.refuse_tokens()
            provider.renews = False
            outcome = await servers.call(tool, {})
    assert outcome.status == "error"
    assert "What to do: :ParleyLogin tracker" in outcome.text


@pytest.mark.parametrize("junk", ["", "[]", "{}", '{"url": 1}', "\x00"])
async def test_an_unreadable_login_counts_as_none(state: Path, junk: str) -> None:
    async with guarded(Provider()) as provider:
        await signed_in(provider, state)
        login_file(state).write_text(junk)
        async with at(provider.url, state) as servers:
            await servers.catalogue()
            assert only(servers).account == "signed out"


# --- Secrets --------------------------------------------------------------------------------------


async def test_no_error_or_log_contains_a_token(
    state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    texts = []
    async with guarded(Provider()) as provider:
        await signed_in(provider, state)
        for changes in (
            {"access_token": 1},
            {"expires_in": "never"},
            {"refresh_token": ["r" * 30]},
        ):
            path = login_file(state)
            table = json.loads(path.read_text())
            path.write_text(
                json.dumps({**table, "tokens": {**table["tokens"], **changes}, "expires_at": 1})
            )
            async with at(provider.url, state) as servers:
                await servers.catalogue()
                texts += [repr(only(servers)), str(servers.news(servers.offered().missing))]
            path.write_text(json.dumps(table))
        provider.renews = False
        provider.refuse_tokens()
        async with at(provider.url, state) as servers:
            await servers.catalogue()
            texts.append(repr(only(servers)))
        for will in WILLS:
            provider.will = will
            async with at(provider.url, state) as servers:
                with pytest.raises(ServerError) as caught:
                    await servers.sign_in("tracker", Person().browse)
                texts += [
                    str(caught.value),
                    repr(caught.value.__cause__),
                    repr(caught.value.__context__),
                ]
    assert len(provider.secrets) >= 3
    ours = [record for record in caplog.records if record.name.startswith(("parley", "mcp.client"))]
    said = "\n".join([*texts, *map(logging.Formatter().format, ours)])
    assert not [secret for secret in provider.secrets if secret in said]
    assert {*provider.refresh} <= {*HANDED_OUT}, "so the log takes them out"
