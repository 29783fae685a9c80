"""Any bytes from a provider or server raise only Parley's own bounded errors.

The bytes come from a real socket and pass through the real SDK clients.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.errors import ModelError
from parley.models.events import TextDelta
from parley.models.request import Request
from parley.providers.client import ProviderClient
from parley.settings.values import ProviderSettings
from parley.tools.results import NO_OUTPUT, result_text
from tests.defaults import MAX_BYTES
from tests.examples import examples
from tests.faulty_providers import FORMATS, KEY, QUESTION, check_message
from tests.faulty_server import BEGUN, SAYS
from tests.raw_server import RawServer

STATUS = st.sampled_from(
    [200, 200, 200, 204, 206, 299, 301, 307, 308, 400, 401, 413, 429, 500, 529, 999]
)
NAMES = st.sampled_from(
    [
        *(
            "content-type",
            "content-encoding",
            "transfer-encoding",
            "content-length",
            "location",
            "connection",
        ),
        *(
            "retry-after",
            "retry-after-ms",
            "x-should-retry",
            "x-ratelimit-remaining",
            "set-cookie",
            "x-odd",
        ),
    ]
)
VALUES = st.sampled_from(
    [
        *(
            "text/event-stream",
            "application/json",
            "gzip",
            "br",
            "chunked",
            "5",
            "-1",
            "99999999",
            "true",
        ),
        *(
            "http://127.0.0.1:1/",
            "//evil.example",
            "http://[",
            "\\",
            "nan",
            "inf",
            "1e400",
            "",
            "close",
            "é",
        ),
    ]
) | st.text(st.characters(codec="latin-1", exclude_characters="\r\n\0"), max_size=20)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.sampled_from([2**70, 1e308, "stop", "end_turn", "text_delta", "tool_use", "ev\ud800il"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


def mutated(value: Any, draw: st.DrawFn) -> Any:
    """A provider's payload with some part replaced by any value."""
    if draw(st.integers(0, 6)) == 0:
        return draw(JSON)
    match value:
        case dict():
            return {key: mutated(inner, draw) for key, inner in value.items()}
        case list():
            return [mutated(inner, draw) for inner in value]
        case _:
            return value


