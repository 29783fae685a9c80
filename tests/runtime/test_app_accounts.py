"""One name for sign-ins at servers and providers, and the settings after a sign-in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parley.chat.reader import parse
from parley.errors import ParleyError
from parley.runtime.app import App
from parley.settings.readiness import Ready
from parley.settings.values import Mcp, ProviderSettings, Settings
from parley.tools.server_settings import ServerSettings
from tests.key_site import KeySite
from tests.providers.test_provider_accounts import Person, environment


def app(site: KeySite, home: Path, **settings: Any) -> App:
    return App(Settings(**settings), {**environment(site, home), "HOME": str(home)})


async def test_after_a_sign_in_in_any_process_the_agent_has_a_key_until_the_sign_out(
    tmp_path: Path,
) -> None:
    async with KeySite() as site:
        one, other = app(site, tmp_path), app(site, tmp_path)
        try:
            agent = one.settings.named_agent("OpenRouter")
            assert agent is not None
            assert one.settings.missing_key(agent, one.environ) == "OPENROUTER_API_KEY"
            assert one.settings.default_agent(one.environ).name == "Demo"
            assert await one.accounts.sign_in("openrouter", Person().browse)
            question = parse("💬: hello\n")
            assert other.start(question, str(tmp_path / "chat.md"), None) == Ready("")
            for each in (one, other):
                assert each.settings.missing_key(agent, each.environ) == ""
                assert each.settings.default_agent(each.environ) == agent
                assert each.provider("openrouter").signed_in
            (listed,) = [m for m in await one.models.all() if m.provider == "openrouter"]
            assert [model.id for model in listed.listed.models] == ["lab/one"]
            assert one.accounts.sign_out("openrouter")
            assert not one.accounts.sign_out("openrouter")
            assert one.settings.default_agent(one.environ).name == "Demo"
            hint = other.start(question, str(tmp_path / "chat.md"), None)
            assert isinstance(hint, Ready)
            assert ":ParleyLogin openrouter" in hint.hint
        finally:
            await one.close()
            await other.close()


async def test_a_name_that_means_a_server_and_a_provider_is_refused(tmp_path: Path) -> None:
    server = {"openrouter": ServerSettings("openrouter", url="http://127.0.0.1:1/mcp")}
    async with KeySite() as site:
        both = app(site, tmp_path, mcp=Mcp(servers=server))
        try:
            for act in (both.accounts.provider, both.accounts.sign_out):
                with pytest.raises(ParleyError, match="of a provider and of an MCP server"):
                    act("openrouter")
            with pytest.raises(ParleyError, match="of a provider and of an MCP server"):
                await both.accounts.sign_in("openrouter", Person().browse)
        finally:
            await both.close()
        assert site.asked == []


async def test_a_server_may_have_the_name_of_a_provider_without_sign_in(tmp_path: Path) -> None:
    server = {"lab": ServerSettings("lab", url="http://127.0.0.1:1/mcp")}
    provider = {"lab": ProviderSettings("lab", base_url="http://127.0.0.1:1")}
    async with KeySite() as site:
        one = app(site, tmp_path, mcp=Mcp(servers=server), providers=provider)
        try:
            assert one.accounts.provider("lab") is None
            assert not one.accounts.sign_out("lab")
            assert not one.accounts.take("lab", "http://localhost:1/callback?state=x")
            assert not one.accounts.take("openrouter", "http://localhost:1/callback?state=x")
            with pytest.raises(
                ParleyError, match="there is no account 'nobody'; known: lab, openrouter"
            ):
                await one.accounts.sign_in("nobody", Person().browse)
        finally:
            await one.close()
