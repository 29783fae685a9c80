"""Proxies from the environment: used for remote hosts, never for this machine."""

from __future__ import annotations

import pytest

from parley.errors import ModelError
from parley.http.proxies import ProxyError, client_options, is_here
from parley.models.events import Event, TextDelta
from parley.models.request import Request
from parley.providers.client import ProviderClient
from parley.settings.values import ProviderSettings
from parley.tools.server_settings import ServerSettings
from tests.defaults import new_servers
from tests.faulty_providers import QUESTION, FaultyProviders
from tests.faulty_server import SAYS, Response
from tests.mcp_servers import only

pytestmark = pytest.mark.asyncio(loop_scope="module")

KINDS = ["anthropic", "chat", "responses"]
NAMES = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
NOWHERE = "socks5://127.0.0.1:9"
FAR = "http://models.example"


def far(faulty: FaultyProviders, kind: str) -> ProviderSettings:
    return faulty.provider(kind, base_url=FAR + ("" if kind == "anthropic" else "/v1"))


async def text(faulty: FaultyProviders, provider: ProviderSettings, kind: str) -> list[Event]:
    """A model's reply to a newly created client."""
    faulty.server.plan(Response(SAYS[kind]("Whole")))
    client = ProviderClient({"FAULTY_KEY": "k"}, faulty.client._builtin_url)
    try:
        request = Request(QUESTION, 0, "faulty", "m")
        return [
            e async for e in client.stream(provider, request, print) if isinstance(e, TextDelta)
        ]
    finally:
        await client.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
async def test_a_remote_host_is_asked_through_the_proxy_and_this_machine_directly(
    faulty: FaultyProviders, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    monkeypatch.setenv(name, faulty.server.url)
    assert await text(faulty, far(faulty, kind), kind) == [TextDelta("Whole")]
    assert [path.startswith(FAR) for path in faulty.server.paths] == [True]
    assert await text(faulty, faulty.provider(kind), kind) == [TextDelta("Whole")]
    assert [path.startswith("/v1/") for path in faulty.server.paths] == [True]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "proxy", [NOWHERE, "socks4://h:1", "SOCKS5H://user:pass@h:1", "ftp://h", "http://h:port"]
)
@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY", "all_proxy"])
async def test_an_unusable_proxy_is_reported_for_remote_hosts_but_not_for_this_machine(
    faulty: FaultyProviders, monkeypatch: pytest.MonkeyPatch, name: str, proxy: str, kind: str
) -> None:
    monkeypatch.setenv(name, proxy)
    assert await text(faulty, faulty.provider(kind), kind) == [TextDelta("Whole")]
    with pytest.raises(ModelError) as caught:
        await text(faulty, far(faulty, kind), kind)
    assert f"faulty cannot be reached: {name} is set to a proxy" in str(caught.value)
    assert "or unset " + name in str(caught.value)
    assert "pass" not in str(caught.value)
    assert not caught.value.retryable


@pytest.mark.parametrize("kind", KINDS)
async def test_a_host_exempt_from_an_unusable_proxy_is_still_asked(
    faulty: FaultyProviders, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", NOWHERE)
    monkeypatch.setenv("HTTP_PROXY", faulty.server.url.removeprefix("http://"))
    assert await text(faulty, far(faulty, kind), kind) == [TextDelta("Whole")]
    monkeypatch.delenv("HTTP_PROXY")
    for hosts in ("models.example", "other, .example", "*"):
        monkeypatch.setenv("NO_PROXY", hosts)
        assert client_options(FAR)["transport"]
    monkeypatch.setenv("NO_PROXY", "els.example")
    with pytest.raises(ProxyError):
        client_options(FAR)


async def test_a_local_server_needs_no_proxy_and_a_remote_one_reports_the_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", NOWHERE)
    servers = new_servers({"web": ServerSettings(name="web", url="http://127.0.0.1:9/mcp")})
    await servers.catalogue()
    assert "ALL_PROXY" not in only(servers).error
    await servers.close()
    servers = new_servers({"web": ServerSettings(name="web", url=f"{FAR}/mcp")})
    await servers.catalogue()
    assert (
        "mcp.servers.web.url: ALL_PROXY is set to a proxy that cannot be used: it is a SOCKS"
        in only(servers).error
    )
    await servers.close()


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://localhost:1", True),
        ("http://LOCALHOST.:1", True),
        ("http://demo.localhost", True),
        ("http://127.9.9.9/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://[::ffff:127.0.0.1]", True),
        ("http://0.0.0.0:11434", True),
        ("http://localhost.example", False),
        ("http://notlocalhost", False),
        ("http://192.168.0.1", False),
        ("https://api.example", False),
        ("", False),
    ],
)
async def test_this_machine_is_recognized_by_its_names_and_addresses(url: str, here: bool) -> None:
    assert is_here(url) == here
