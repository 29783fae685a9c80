"""Signing in to a provider, with a real site over HTTP and a stand-in for the browser."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from parley.chat.reader import parse
from parley.errors import ModelError, ParleyError
from parley.models.request import Request
from parley.providers.api_keys import key_of
from parley.providers.client import ProviderClient
from parley.providers.model_lists import ListFailure, ModelLists
from parley.providers.provider_accounts import ProviderAccounts
from parley.secrets import HANDED_OUT
from parley.settings.read import read_settings
from parley.settings.values import PROVIDERS, ProviderSettings, Settings
from parley.tools.visits import Visit
from tests.key_site import KeySite, Reply, Will
from tests.mcp.oauth_server import browsed
from tests.mcp_servers import until

ROUTER = PROVIDERS["openrouter"]
REQUEST = Request(parse("💬: hello\n"), 0, "openrouter", "openrouter/auto")


@dataclass
class Person:
    """A user at a browser, which follows a page's redirects."""

    way: Callable[[str], str] = lambda url: url
    pages: list[Visit] = field(default_factory=list)
    tasks: list[asyncio.Task[list[httpx2.Response]]] = field(default_factory=list)

    def browse(self, page: Visit) -> None:
        self.pages.append(page)
        self.tasks.append(asyncio.ensure_future(browsed(self.way(page.url))))


def environment(site: KeySite, home: Path, **more: str) -> dict[str, str]:
    return {"OPENROUTER_BASE_URL": site.base, "XDG_STATE_HOME": str(home), **more}


async def signed_in(site: KeySite, home: Path) -> tuple[ProviderAccounts, str]:
    """The accounts of a process whose user has just signed in, and the key."""
    accounts = ProviderAccounts(environment(site, home))
    assert await accounts.sign_in(ROUTER, Person().browse)
    return accounts, accounts.key(ROUTER)


def files(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file()]


async def test_a_sign_in_keeps_a_key_that_only_the_user_can_read(tmp_path: Path) -> None:
    async with KeySite() as site:
        person = Person()
        accounts = ProviderAccounts(environment(site, tmp_path))
        assert await accounts.sign_in(ROUTER, person.browse)
        (page,), responses = person.pages, await person.tasks[0]
        assert page.host == urlsplit(site.url).netloc
        back = parse_qs(urlsplit(page.url).query)["callback_url"][0]
        assert urlsplit(back).hostname == "localhost"
        assert "Parley continues from here" in responses[-1].text
        with pytest.raises(httpx2.ConnectError):
            await browsed(back)
        (key,) = site.keys
        assert (
            accounts.key(ROUTER) == key == ProviderAccounts(environment(site, tmp_path)).key(ROUTER)
        )
        (kept,) = files(tmp_path)
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
        assert key in kept.read_text(encoding="utf-8")
        assert key in HANDED_OUT, "so the log takes it out"
        assert key not in page.url
        assert accounts.sign_out(ROUTER)
        assert (accounts.key(ROUTER), accounts.sign_out(ROUTER), files(tmp_path)) == ("", False, [])


async def test_the_key_is_only_for_the_address_that_the_user_signed_in_to(tmp_path: Path) -> None:
    async with KeySite() as site:
        accounts, key = await signed_in(site, tmp_path)
        elsewhere = {"XDG_STATE_HOME": str(tmp_path), "OPENROUTER_BASE_URL": f"{site.url}/api/v2"}
        assert ProviderAccounts(elsewhere).key(ROUTER) == ""
        assert ProviderAccounts({"XDG_STATE_HOME": str(tmp_path)}).key(ROUTER) == ""
        for entry in (
            {"base_url": site.base},
            {"base_url": "https://gateway.example/v1"},
            {"base_url_env": "OPENROUTER_BASE_URL"},
            {"base_url": site.base, "signs_in": True, "signed_in": True},
        ):
            settings, _ = read_settings({"providers": {"openrouter": entry, "lab": entry}})
            settings = settings.with_logins(["openrouter", "lab"])
            for name in ("openrouter", "lab"):
                provider = settings.provider(name)
                assert provider is not None
                assert (accounts.key(provider), provider.signed_in) == ("", False)
        same, _ = read_settings({"providers": {"openrouter": {"model_list": "off"}}})
        assert accounts.key(same.providers["openrouter"]) == key


async def test_a_key_of_the_users_own_takes_precedence(tmp_path: Path) -> None:
    async with KeySite() as site:
        _, key = await signed_in(site, tmp_path)
        environ = environment(site, tmp_path, OPENROUTER_API_KEY="my-own-key")
        own = ProviderAccounts(environ)
        assert own.key(ROUTER) == ""
        assert await key_of(ROUTER, environ, own.key(ROUTER)) == "my-own-key"
        with pytest.raises(ParleyError, match="uses the key from OPENROUTER_API_KEY"):
            await own.sign_in(ROUTER, Person().browse)
        command = replace(ROUTER, api_key_command=("printf", "%s", "printed-key"))
        accounts = ProviderAccounts(environment(site, tmp_path))
        assert accounts.key(command) == ""
        assert await key_of(command, {}, accounts.key(command)) == "printed-key"
        with pytest.raises(ParleyError, match=r"providers\.openrouter\.api_key_command"):
            await accounts.sign_in(command, Person().browse)
        assert await key_of(ROUTER, {}, key) == key


