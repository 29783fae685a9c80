"""Connections to providers stay open: a chat's next request uses the open one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Literal

import pytest

from parley.models.events import Finished, TextDelta
from parley.models.request import Request
from parley.providers.client import EVENTS_BEFORE_REST, ProviderClient, _payloads
from tests.faulty_providers import FORMATS, KEY, QUESTION, FaultyProviders
from tests.faulty_server import SAYS, FaultyServer, Response
from tests.streams_corpus import STREAMS

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def no_demo() -> str:
    raise AssertionError("the demo is not asked")


@pytest.mark.parametrize("kind", FORMATS)
async def test_ten_questions_take_one_connection(faulty: FaultyProviders, kind: str) -> None:
    provider = faulty.provider(kind)
    client = ProviderClient({"FAULTY_KEY": KEY}, no_demo)
    before = faulty.server.connections
    faulty.server.plan(Response(SAYS[kind]("Whole")))
    for _ in range(10):
        request = Request(QUESTION, 0, "faulty", "m")
        events = [event async for event in client.stream(provider, request, print)]
        assert [e for e in events if isinstance(e, TextDelta | Finished)] == [
            TextDelta("Whole"),
            Finished("complete"),
        ]
    await client.close()
    assert len(faulty.server.requests) == 10
    assert faulty.server.connections - before == 1


CALLS = {
    "anthropic": "anthropic/text_after_call",
    "chat": "openai_chat/text_then_call",
    "responses": "openai_responses/calls_not_streamed",
}
"""Replies in the corpus that end in calls."""


@pytest.mark.parametrize("kind", FORMATS)
async def test_ten_rounds_of_tools_take_one_connection(faulty: FaultyProviders, kind: str) -> None:
    client = ProviderClient({"FAULTY_KEY": KEY}, no_demo)
    before = faulty.server.connections
    faulty.server.plan(Response([STREAMS.joinpath(f"{CALLS[kind]}.sse").read_bytes()]))
    for _ in range(10):
        request = Request(QUESTION, 0, "faulty", "m")
        events = [event async for event in client.stream(faulty.provider(kind), request, print)]
        assert [event for event in events if isinstance(event, Finished)] == [
            Finished("tool_calls")
        ]
    await client.close()
    assert len(faulty.server.requests) == 10
    assert faulty.server.connections - before == 1


@pytest.mark.parametrize("kind", FORMATS)
async def test_a_refused_request_keeps_its_connection(faulty: FaultyProviders, kind: str) -> None:
    provider = faulty.provider(kind)
    client = ProviderClient({"FAULTY_KEY": KEY}, no_demo, sleep=lambda _: asyncio.sleep(0))
    before = faulty.server.connections
    overloaded = Response(
        [b'{"error":{"message":"no"}}'], 529, {"content-type": "application/json"}
    )
    faulty.server.plan(overloaded, Response(SAYS[kind]("Whole")))
    request = Request(QUESTION, 0, "faulty", "m")
    assert TextDelta("Whole") in [event async for event in client.stream(provider, request, print)]
    await client.close()
    assert len(faulty.server.requests) == 2
    assert faulty.server.connections - before == 1


@pytest.mark.parametrize("fault", ["cut", "reset"])
@pytest.mark.parametrize("kind", FORMATS)
async def test_a_complete_reply_counts_however_its_connection_ends(
    faulty: FaultyProviders, kind: str, fault: Literal["cut", "reset"]
) -> None:
    faulty.plan(Response([*SAYS[kind]("Whole"), fault]))
    events = await faulty.say(faulty.provider(kind))
    assert [e for e in events if isinstance(e, TextDelta | Finished)] == [
        TextDelta("Whole"),
        Finished("complete"),
    ]
    assert len(faulty.server.requests) == 1


@pytest.mark.parametrize("rest", [["silence"], [b": more\n\n" * 20_000, "silence"]])
async def test_an_endless_rest_after_the_end_is_not_awaited(
    faulty: FaultyProviders, rest: list[bytes]
) -> None:
    provider = faulty.provider("chat")
    client = ProviderClient({"FAULTY_KEY": KEY}, no_demo)
    before = faulty.server.connections
    faulty.server.plan(Response([*SAYS["chat"]("Whole"), *rest]), Response(SAYS["chat"]("Whole")))
    for _ in range(2):
        async with asyncio.timeout(5):
            request = Request(QUESTION, 0, "faulty", "m")
            assert TextDelta("Whole") in [
                event async for event in client.stream(provider, request, print)
            ]
    await client.close()
    assert faulty.server.connections - before == 2


async def test_a_connection_closed_by_the_server_is_replaced() -> None:
    async with FaultyServer() as server:
        provider = FaultyProviders(server, {}, []).provider("chat")
        client = ProviderClient({"FAULTY_KEY": KEY}, no_demo)
        server.plan(Response([*SAYS["chat"]("Whole")]))
        for count in (1, 2):
            request = Request(QUESTION, 0, "faulty", "m")
            assert TextDelta("Whole") in [
                event async for event in client.stream(provider, request, print)
            ]
            assert server.connections == count
            await server.hang_up()
        await client.close()


async def test_other_tasks_run_while_a_stream_without_waits_is_read() -> None:
    chunks, rounds = 20 * EVENTS_BEFORE_REST, 0

    async def arrived() -> AsyncIterator[bytes]:
        for _ in range(chunks):
            yield b"data: {}\n\n"

    async def others() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    payloads = [payload async for together in _payloads(arrived()) for payload in together]
    task.cancel()
    assert len(payloads) == chunks
    assert 19 <= rounds <= 21