@st.composite
def bodies(draw: st.DrawFn, kind: str) -> bytes:
    """Arbitrary bytes, or a valid stream with some changed values, pieces and places."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.binary(max_size=200))
    said = SAYS[kind](draw(st.text(st.characters(codec="utf-8"), max_size=9)))
    frames = list[bytes]()
    for frame in said:
        text = frame.decode().removeprefix("data: ").strip()
        if not text.startswith("{") or draw(st.booleans()):
            frames.append(frame)
            continue
        payload = mutated(json.loads(text), draw)
        frames.append(b"data: " + json.dumps(payload).encode() + b"\n\n")
    if draw(st.booleans()):
        frames = draw(st.permutations(frames))
    body = b"".join(frames)
    cut = draw(st.integers(0, len(body)))
    odd = [body[:cut], body[cut:], body[:cut] + b"\xff\0" + body[cut:], gzip.compress(body)]
    return draw(st.sampled_from([body, *odd]))


@st.composite
def answers(draw: st.DrawFn, kind: str) -> list[bytes]:
    """Everything that a server sends, in pieces; sometimes it is not HTTP."""
    if draw(st.integers(0, 9)) == 0:
        return [draw(st.binary(max_size=100))]
    body = draw(bodies(kind))
    headers = draw(st.lists(st.tuples(NAMES, VALUES), max_size=4))
    if draw(st.booleans()):
        headers.append(("content-type", "text/event-stream"))
    lines = [f"HTTP/1.1 {draw(STATUS)} it is", *(f"{name}: {value}" for name, value in headers)]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    cut = draw(st.integers(0, len(body)))
    return [head, body[:cut], body[cut:]]


@asynccontextmanager
async def client_of(
    pieces: list[bytes],
) -> AsyncIterator[Callable[[str], tuple[ProviderClient, ProviderSettings]]]:
    """A server with these responses, and its client."""

    async def no_wait(_: float) -> None:
        pass

    async def no_url() -> str:
        raise AssertionError("nothing here is built in")

    client = ProviderClient({"FAULTY_KEY": KEY}, no_url, idle_s=5.0, sleep=no_wait)
    async with RawServer() as server:
        server.plan(pieces)

        def provider(kind: str) -> tuple[ProviderClient, ProviderSettings]:
            family: Any = "anthropic" if kind == "anthropic" else "openai"
            api: Any = "auto" if family == kind else kind
            return client, ProviderSettings(
                "faulty", family, server.url, api=api, api_key_env="FAULTY_KEY"
            )

        yield provider
        await client.close()


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("kind", FORMATS)
@examples(8)
@given(data=st.data())
def test_any_bytes_from_a_provider_are_a_reply_or_a_parley_error(
    kind: str, whole: bool, data: st.DataObject
) -> None:
    pieces = data.draw(answers(kind))

    async def ask() -> None:
        async with client_of(pieces) as provider:
            client, at = provider(kind)
            request = Request(QUESTION, 0, at.name, "some-model")
            events = (
                client.once(at, request) if whole else client.stream(at, request, lambda _: None)
            )
            try:
                async for event in events:
                    assert len(repr(event)) < 10_000
            except ModelError as error:
                check_message(error)

    asyncio.run(ask())


@st.composite
def streams(draw: st.DrawFn, kind: str) -> list[bytes]:
    """A stream with a valid beginning; after some point, its values are arbitrary."""
    frames = SAYS[kind]("it is well", "and more")
    begun = draw(st.integers(BEGUN[kind], len(frames)))
    rest = [frame.decode().removeprefix("data: ").strip() for frame in frames[begun:]]
    odd = [
        b"data: " + json.dumps(mutated(json.loads(text), draw)).encode() + b"\n\n"
        for text in rest
        if text.startswith("{")
    ]
    head = b"HTTP/1.1 200 it is\r\ncontent-type: text/event-stream\r\n\r\n"
    return [head, *frames[:begun], *odd]


@pytest.mark.parametrize("kind", FORMATS)
@examples(8)
@given(data=st.data())
def test_a_reply_with_a_valid_beginning_is_reported_whatever_follows(
    kind: str, data: st.DataObject
) -> None:
    pieces = data.draw(streams(kind))

    async def ask() -> list[Any]:
        events = list[Any]()
        async with client_of(pieces) as provider:
            client, at = provider(kind)
            try:
                async for event in client.stream(
                    at, Request(QUESTION, 0, at.name, "some-model"), lambda _: None
                ):
                    assert len(repr(event)) < 10_000
                    events.append(event)
            except ModelError as error:
                check_message(error)
        return events

    text = "".join(event.text for event in asyncio.run(ask()) if isinstance(event, TextDelta))
    assert text.startswith("it is well")


def shapes() -> st.SearchStrategy[Any]:
    """Result blocks as servers send them, with any value in any place."""
    inner = JSON | st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("uri", "text", "blob", "mimeType"), JSON)
    )
    kinds = st.sampled_from(["text", "image", "audio", "resource", "resource_link", "new"]) | JSON
    names = ("text", "data", "mimeType", "uri", "name", "resource", "annotations")
    return JSON | st.fixed_dictionaries({"type": kinds}, optional=dict.fromkeys(names, inner))


@given(st.lists(shapes(), max_size=5), JSON, st.integers(0, 200))
def test_a_result_of_any_shape_is_bounded_text(
    blocks: list[Any], structured: Any, most: int
) -> None:
    for bound in (most, MAX_BYTES):
        text = result_text(blocks, structured, max_bytes=bound)
        assert text
        assert len(text.encode()) <= bound + 100 or text == NO_OUTPUT
        assert "\x1b" not in text