@pytest.mark.parametrize(
    ("name", "words"),
    [("anthropic", ". Set ANTHROPIC_API_KEY to a key"), ("ollama", ""), ("demo", "")],
)
async def test_other_providers_have_no_sign_in(tmp_path: Path, name: str, words: str) -> None:
    accounts = ProviderAccounts({"XDG_STATE_HOME": str(tmp_path)})
    with pytest.raises(ParleyError) as caught:
        await accounts.sign_in(PROVIDERS[name], Person().browse)
    assert str(caught.value) == f"'{name}' offers no sign-in to Parley{words}"
    with pytest.raises(
        ParleyError, match=r"'other' is an agent of another program\. Sign in with that program"
    ):
        await accounts.sign_in(ProviderSettings("other", "acp"), Person().browse)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://router.example/v1", "router.example does not use https"),
        ("https://me:hunter2@router.example/v1", "no browser can open its base URL"),
        ("router.example", "openrouter cannot be used: OPENROUTER_BASE_URL: "),
    ],
)
async def test_a_page_that_others_could_read_is_not_opened(
    tmp_path: Path, url: str, words: str
) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path), "OPENROUTER_BASE_URL": url}
    person = Person()
    with pytest.raises(ParleyError, match=words) as caught:
        await ProviderAccounts(environ).sign_in(ROUTER, person.browse)
    assert "hunter2" not in str(caught.value)
    assert (person.pages, ProviderAccounts(environ).key(ROUTER)) == ([], "")


WILLS: list[tuple[Will, str]] = [
    ("no", "the site refused: access_denied. Sign in again: :ParleyLogin openrouter"),
    ("no code", "the browser came back without a code"),
    ("other code", r"the site did not accept the code \(HTTP 403\)"),
]


@pytest.mark.parametrize(("will", "words"), WILLS)
async def test_a_refused_sign_in_says_why_and_keeps_nothing(
    tmp_path: Path, will: Will, words: str
) -> None:
    async with KeySite(will) as site:
        accounts = ProviderAccounts(environment(site, tmp_path))
        with pytest.raises(ParleyError, match=words) as caught:
            await accounts.sign_in(ROUTER, Person().browse)
    assert not any(secret in str(caught.value) for secret in site.secrets)
    assert (accounts.key(ROUTER), files(tmp_path)) == ("", [])


TOKEN = "sk-or-hostile-0123456789abcdef"
HOSTILE = {
    "huge": Reply(200, b'{"key": "' + b"k" * 200_000 + b'"}'),
    "long": Reply(200, json.dumps({"key": "k" * 5_000}).encode()),
    "no JSON": Reply(200, f"<html>{TOKEN}</html>".encode()),
    "deep": Reply(200, b"[" * 60_000),
    "a list": Reply(200, json.dumps([TOKEN]).encode()),
    "a number": Reply(200, b'{"key": 7}'),
    "empty": Reply(200, b'{"key": ""}'),
    "two lines": Reply(200, json.dumps({"key": f"{TOKEN}\r\nx-evil: 1"}).encode()),
    "control": Reply(200, json.dumps({"key": f"{TOKEN}\x1b[2J"}).encode()),
    "hidden": Reply(200, json.dumps({"key": f"{TOKEN}\u202e"}).encode()),
    "not UTF-8": Reply(200, b'{"key": "\xff\xfe"}'),
    "no gzip": Reply(200, b"not packed", {"content-encoding": "gzip"}),
    "400": Reply(400, json.dumps({"error": {"message": f"\x1b[2J {TOKEN}"}}).encode()),
    "405": Reply(405, b""),
    "500": Reply(500, b"x" * 200_000),
    "elsewhere": Reply(307, b"", {"location": "http://127.0.0.1:1/steal"}),
    "found": Reply(302, b"", {"location": "/api/v1/auth/keys2"}),
}


@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_reply_is_one_line_and_keeps_nothing(tmp_path: Path, reply: Reply) -> None:
    async with KeySite(reply=reply) as site:
        accounts = ProviderAccounts(environment(site, tmp_path))
        with pytest.raises(ParleyError, match="sign-in to 'openrouter' failed: ") as caught:
            await accounts.sign_in(ROUTER, Person().browse)
        assert {path for path, _ in site.asked} == {"/auth", "/api/v1/auth/keys"}
    words = str(caught.value)
    assert words.isprintable()
    assert len(words) < 500
    assert not any(secret in words for secret in (*site.secrets, TOKEN))
    assert (accounts.key(ROUTER), files(tmp_path)) == ("", [])


