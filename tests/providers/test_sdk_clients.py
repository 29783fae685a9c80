"""Variables for the official hosts are sent to no other host; other hosts get only their entry's
values.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from parley.errors import ModelError
from parley.models.events import TextDelta
from parley.models.request import Request
from parley.providers.client import ProviderClient
from parley.providers.sdk_clients import address
from parley.settings.read import read_settings
from parley.settings.values import PROVIDERS, ProviderSettings
from parley.tools.server_settings import ServerSettings
from tests.defaults import new_servers
from tests.faulty_providers import FORMATS, KEY, QUESTION, FaultyProviders
from tests.faulty_server import SAYS, Response

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRETS = {
    "OPENAI_API_KEY": "env-openai-key",
    "OPENAI_ADMIN_KEY": "env-admin-key",
    "OPENAI_CUSTOM_HEADERS": (
        "X-Gateway: env-openai-header\nAuthorization: Bearer env-openai-bearer"
    ),
    "OPENAI_ORG_ID": "env-organisation",
    "OPENAI_PROJECT_ID": "env-project",
    "OPENAI_WEBHOOK_SECRET": "env-webhook",
    "ANTHROPIC_API_KEY": "env-anthropic-key",
    "ANTHROPIC_AUTH_TOKEN": "env-anthropic-token",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Gateway: env-anthropic-header\nX-Api-Key: env-anthropic-other",
    "ANTHROPIC_WORKSPACE_ID": "env-workspace",
}


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


async def heads(
    faulty: FaultyProviders, provider: ProviderSettings, environ: dict[str, str]
) -> str:
    """The request heads of a newly created client."""
    kind = "anthropic" if provider.kind == "anthropic" else provider.api
    faulty.server.plan(Response(SAYS["chat" if kind == "auto" else kind]("Whole")))
    client = ProviderClient(environ, faulty.client._builtin_url)
    try:
        events = [
            e
            async for e in client.stream(provider, Request(QUESTION, 0, provider.name, "m"), print)
        ]
    finally:
        await client.close()
    assert TextDelta("Whole") in events
    return "\n".join(faulty.server.heads).lower()


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("official", [True, False])
async def test_another_host_gets_only_its_key_from_the_environment(
    faulty: FaultyProviders, variables: None, kind: str, official: bool
) -> None:
    before = dict(os.environ)
    sent = await heads(faulty, faulty.provider(kind, official=official), {"FAULTY_KEY": KEY})
    assert KEY.lower() in sent
    assert "env-" not in sent
    assert dict(os.environ) == before


@pytest.mark.parametrize("kind", FORMATS)
async def test_a_key_that_a_provider_sends_back_is_not_in_the_reply(
    faulty: FaultyProviders, kind: str
) -> None:
    faulty.server.plan(Response(SAYS[kind]("it is ", KEY[:10], KEY[10:], " indeed")))
    client = ProviderClient({"FAULTY_KEY": KEY}, faulty.client._builtin_url)
    provider = faulty.provider(kind)
    events = [
        e async for e in client.stream(provider, Request(QUESTION, 0, provider.name, "m"), print)
    ]
    await client.close()
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "it is [key] indeed"


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
async def test_a_gateway_in_the_sdks_variable_gets_everything_that_the_sdk_reads(
    faulty: FaultyProviders, variables: None, kind: str
) -> None:
    url = faulty.server.url + ("" if kind == "anthropic" else "/v1")
    environ = {f"{kind.upper()}_BASE_URL": url, f"{kind.upper()}_API_KEY": KEY}
    sent = await heads(faulty, PROVIDERS[kind], environ)
    assert f"env-{kind}-header" in sent


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
async def test_an_entry_without_an_address_means_the_official_one(
    faulty: FaultyProviders, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", faulty.server.url)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", faulty.server.url)
    assert address(ProviderSettings("mine", kind, api_key_env="MY_KEY"), os.environ).startswith(
        f"https://api.{kind}.com"
    )


async def test_every_variable_that_the_sdks_read_has_a_withheld_prefix() -> None:
    import anthropic
    import openai

    places = [Path(anthropic.__file__).parent / name for name in ("_client.py", "_base_client.py")]
    places += [
        Path(openai.__file__).parent / name for name in ("_client.py", "lib/_client_auth.py")
    ]
    read = {
        n
        for p in places
        for n in re.findall(r'environ\.get\("(\w+)"', p.read_text(encoding="utf-8"))
    }
    assert {"OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS", "OPENAI_ORG_ID"} <= read
    assert all(name.startswith(("ANTHROPIC_", "OPENAI_")) for name in read)


BROKEN = {
    "http://127.0.0.1:99999/v1": "Port out of range",
    "http://127.0.0.1:0/v1": "cannot have port 0",
    "http://127.0.0.1:http/v1": "Port could not be cast",
    "http://[::1/v1": "Invalid IPv6 URL",
    "127.0.0.1:11434": "must begin with http:// or https://",
    "localhost:11434/v1": "must begin with http:// or https://",
    "ftp://host/v1": "must begin with http:// or https://",
    "/v1": "must begin with http:// or https://",
    "": "must begin with http:// or https://",
    "http://": "has no host",
    "https:///v1": "has no host",
    "http://a b/v1": "contains a space",
    "http://host\u200b/v1": "contains a space or an invisible character",
}


@pytest.mark.parametrize(("url", "why"), BROKEN.items())
async def test_an_invalid_address_is_a_settings_problem_and_nothing_else_is_asked(
    url: str, why: str
) -> None:
    table = {"providers": {"mine": {"base_url": url}}, "mcp": {"servers": {"web": {"url": url}}}}
    settings, problems = read_settings(table)
    found = [each for each in problems if why in each]
    assert [each.split(": ")[1] for each in found] == [
        "providers.mine.base_url",
        "mcp.servers.web.url",
    ]
    provider = settings.providers["mine"]
    if url:  # an empty one counts as absent, like an empty variable
        with pytest.raises(ModelError, match=re.escape(f"providers.mine.base_url: {url[:5]}")):
            address(provider, {})
    servers = new_servers({"web": settings.mcp.servers["web"]})
    await servers.catalogue()
    assert f"mcp.servers.web.url: {url[:5]}" in servers.status()[0].error
    await servers.close()


async def test_an_address_in_a_variable_is_checked_when_it_is_used() -> None:
    with pytest.raises(ModelError, match="used: OLLAMA_BASE_URL: localhost:11434 must begin"):
        address(PROVIDERS["ollama"], {"OLLAMA_BASE_URL": "localhost:11434"})
    assert read_settings({"mcp": {"servers": {"web": {"url": "${URL}"}}}})[1] == ()
    servers = new_servers(
        {"web": ServerSettings("web", url="${URL}")}, environ={"URL": "http://h:99999"}
    )
    await servers.catalogue()
    assert "mcp.servers.web.url: http://h:99999 is not an address" in servers.status()[0].error
    await servers.close()


async def no_demo() -> str:
    raise AssertionError("nothing is sent here")


async def test_a_destination_without_an_address_is_described_in_words() -> None:
    client = ProviderClient({"OPENAI_BASE_URL": "https://gate.example/v1/"}, no_demo)
    assert client.url(PROVIDERS["openai"], "/responses") == "https://gate.example/v1/responses"
    assert client.url(PROVIDERS["demo"], "/v1/messages") == "a small program on this machine"
    broken = ProviderSettings("lab", base_url="nowhere")
    assert client.url(broken, "/chat/completions") == "lab has no usable base URL"
