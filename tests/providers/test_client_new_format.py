"""A new wire format needs one file and one entry; requests, the shell and the settings then support
it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from parley.cli.arguments import parser
from parley.models.events import Event, Finished, TextDelta
from parley.models.formats import FORMATS, format_for
from parley.models.request import Request
from parley.providers.client import ProviderClient
from parley.settings.read import read_settings
from parley.settings.values import ProviderSettings
from parley.tools.convert import convert_all
from tests.faulty_providers import KEY, QUESTION
from tests.faulty_server import FaultyServer, Response, event
from tests.tools.test_convert import SCHEMA, SEARCH
from tests.toy_format import TOY

REQUEST = Request(QUESTION, 0, "lab", "m")


@pytest.fixture(autouse=True)
def entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, "toy", TOY)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FaultyServer]:
    async with FaultyServer() as each:
        yield each


def provider(url: str) -> ProviderSettings:
    """The provider in a user's settings."""
    table = {"providers": {"lab": {"kind": "toy", "base_url": url, "api_key_env": "LAB_KEY"}}}
    settings, problems = read_settings(table)
    assert problems == ()
    return settings.providers["lab"]


async def events(server: FaultyServer, *, streamed: bool) -> list[Event]:
    async def no_url() -> str:
        raise AssertionError("nothing here is built in")

    client = ProviderClient({"LAB_KEY": KEY}, no_url)
    lab = provider(f"{server.url}/v0")
    try:
        stream = client.stream(lab, REQUEST, print) if streamed else client.once(lab, REQUEST)
        return [each async for each in stream]
    finally:
        await client.close()


async def test_a_model_is_asked_in_the_new_format_and_its_stream_is_read(
    server: FaultyServer,
) -> None:
    server.plan(Response([event({"text": "Hel"}), event({"text": "lo"}), event({"done": True})]))
    assert await events(server, streamed=True) == [
        TextDelta("Hel"),
        TextDelta("lo"),
        Finished("complete"),
    ]
    assert server.paths == ["/v0/play"]
    assert f"bearer {KEY.lower()}" in server.heads[0]
    assert server.requests == [{"toy": "m", "texts": ["hi"], "stream": True}]


async def test_an_unstreamed_reply_is_read(server: FaultyServer) -> None:
    body: Any = json.dumps({"text": "Hello"}).encode()
    server.plan(Response([body], headers={"content-type": "application/json"}))
    assert await events(server, streamed=False) == [TextDelta("Hello"), Finished("complete")]
    assert server.requests == [{"toy": "m", "texts": ["hi"], "stream": False}]


def test_the_shell_names_the_format_for_requests_and_tools() -> None:
    arguments = parser().parse_args(["convert", "--to", "toy"])
    assert convert_all([SEARCH], format_for(arguments.to).tool) == [
        {"name": "search", "description": "Searches.", "toy_schema": SCHEMA}
    ]
    arguments = parser().parse_args(["messages", "chat.md", "--provider", "toy"])
    assert format_for(arguments.provider).body(REQUEST) == {
        "toy": "m",
        "texts": ["hi"],
        "stream": True,
    }


def test_a_kind_that_is_not_in_the_table_is_a_settings_problem() -> None:
    _, problems = read_settings({"providers": {"lab": {"kind": "toys"}}})
    expected = 'expected "openai", "anthropic", "toy", "package" or "acp"'
    assert problems == (f'parley: providers.lab.kind: {expected}, got "toys"; did you mean toy?',)
