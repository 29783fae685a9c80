"""A provider's own headers reach a real server, and their values reach nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from parley.errors import ModelError
from parley.models.events import TextDelta
from parley.models.request import Request
from parley.providers.client import ProviderClient
from parley.providers.own_headers import header_secrets, own_headers, reply_secrets
from parley.settings.values import ProviderSettings
from tests.faulty_providers import FORMATS, QUESTION, FaultyProviders
from tests.faulty_server import SAYS, Response

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKEN = "gateway-Token-0123456789"
ENVIRON = {"FAULTY_KEY": "key-of-the-provider", "GATEWAY": TOKEN}


async def said(
    faulty: FaultyProviders,
    provider: ProviderSettings,
    environ: Mapping[str, str] = ENVIRON,
) -> str:
    client = ProviderClient(environ, faulty.client._builtin_url)
    try:
        request = Request(QUESTION, 0, provider.name, "some-model")
        events = [event async for event in client.stream(provider, request, print)]
    finally:
        await client.close()
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def heads(faulty: FaultyProviders) -> list[dict[str, str]]:
    """The headers of each request; the server reads all of it in lower case."""
    lines = (head.split("\r\n")[1:] for head in faulty.server.heads)
    return [dict(line.split(": ", 1) for line in each if ": " in line) for each in lines]


@pytest.mark.parametrize("kind", FORMATS)
async def test_a_gateway_gets_its_headers_and_the_key(faulty: FaultyProviders, kind: str) -> None:
    headers = {"X-Gateway-Token": "Bearer ${GATEWAY}", "x-title": "My ${APP:-Notes}"}
    faulty.plan(Response(SAYS[kind]("Whole")))
    assert await said(faulty, faulty.provider(kind, headers=headers)) == "Whole"
    (head,) = heads(faulty)
    assert head["x-gateway-token"] == f"bearer {TOKEN.lower()}"
    assert head["x-title"] == "my notes"
    assert head["authorization"] == "bearer key-of-the-provider"


@pytest.mark.parametrize("kind", FORMATS)
async def test_without_a_key_a_header_may_be_the_key(faulty: FaultyProviders, kind: str) -> None:
    provider = faulty.provider(
        kind, api_key_env=None, headers={"AUTHORIZATION": "Basic ${GATEWAY}"}
    )
    faulty.plan(Response(SAYS[kind]("Whole")))
    assert await said(faulty, provider) == "Whole"
    assert faulty.server.heads[0].count("authorization:") == 1
    assert heads(faulty)[0]["authorization"] == f"basic {TOKEN.lower()}"


@pytest.mark.parametrize("kind", FORMATS)
async def test_no_error_and_no_reply_contains_a_headers_key(
    faulty: FaultyProviders, kind: str
) -> None:
    headers = {
        "x-gateway": "Bearer ${GATEWAY}",
        "x-plain-token": "in-the-settings",
        "x-title": "Half of it",
    }
    provider = faulty.provider(kind, headers=headers)
    body = f'{{"error":{{"message":"bad: {TOKEN}, in-the-settings, Half of it"}}}}'.encode()
    faulty.plan(Response([body], 400, {"content-type": "application/json"}))
    with pytest.raises(ModelError) as caught:
        await said(faulty, provider)
    for text in (str(caught.value), caught.value.words, caught.value.reason):
        assert TOKEN not in text
        assert "in-the-settings" not in text
    pieces = ("Half of it: ", TOKEN[:5], TOKEN[5:], " and in-the-", "settings.")
    faulty.plan(Response(SAYS[kind](*pieces)))
    assert await said(faulty, provider) == "Half of it: [key] and [key]."


async def test_an_unset_variable_and_a_split_value_send_nothing(faulty: FaultyProviders) -> None:
    provider = faulty.provider("chat", headers={"x-gateway": "${GATEWAY}"})
    faulty.plan(Response(SAYS["chat"]("Whole")))
    with pytest.raises(
        ModelError, match=r"^faulty cannot be used: .*GATEWAY .* is not set"
    ) as unset:
        await said(faulty, provider, {"FAULTY_KEY": "k"})
    assert "What to do: set the variable" in str(unset.value)
    for value in (f"{TOKEN}\r\nx-evil: 1", "", f"{TOKEN}ä"):
        with pytest.raises(ModelError, match="expected one line of ASCII") as caught:
            await said(faulty, provider, {**ENVIRON, "GATEWAY": value})
        assert TOKEN not in str(caught.value)
    assert faulty.server.heads == []
    assert await said(faulty, provider, {**ENVIRON, "GATEWAY": f" {TOKEN}\n"}) == "Whole"


async def test_settings_with_other_headers_have_another_client(faulty: FaultyProviders) -> None:
    provider = faulty.provider("chat", headers={"x-a": "1"})
    client = ProviderClient(ENVIRON, faulty.client._builtin_url)
    faulty.plan(Response(SAYS["chat"]("Whole")))
    for each in (provider, replace(provider, headers={"x-a": "2"}), provider):
        request = Request(QUESTION, 0, provider.name, "m")
        assert [event async for event in client.stream(each, request, print)]
    assert [head["x-a"] for head in heads(faulty)] == ["1", "2", "1"]
    await asyncio.wait_for(client.close(), 10)


async def test_secrets_are_values_and_their_last_words() -> None:
    provider = ProviderSettings(
        "p", headers={"a": "Bearer ${GATEWAY}", "x-key": "abc-def", "title": "A title", "b": "1"}
    )
    headers = own_headers(provider, ENVIRON)
    assert {TOKEN, "abc-def", "A title", "title"} <= set(header_secrets(headers))
    assert set(reply_secrets(provider, headers)) == {f"Bearer {TOKEN}", TOKEN, "abc-def"}
