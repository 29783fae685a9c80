"""A short unstreamed reply from the demo model's server, with the real clients."""

from __future__ import annotations

from dataclasses import replace

import pytest

from parley.chat.reader import parse
from parley.demo import server
from parley.errors import ModelError
from parley.models.events import Finished, TextDelta, Usage
from parley.models.request import Request
from parley.providers.client import ProviderClient
from parley.settings.values import ProviderSettings
from tests.strict import check

ASK = Request(parse("💬: say: a short reply\n"), 0, "here", "demo", max_tokens=20, tools_on=False)
PROVIDERS = {
    "anthropic": ProviderSettings("here", "anthropic", api_key_command=("echo", "key")),
    "chat": ProviderSettings("here", "openai", api="chat", api_key_command=("echo", "key")),
    "responses": ProviderSettings(
        "here", "openai", api="responses", api_key_command=("echo", "key")
    ),
}


async def no_demo() -> str:
    raise AssertionError("no built-in provider is asked")


@pytest.mark.parametrize("form", PROVIDERS)
async def test_an_unstreamed_reply_is_requested_and_read(form: str) -> None:
    async with await server.start(pace=0, check=check) as demo:
        base = demo.url if form == "anthropic" else f"{demo.url}/v1"
        client = ProviderClient({}, no_demo)
        events = [e async for e in client.once(replace(PROVIDERS[form], base_url=base), ASK)]
        await client.close()
        ((_, body),) = demo.requests
    assert body["stream"] is False
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "a short reply"
    assert [e.reason for e in events if isinstance(e, Finished)] == ["complete"]
    assert [e.output for e in events if isinstance(e, Usage)][-1] > 0


async def test_a_failure_is_not_retried() -> None:
    client = ProviderClient({}, no_demo)
    nowhere = ProviderSettings(
        "here", "anthropic", base_url="http://127.0.0.1:9", api_key_command=("echo", "key")
    )
    with pytest.raises(ModelError):
        async for _ in client.once(nowhere, ASK):
            pass
    await client.close()
