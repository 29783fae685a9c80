"""The corpus of streams: how raw bytes in a file are decoded, and the expected events.

Next to each `name.sse`, `name.json` lists the events as `[kind, …fields]`, with adjacent deltas
joined, and `["error", reason, retryable]` if the stream cannot be read to its end. A new case needs
no code.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from parley.errors import ModelError
from parley.models import anthropic, openai_chat, openai_responses
from parley.models.decoder import Decoder
from parley.models.events import Event, TextDelta, ThinkingDelta
from parley.models.quirks import Quirk
from parley.models.sse import SSE, decode_payload

STREAMS = Path(__file__).parent / "streams"
DECODERS: dict[str, type[Decoder]] = {
    "anthropic": anthropic.Decoder,
    "openai_chat": openai_chat.Decoder,
    "openai_responses": openai_responses.Decoder,
}
PROVIDERS = {"anthropic": "anthropic", "openai_chat": "openai", "openai_responses": "openai"}


def decoded(path: Path, chunks: Iterable[bytes]) -> list[Any]:
    """The events from a stream that arrives in these chunks, in the corpus's notation."""
    events, error = events_of(path, chunks)
    failure = [["error", error.reason, error.retryable]] if error else []
    return [*map(_plain, merged(events)), *failure]


def events_of(path: Path, chunks: Iterable[bytes]) -> tuple[list[Event], ModelError | None]:
    """The events from a stream that arrives in these chunks, and its error."""
    kind, (first, dash, _) = path.parent.name, path.stem.partition("-")
    quirks: tuple[Quirk, ...] = ("think_tags",) if dash else ()
    decoder = DECODERS[kind](first if dash else PROVIDERS[kind], "a-model", quirks)
    sse, events = SSE(), list[Event]()
    try:
        for chunk in chunks:
            events += decoder.read(map(decode_payload, sse.feed(chunk)))
        for payload in sse.end():
            events += decoder.feed(decode_payload(payload))
        events += decoder.end()
    except ModelError as error:
        return events, error
    return events, None


def merged(events: Iterable[Event]) -> list[Event]:
    """The events with adjacent deltas joined."""
    kept = list[Event]()
    for event in events:
        match kept[-1:], event:
            case [TextDelta(before)], TextDelta(text):
                kept[-1] = TextDelta(before + text)
            case [ThinkingDelta(before)], ThinkingDelta(text):
                kept[-1] = ThinkingDelta(before + text)
            case _:
                kept.append(event)
    return kept


def _plain(event: Event) -> list[Any]:
    values = dataclasses.asdict(event)
    plain: list[Any] = json.loads(json.dumps([type(event).__name__, *values.values()]))
    return plain


def expected(path: Path) -> list[Any]:
    """The corpus's expectation for a stream."""
    events: list[Any] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return events