async def test_a_code_with_another_state_is_refused_and_the_sign_in_waits(tmp_path: Path) -> None:
    async with KeySite("other state") as site:
        accounts, person = ProviderAccounts(environment(site, tmp_path)), Person()
        attempt = asyncio.ensure_future(accounts.sign_in(ROUTER, person.browse))
        await until(lambda: bool(person.tasks))
        (response,) = (await person.tasks[0])[-1:]
        assert response.status_code == 400
        assert not attempt.done()
        back = parse_qs(urlsplit(person.pages[0].url).query)["callback_url"][0]
        for wrong in ("", "no address", "http://[", back.partition("?")[0] + "?state=x&code=c"):
            assert not accounts.take("openrouter", wrong)
        site.will = "yes"
        last = (await browsed(person.pages[0].url))[-1]
        assert last.status_code == 200
        assert await attempt
        assert not accounts.take("openrouter", str(last.url))
    assert accounts.key(ROUTER) in site.keys


async def test_the_address_of_another_browsers_last_page_can_be_pasted(tmp_path: Path) -> None:
    async with KeySite() as site:
        accounts, pages = ProviderAccounts(environment(site, tmp_path)), list[str]()

        def browse(page: Visit) -> None:
            pages.append(page.url)

        attempt = asyncio.ensure_future(accounts.sign_in(ROUTER, browse))
        await until(lambda: bool(pages))
        async with httpx2.AsyncClient(trust_env=False) as browser:
            ended = (await browser.get(pages[0])).headers["location"]
        assert accounts.take("openrouter", f" {ended}\n")
        assert await attempt
    assert accounts.key(ROUTER) in site.keys


async def test_a_second_command_cancels_the_sign_in(tmp_path: Path) -> None:
    async with KeySite() as site:
        accounts, pages = ProviderAccounts(environment(site, tmp_path)), list[Visit]()
        attempt = asyncio.ensure_future(accounts.sign_in(ROUTER, pages.append))
        await until(lambda: bool(pages))
        assert not await accounts.sign_in(ROUTER, pages.append)
        with pytest.raises(ParleyError, match="sign-in to 'openrouter' was cancelled"):
            await attempt
        with pytest.raises(httpx2.ConnectError):
            await browsed(parse_qs(urlsplit(pages[0].url).query)["callback_url"][0])
        closing = asyncio.ensure_future(accounts.sign_in(ROUTER, pages.append))
        await until(lambda: len(pages) == 2)
        accounts.close()
        with pytest.raises(ParleyError, match="was cancelled"):
            await closing
        assert site.keys == set()


async def test_two_processes_can_sign_in_at_once_and_the_last_key_is_kept(tmp_path: Path) -> None:
    async with KeySite() as site:
        (one, _), (other, _) = await asyncio.gather(
            signed_in(site, tmp_path), signed_in(site, tmp_path)
        )
        assert len(site.keys) == 2
        assert one.key(ROUTER) == other.key(ROUTER) in site.keys
        assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"url": 1}'])
async def test_a_damaged_login_is_none(tmp_path: Path, content: str) -> None:
    async with KeySite() as site:
        accounts, key = await signed_in(site, tmp_path)
        (kept,) = files(tmp_path)
        changed = json.loads(kept.read_text(encoding="utf-8"))
        changed["tokens"]["access_token"] = f"{key}\nx"
        kept.write_text(json.dumps(changed), encoding="utf-8")
        assert accounts.key(ROUTER) == ""
        kept.write_text(content, encoding="utf-8")
        assert accounts.key(ROUTER) == ""


async def no_demo() -> str:
    raise AssertionError("there is no demo here")


async def test_requests_carry_the_key_and_a_refused_key_asks_for_a_new_sign_in(
    tmp_path: Path,
) -> None:
    async with KeySite() as site:
        environ = environment(site, tmp_path)
        client = ProviderClient(environ, no_demo)
        lists = ModelLists(client, environ)
        router = Settings().with_logins(["openrouter"]).provider("openrouter")
        assert router is not None

        async def answer(provider: ProviderSettings) -> None:
            async for _ in client.stream(provider, REQUEST, print):
                pass

        try:
            with pytest.raises(ModelError, match=":ParleyLogin openrouter"):
                await answer(ROUTER)
            for _ in range(2):  # the second sign-in replaces the first one's key
                await client.accounts.sign_in(ROUTER, Person().browse)
                await answer(router)
                assert site.asked[-1] == ("/api/v1/chat/completions", client.accounts.key(router))
            assert len({bearer for path, bearer in site.asked if path.endswith("completions")}) == 2
            site.is_closed = True
            with pytest.raises(ModelError, match="check the key of your sign-in and the account"):
                await answer(router)
            failed = await lists.fetch(router)
            assert isinstance(failed, ListFailure)
            assert failed.remedy == "Check the key of your sign-in"
            site.is_closed = False
            site.keys.clear()
            with pytest.raises(ModelError) as caught:
                await answer(router)
            words = str(caught.value)
            assert "sign in again with :ParleyLogin openrouter" in words
            assert not any(secret in words for secret in site.secrets)
            failed = await lists.fetch(router)
            assert isinstance(failed, ListFailure)
            assert failed.remedy == "Sign in again: :ParleyLogin openrouter"
        finally:
            await lists.close()
            await client.close()
